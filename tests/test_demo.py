"""The demo on few steps and few options: right results, by compiled code."""

import os
import subprocess
import sys

import numpy as np
import pytest

from npjit.cli import compare

pytest.importorskip("matplotlib")

from npjit.cli import options, photo


@pytest.fixture(scope="module")
def denoised(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    return photo.denoise(folder, steps=10), folder


def test_photo_is_denoised(denoised):
    comparison, folder = denoised
    assert comparison.passed, compare.report(comparison)
    from PIL import Image

    before, after = (np.asarray(Image.open(folder / n), float) for n in ("before.png", "after.png"))
    clean = photo.read_photo() * 255.0
    assert np.mean((after - clean) ** 2) < 0.8 * np.mean((before - clean) ** 2)


def test_photo_ran_compiled(denoised):
    calls = denoised[0].calls
    assert (calls["whole"], calls["broken"], calls["numpy"]) == (11, 0, 0), calls


def test_hand_gradient_is_right():
    noisy = np.random.default_rng(0).random((9, 7, 3))
    gradient = photo.gradient_by_hand(noisy * 0.9, noisy)
    error = compare.slope_error(lambda image: photo.loss(image, noisy), noisy * 0.9, gradient)
    assert error < 1e-6


def test_options_are_priced():
    comparisons = options.price(count=1000)
    for comparison in comparisons:
        assert comparison.passed, compare.report(comparison)
    # The Greeks come from two functions: first derivatives, and gamma.
    calls = [[c.calls[mode] for mode in compare.MODES] for c in comparisons]
    assert calls == [[options.REPEATS + 1, 0, 0], [2 * options.REPEATS + 2, 0, 0]]


def test_failed_check_is_seen():
    checks = {"prices against NumPy": (1e-3, 1e-12)}
    comparison = compare.Comparison("prices", 1.0, 0.5, 0.1, checks, {})
    assert not comparison.passed
    assert "WRONG" in compare.report(comparison)


def test_ratio_in_table():
    comparison = compare.Comparison("prices", 1.0, 0.5, 0.1, {}, {})
    assert "2.0x" in compare.table([comparison])


def run_command(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "npjit", *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_doctor_names_what_is_found(tmp_path):
    done = run_command("doctor", NPJIT_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stdout + done.stderr
    subjects = {line.split()[1] for line in done.stdout.splitlines() if line[:2] in ("ok", "--")}
    assert {"compiler", "processor", "libmvec", "blas", "threads", "cache", "driver"} <= subjects
    assert {"cpp", "numpy"} <= subjects


def test_doctor_says_what_to_install(tmp_path):
    (tmp_path / "ziglang").mkdir()
    (tmp_path / "ziglang" / "__init__.py").touch()  # hides the wheel, and holds no compiler
    hidden = {"PATH": "", "CXX": "", "PYTHONPATH": str(tmp_path)}
    done = run_command("doctor", NPJIT_CACHE_DIR=str(tmp_path / "cache"), **hidden)
    assert done.returncode == 1
    assert "pip install 'npjit[compiler]'" in done.stdout.partition("To have more:")[2]
    lines = {line.split()[1]: line for line in done.stdout.splitlines() if line[:2] in ("ok", "--")}
    assert lines["cpp"].endswith("not installed")
    assert lines["numpy"].startswith("ok")
    assert not done.stderr


def test_cache_is_shown_and_cleared(tmp_path):
    folder = str(tmp_path / "cache")
    program = "import npjit, numpy; npjit.jit(lambda x: x * 2 + 1)(numpy.ones(4))"
    subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {"NPJIT_CACHE_DIR": folder}, check=True
    )
    assert "(0 compiled" not in run_command("cache", NPJIT_CACHE_DIR=folder).stdout
    assert "(0 compiled" in run_command("cache", "--clear", NPJIT_CACHE_DIR=folder).stdout


def test_unknown_command_is_refused():
    done = run_command("dance")
    assert done.returncode == 2
    assert "dance" in done.stderr


def test_bench_of_own_function(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("import numpy as np\n\n\ndef loss(x, y):\n    return np.sum(x * y)\n")
    done = run_command("bench", f"{path}:loss", "--shape", "30,4", "--shape", "4")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "result against NumPy" in done.stdout
    assert "0 broken, 0 numpy" in done.stdout
