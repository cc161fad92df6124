"""What a compiled function shows of itself: the text of each stage, and `explain`."""

import re

import numpy as np
import pytest

import npjit


def softmax(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def layer(x, weights, bias):
    hidden = np.tanh(x @ weights + bias)
    return hidden - hidden.mean(axis=0)


def loss(weights, x):
    return np.mean((x @ weights) ** 2)


ROWS = np.linspace(-1.0, 1.0, 600).reshape(20, 30)
EXAMPLES = {
    "softmax": (npjit.jit(softmax), (ROWS,)),
    "layer": (npjit.jit(layer), (ROWS, np.ones((30, 40)), np.ones(40))),
    "loss_gradient": (npjit.value_and_grad(loss), (np.ones(30), ROWS)),
}


@pytest.mark.parametrize("stage", ["graph", "kernels"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_texts(name, stage, golden):
    compiled, args = EXAMPLES[name]
    golden(f"inspect_{name}_{stage}.txt", compiled.lower(*args).as_text(stage) + "\n")


def test_generated_code_is_what_runs():
    compiled = npjit.jit(softmax)
    text = compiled.lower(ROWS).as_text("cpp")
    assert 'extern "C" int npjit_run' in text
    compiled(ROWS)
    assert compiled.cache_info()["whole"] == 1


def test_lowering_runs_nothing():
    def double(x):
        x *= 2.0
        return x

    compiled, x = npjit.jit(double), np.ones(20)
    compiled.lower(x).as_text()
    assert x.tolist() == [1.0] * 20
    assert compiled.cache_info()["whole"] == compiled.cache_info()["numpy"] == 0


def test_wrong_stage_lists_the_stages():
    with pytest.raises(ValueError, match=r"no text for 'asm'; there are graph, kernels, cpp"):
        npjit.jit(softmax).lower(ROWS).as_text("asm")


def test_a_backend_without_kernels_says_so():
    low = npjit.jit(softmax, backend="numpy").lower(ROWS)
    assert low.as_text("graph").startswith("graph(")
    with pytest.raises(ValueError, match="the numpy backend makes no kernels text"):
        low.as_text("kernels")


def refused(x):
    total = x.sum()
    return {}[total] if x.tolist() else x


def test_what_cannot_be_captured_names_its_line():
    line = refused.__code__.co_firstlineno + 2
    with pytest.raises(npjit.CaptureError, match=rf"refused cannot be captured: .*py:{line}: "):
        npjit.jit(refused).lower(ROWS)
    report = npjit.jit(refused).explain(ROWS)
    assert len(report.breaks) == 1
    assert re.match(rf".*test_inspect\.py:{line}: \.tolist", report.breaks[0])
    assert re.search(rf"test_inspect\.py:{line - 1}$", report.parts[0])
    assert str(report).splitlines()[0] == "refused: runs in 1 compiled part, Python elsewhere"


def wrong(x):
    return x.total()


def test_an_error_of_the_call_is_told():
    words = "the call raises AttributeError: 'ndarray' object has no attribute 'total'"
    with pytest.raises(npjit.CaptureError, match=f"wrong cannot be captured: {words}"):
        npjit.jit(wrong).lower(ROWS)
    assert npjit.jit(wrong).explain(ROWS).breaks == [words]


def test_explain_counts():
    compiled, args = EXAMPLES["layer"]
    report = compiled.explain(*args)
    assert (report.backend, report.contracts, report.breaks) == ("cpp", 1, [])
    assert report.kernels == compiled.lower(*args).as_text("kernels").count("\n  launch ")
    moved = sum(a.nbytes for a in args) + layer(*args).nbytes
    assert report.bytes_moved == moved
    assert {"trace", "simplify", "schedule", "print", "compile"} <= set(report.seconds)
    assert all(s >= 0 for s in report.seconds.values())


def test_explain_names_guards_as_the_source_does():
    compiled, args = EXAMPLES["layer"]
    guards = compiled.explain(*args).guards
    assert "x: float64[n > 1, n > 1] in C order" in guards
    assert "x.shape[1] == weights.shape[0]" in guards
    assert "np is as it was" in guards


def test_every_kind_of_guard_has_words():
    table = {"scale": 2.0, "names": ("a", "b")}

    def f(x, n, flag=True, *, weight=1.5):
        scaled = x * table["scale"] * weight * len(table["names"])
        return np.sum(scaled) + n if flag else x

    guards = npjit.jit(f).explain(ROWS[:, ::2], 3, weight=np.float32(2.0)).guards
    assert "n: an int" in guards
    assert "weight: a NumPy float32" in guards
    assert any(g.startswith("a default of f == True") for g in guards)
    assert any("['scale']: a float" in g for g in guards)
    assert any(g.startswith("x: float64[n > 1, 15] in layout ") for g in guards)


def test_explain_tells_what_was_not_fused_and_where():
    compiled, args = EXAMPLES["loss_gradient"]
    text = str(compiled.explain(*args))
    assert re.search(r"not fused: .* at .*test_inspect\.py:\d+ ", text)
    assert " kernels, 2 matrix products\n" in text


def steps(x, n):
    for i in range(n):
        x = np.sqrt(x + 1.0) if x[i] > 0.5 else 2.0 * x
    return x


def test_text_of_loops_and_branches(golden):
    low = npjit.jit(steps).lower(ROWS[0], 20)
    golden("inspect_steps_graph.txt", low.as_text("graph") + "\n")
    text = low.as_text("kernels")
    assert re.search(r"^  for \w+ < \w+$", text, re.M)
    assert re.search(r"^    if ", text, re.M)


def test_explain_counts_the_kernels_inside_loops():
    compiled = npjit.jit(steps)
    report = compiled.explain(ROWS[0], 20)
    text = compiled.lower(ROWS[0], 20).as_text("kernels")
    inside = len(re.findall(r"^    +launch ", text, re.M))
    assert inside > 0
    assert report.kernels == inside + text.count("\n  launch ")
    assert {"n: an int", "range is Python's own"} <= set(report.guards)
