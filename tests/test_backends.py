"""Backends of one's own: callables, registered names, entry points, and the built-in names."""

from importlib.metadata import EntryPoint

import numpy as np
import pytest

import npjit
from npjit.backends import registry
from npjit.core.graph import Graph


class Recorder:
    """A backend that keeps what it is given, and runs graphs by NumPy."""

    def __init__(self):
        self.seen = []

    def __call__(self, graph, example_types):
        self.seen.append((graph, example_types))
        return lambda inputs: graph.run(*inputs)


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def no_registered(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})


def energy(x):
    return np.sum(np.tanh(x) ** 2)


X = np.linspace(-1.0, 1.0, 50)


def test_a_callable_gets_the_graph_and_the_types(recorder):
    compiled = npjit.jit(energy, backend=recorder)
    assert compiled(X) == energy(X)
    assert compiled(X[:30]) == energy(X[:30])  # another size: no other graph
    ((graph, types),) = recorder.seen
    assert isinstance(graph, Graph)
    assert [str(t) for t in types] == ["f64[n0]"]
    assert compiled.cache_info()["whole"] == 2


def test_a_callable_gets_the_joint_graph_of_value_and_gradient(recorder):
    compiled = npjit.value_and_grad(energy, backend=recorder)
    value, gradient = compiled(X)
    assert value == energy(X)
    np.testing.assert_allclose(gradient, 2 * np.tanh(X) * (1 - np.tanh(X) ** 2), rtol=1e-12)
    ((graph, _),) = recorder.seen
    assert [str(n.type) for n in graph.outputs] == ["f64'[]", "f64[n0]"]
    names = [n.op.name for n in graph.nodes]
    assert names.count("tanh") == 1  # forward values are shared


def test_jit_of_a_gradient_passes_its_backend_on(recorder):
    npjit.jit(npjit.grad(energy), backend=recorder)(X)
    assert len(recorder.seen) == 1


def test_written_arguments_are_updated_in_place(recorder):
    def shift(x):
        x[1:] = x[:-1] * 2.0

    got, want = np.arange(30.0), np.arange(30.0)
    npjit.jit(shift, backend=recorder)(got)
    shift(want)
    np.testing.assert_array_equal(got, want)
    ((graph, _),) = recorder.seen
    assert [position for position, _ in graph.writes] == [0]


def test_size_guards_hold_for_callables_too(recorder):
    def paired(a, b):
        return a + b if len(a) == len(b) else a - b[0]

    compiled = npjit.jit(paired, backend=recorder)
    x, y = np.arange(20.0), np.arange(21.0)
    np.testing.assert_array_equal(compiled(x, x), x + x)
    np.testing.assert_array_equal(compiled(x, y), x - y[0])
    assert len(recorder.seen) == 2


def test_a_registered_name(recorder, no_registered):
    assert npjit.backends.register("recorded")(recorder) is recorder
    assert npjit.jit(energy, backend="recorded")(X) == energy(X)
    assert len(recorder.seen) == 1
    assert "recorded" in npjit.backends.names()


def test_npjits_own_names_cannot_be_taken(recorder, no_registered):
    with pytest.raises(ValueError, match="'cpp' is npjit's own"):
        npjit.backends.register("cpp")(recorder)


def test_an_entry_point(monkeypatch):
    found = EntryPoint("borrowed", "npjit.backends.reference:reference", registry.GROUP)
    monkeypatch.setattr(registry, "_entry_points", lambda: [found])
    compiled = npjit.jit(energy, backend="borrowed")
    assert compiled(X) == energy(X)
    assert compiled.explain(X).backend == "borrowed"
    assert npjit.backends.names().count("borrowed") == 1


def test_a_wrong_name_lists_the_names(recorder, no_registered):
    npjit.backends.register("recorded")(recorder)
    with pytest.raises(ValueError, match=r"no backend named 'nmupy'; .*cpp.*numpy, recorded"):
        npjit.jit(energy, backend="nmupy")
    with pytest.raises(TypeError, match="a name or a callable, not 3"):
        npjit.jit(energy, backend=3)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.sum(),
        lambda x: (float(x.sum()), len(x), x.shape),
        lambda x: x.copy(),
        lambda x: x.T.copy(),
        lambda x: (x.ravel().copy(), x.ravel().copy()),
        lambda x: x[1:],
        lambda x: x,
    ],
)
def test_results_are_as_numpys(f, recorder):
    """Also where a backend gives 0-d arrays, or views of its inputs."""
    x = np.arange(400.0).reshape(20, 20)
    got, want = npjit.jit(f, backend=recorder)(x), f(x)
    got, want = (r if isinstance(r, tuple) else (r,) for r in (got, want))
    for one, other in zip(got, want, strict=True):
        assert type(one) is type(other)
        np.testing.assert_array_equal(one, other)
        if isinstance(other, np.ndarray):
            assert np.shares_memory(one, x) == np.shares_memory(other, x)
    if len(want) == 2:
        assert not np.shares_memory(*got)


def test_results_of_a_wrong_type_are_errors():
    def narrow(graph, example_types):
        return lambda inputs: [r.astype("f4") for r in graph.run(*inputs)]

    def short(graph, example_types):
        return lambda inputs: []

    with pytest.raises(TypeError, match=r"'narrow': result 0 is float32 with 1 axes, not f64"):
        npjit.jit(lambda x: x + 1, backend=narrow)(X)
    with pytest.raises(ValueError, match="zip"):
        npjit.jit(lambda x: x + 1, backend=short)(X)


def test_an_error_in_a_backend_is_told(recorder):
    def broken(graph, example_types):
        raise OSError("out of order")

    compiled = npjit.jit(energy, backend=broken)
    with pytest.warns(npjit.NpjitWarning, match="energy runs as NumPy: OSError: out of order"):
        assert compiled(X) == energy(X)
    assert compiled.cache_info()["numpy"] == 1
    assert compiled.cache_info()["whole"] == 0


def test_the_environment_names_the_backend(monkeypatch, recorder, no_registered):
    npjit.backends.register("recorded")(recorder)
    monkeypatch.setenv("NPJIT_BACKEND", "recorded")
    npjit.jit(energy)(X)
    npjit.jit(energy, backend="numpy")(X)
    assert len(recorder.seen) == 1
    monkeypatch.setenv("NPJIT_BACKEND", "nmupy")
    with pytest.raises(ValueError, match="no backend named 'nmupy'"):
        npjit.jit(energy)


def test_calls_that_a_backend_refuses_do_not_stand_for_others(monkeypatch):
    """A kind of arguments that the backend leaves to NumPy leaves the other kinds compiled."""
    from npjit.ops.errors import NotCaptured

    def picky(graph, example_types):
        if example_types[0].dtype != np.float64:
            raise NotCaptured("only float64")
        return lambda inputs: graph.run(*inputs)

    compiled = npjit.jit(energy, backend=picky)
    with pytest.warns(npjit.NpjitWarning, match="only float64"):
        compiled(X.astype("f4"))
    compiled(X.astype("f4"))
    compiled(X)
    assert (compiled.cache_info()["numpy"], compiled.cache_info()["whole"]) == (2, 1)
