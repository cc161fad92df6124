"""`visualize`: pictures that hold every kernel, and errors that say what to do."""

import re
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import npjit
from npjit.api import draw

SVG = "{http://www.w3.org/2000/svg}"


def layer(x, weights):
    hidden = np.tanh(x @ weights)
    return hidden - hidden.mean(axis=0), np.sum(hidden)


ARGS = (np.ones((20, 30)), np.ones((30, 40)))


@pytest.fixture(scope="module")
def compiled():
    return npjit.jit(layer)


@pytest.fixture(scope="module")
def steps(compiled):
    """Kernels and matrix products, counted in the plan's text."""
    text = compiled.lower(*ARGS).as_text("kernels")
    return len(re.findall(r"^  (?:launch|contract) ", text, re.M))


def test_svg_has_a_box_for_every_step(compiled, steps, tmp_path):
    path = compiled.visualize(*ARGS, tmp_path / "layer.svg")
    root = ET.parse(path).getroot()
    boxes = root.findall(f"{SVG}rect")
    assert len(boxes) == steps + len(ARGS) + 2  # and one for each argument and result
    words = [t.text for t in root.iter(f"{SVG}text")]
    assert any(w.startswith("kernel 0 (") for w in words)
    assert any(w.startswith("matrix product n0 x n1 x n3") for w in words)
    assert "tanh" in words
    arrows = root.findall(f"{SVG}line")
    assert len(arrows) >= steps + 2
    assert all(a.get("marker-end") == "url(#a)" for a in arrows)


def test_boxes_do_not_overlap(compiled, tmp_path):
    root = ET.parse(compiled.visualize(*ARGS, tmp_path / "layer.svg")).getroot()
    sides = ("x", "y", "width", "height")
    boxes = [[float(r.get(side)) for side in sides] for r in root.findall(f"{SVG}rect")]
    for i, (x, y, width, height) in enumerate(boxes):
        for x2, y2, width2, height2 in boxes[i + 1 :]:
            apart = x + width <= x2 or x2 + width2 <= x or y + height <= y2 or y2 + height2 <= y
            assert apart


def test_arrows_follow_the_values(compiled, tmp_path):
    text = compiled.visualize(*ARGS, tmp_path / "layer.dot").read_text()
    names = dict(re.findall(r'^  (\w+) \[label="([^\\]*)', text, re.M))
    arrows = set(re.findall(r"^  (\w+) -> (\w+)$", text, re.M))
    product = next(k for k, title in names.items() if title.startswith("matrix product"))
    assert {("in0", product), ("in1", product)} <= arrows
    assert {b for _, b in arrows} >= {"out0", "out1"}
    reached = {"in0"}
    for a, b in sorted(arrows, key=lambda pair: list(names).index(pair[0])):
        reached |= {b} if a in reached else set()
    assert {"out0", "out1"} <= reached


def test_html_holds_the_svg(compiled, tmp_path):
    page = compiled.visualize(*ARGS, str(tmp_path / "layer.html")).read_text()
    picture = page[page.index("<svg") : page.index("</body>")]
    assert ET.fromstring(picture).tag == f"{SVG}svg"


def test_long_kernels_are_cut(tmp_path):
    def long(x):
        for k in range(40):
            x = np.sin(x) * (k + 2.0)
        return x

    text = npjit.jit(long).visualize(np.ones((2, 3)), tmp_path / "long.dot").read_text()
    assert re.search(r"\.\.\. \d+ more", text) or "loop" in text


def test_a_loop_is_one_box_with_its_steps_inside(tmp_path):
    def steps(x, n):
        for i in range(n):
            x = np.sqrt(x + 1.0) if x[i] > 0.5 else 2.0 * x
        return np.sum(x)

    text = npjit.jit(steps).visualize(np.ones(30), 20, tmp_path / "loop.dot").read_text()
    (label,) = re.findall(r'label="(loop, .*?)"', text)
    lines = [line.strip() for line in label.split(r"\l")]
    assert {"if", "sqrt", "multiply"} <= set(lines)
    box = re.search(r'(\w+) \[label="loop', text)[1]
    assert re.search(rf"-> {box}$", text, re.M)
    assert re.search(rf"^  {box} -> ", text, re.M)


def test_names_in_dot_are_quoted():
    box = draw.Box("step0", 'a "quoted" \\ title')
    text = draw.dot(draw.Picture({"step0": box}, []))
    assert r'label="a \"quoted\" \\ title\l"' in text


def test_without_a_path(compiled):
    for given, kind in ((ARGS, "ndarray"), ((), "NoneType")):
        with pytest.raises(TypeError, match=f"is the file to write, not a {kind}"):
            compiled.visualize(*given)


def test_wrong_ending(compiled, tmp_path):
    with pytest.raises(ValueError, match=r"writes \.svg, \.html or \.dot, not \.png"):
        compiled.visualize(*ARGS, tmp_path / "layer.png")


def test_a_backend_without_kernels_says_so(tmp_path):
    with pytest.raises(ValueError, match="the numpy backend has no kernels to draw"):
        npjit.jit(layer, backend="numpy").visualize(*ARGS, tmp_path / "layer.svg")


def test_without_networkx(compiled, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"pip install 'npjit\[draw\]'"):
        compiled.visualize(*ARGS, tmp_path / "layer.svg")
    assert not (tmp_path / "layer.svg").exists()
    assert compiled.visualize(*ARGS, tmp_path / "layer.dot").exists()
