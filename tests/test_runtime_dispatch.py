"""The Dispatcher: which entry answers, counting, errstate, failed checks, threads, leaks."""

from __future__ import annotations

import gc
import os
import resource
import sys
import threading

import numpy as np
import pytest
from npjit._runtime import Dispatcher, Entry, NoMatch

from tests.native_code import (
    FLOAT64,
    NEEDS_COMPILER,
    SCALE_PREPARE,
    SCALE_RUN,
    array_step,
    compile_native,
    entry_of,
)

pytestmark = NEEDS_COMPILER

X = np.arange(4.0)


def original(*args, **kwargs):
    return "original", args, kwargs


def miss(args, kwargs):
    return "miss", args, kwargs


def dispatcher_of(*entries: Entry) -> Dispatcher:
    dispatcher = Dispatcher(miss, original)
    for entry in reversed(entries):
        dispatcher.add(entry)
    return dispatcher


@pytest.fixture
def scale(tmp_path) -> Entry:
    """The entry of x * 2 + 1 for a 1-d float64 x of two elements or more."""
    native = compile_native(tmp_path, SCALE_PREPARE, SCALE_RUN)
    return entry_of(native, [array_step(0, X)], [("array", FLOAT64, 1, None)])


def constant(value, *steps, **changes) -> Entry:
    """An entry that answers `value` when its steps hold."""
    fields = {"inputs": (), "call": lambda inputs: [], "tree": ("const", value)} | changes
    return entry_of(None, list(steps), [], **fields)


def test_hit_and_miss(scale):
    run = dispatcher_of(scale)
    np.testing.assert_array_equal(run(X), X * 2 + 1)
    assert run(X.astype("f4"))[0] == "miss"
    assert run(3, 4, a=5, b=6) == ("miss", (3, 4), {"a": 5, "b": 6})
    assert run() == ("miss", (), {})
    assert run(c=1) == ("miss", (), {"c": 1})
    assert run.counts() == {"whole": 1, "broken": 0, "numpy": 0}


def test_miss_compiles_and_runs(scale):
    def compile_and_run(args, kwargs):
        run.add(scale)
        return run.run(scale, args, kwargs)

    run = Dispatcher(compile_and_run, original)
    np.testing.assert_array_equal(run(X), X * 2 + 1)
    assert run.entries == (scale,) and scale.mode == "whole"
    np.testing.assert_array_equal(run(X), X * 2 + 1)
    assert run.counts()["whole"] == 2


def test_run_needs_a_match(scale):
    run = dispatcher_of(scale)
    with pytest.raises(LookupError, match="first failure: 0"):
        run.run(scale, (3,), {})
    with pytest.raises(LookupError, match="arguments"):
        run.run(scale, (X,), {"a": 1})


def test_last_used_entry_goes_first():
    first = constant("first", (("arg", 0), ("any",)))
    second = constant("second", (("arg", 0), ("scalar", "i")))
    run = dispatcher_of(first, second)
    assert run(1.5) == "first"
    assert run.run(second, (1,), {}) == "second"
    run.remove(first)
    assert run(1) == "second" and run(1.5)[0] == "miss"
    run.add(first)
    assert run(1) == "first"
    assert run.entries == (first, second)
    run.clear()
    assert run.entries == () and run(1)[0] == "miss"


def test_modes_are_counted():
    whole = constant(1, (("arg", 0), ("equal", "w")))
    broken = constant(2, (("arg", 0), ("equal", "b")), mode="broken")
    numpy_mode = constant(3, (("arg", 0), ("equal", "n")), mode="numpy", call=None)
    run = dispatcher_of(whole, broken, numpy_mode)
    assert run("w") == 1 and run("b") == 2
    assert run("n") == ("original", ("n",), {})
    run.count("broken")
    assert run.counts() == {"whole": 1, "broken": 2, "numpy": 1}
    with pytest.raises(ValueError):
        run.count("half")


def test_exceptions_pass_unchanged():
    error = KeyError("mine")

    def raising(*args, **kwargs):
        raise error

    called = entry_of(None, [], [], call=raising, tree=("const", None))
    for run in (Dispatcher(raising, None), dispatcher_of(called)):
        with pytest.raises(KeyError) as caught:
            run()
        assert caught.value is error
    run = Dispatcher(miss, raising)
    run.add(constant(0, mode="numpy", call=None))
    with pytest.raises(KeyError):
        run()


@pytest.mark.parametrize("answer", [[], [1, 2], (1,), 7])
def test_callable_must_answer_with_its_outputs(answer):
    entry = entry_of(None, [], [("array", FLOAT64, 0, None)], call=lambda inputs: answer)
    with pytest.raises(TypeError, match="one object per output"):
        dispatcher_of(entry)()


def test_a_callable_s_failed_check_and_size_guard():
    step = (("arg", 0), ("scalar", "f"))
    entry = constant(5, step, inputs=(0,), fits=lambda inputs: inputs[0] > 0)
    run = dispatcher_of(entry)
    assert run(1.0) == 5
    assert run(-1.0)[0] == "miss"
    assert run.explain_miss((-1.0,), {}) == ["sizes"]
    with pytest.raises(NoMatch):
        run.run(entry, (-1.0,), {})
    failing = dispatcher_of(constant(5, call=lambda inputs: None))
    assert failing()[0] == "original"
    assert failing.counts() == {"whole": 0, "broken": 0, "numpy": 1}


def test_a_name_that_must_be_absent():
    scope = {}
    run = dispatcher_of(constant(5, (("global", scope, "len"), ("absent",)), npositional=0))
    assert run() == 5
    scope["len"] = 1
    assert run()[0] == "miss"
    del scope["len"]
    assert run() == 5


def test_callable_gets_inputs_and_gives_outputs():
    steps = [(("arg", 0), ("any",)), (("arg", 1), ("scalar", "f")), array_step(2, X)]
    outputs = [("input", 1), ("array", FLOAT64, 1, None)]
    tree = ("tuple", [("leaf", 0), ("leaf", 1)])
    entry = entry_of(
        None, steps, outputs, inputs=(1, 2), call=lambda inputs: [inputs[0] * inputs[1]], tree=tree
    )
    x, y = dispatcher_of(entry)(None, 2.0, X)
    assert x is X
    np.testing.assert_array_equal(y, 2 * X)


@pytest.mark.parametrize("setting", ["raise", "call", "print", "log"])
def test_errstate_that_acts_runs_numpy(scale, setting):
    run = dispatcher_of(scale)
    run(X)
    with np.errstate(divide=setting):
        assert run(X)[0] == "original"
        with np.errstate(all="ignore"):
            assert isinstance(run(X), np.ndarray)
        assert run(X)[0] == "original"
    assert isinstance(run(X), np.ndarray)
    assert run.counts() == {"whole": 3, "broken": 0, "numpy": 2}


def test_errstate_belongs_to_a_thread(scale):
    run = dispatcher_of(scale)
    results = []
    with np.errstate(all="raise"):
        thread = threading.Thread(target=lambda: results.append(run(X)))
        thread.start()
        thread.join()
        assert run(X)[0] == "original"
    assert isinstance(results[0], np.ndarray)


def test_size_guards_of_native_code(tmp_path):
    native = compile_native(tmp_path, "if (in[1] % 2) return 1; out[1] = in[1];", SCALE_RUN)
    run = dispatcher_of(entry_of(native, [array_step(0, X)], [("array", FLOAT64, 1, None)]))
    assert isinstance(run(np.ones(4)), np.ndarray)
    assert run(np.ones(5))[0] == "miss"
    assert run.explain_miss((np.ones(5),), {}) == ["sizes"]


def test_overlap_and_sameness():
    steps = [array_step(0, X), array_step(1, X)]
    apart = constant("apart", *steps, inputs=(0, 1), disjoint=((0, 1),))
    same = constant("same", *steps, inputs=(0, 1), disjoint=(("same", 0, 1),))
    run = dispatcher_of(same, apart)
    x = np.zeros(100)
    assert run(x[:50], x[50:]) == "apart"
    assert run(x, x) == "same"
    assert run(x, x[:])[0] == "miss"
    assert run(x[:51], x[50:])[0] == "miss"
    assert run.explain_miss((x[:51], x[50:]), {}) == ["overlap", "overlap"]
    backwards = [(("arg", k), ("array", FLOAT64, 1, (-1,), ("n",), None)) for k in range(2)]
    run = dispatcher_of(constant("apart", *backwards, inputs=(0, 1), disjoint=((0, 1),)))
    assert run(x[49::-1], x[:49:-1]) == "apart"
    assert run(x[50::-1], x[:49:-1])[0] == "miss"


def test_explain_miss_of_the_call_itself():
    two = constant(2, npositional=2)
    named = constant(3, (("kw", "a"), ("any",)), npositional=0, kwnames=("a",))
    run = dispatcher_of(two, named)
    assert run.explain_miss((4,), {}) == ["arguments", "arguments"]
    assert run.explain_miss((), {"a": 1}) == ["arguments", None]


def test_explain_miss_names_the_step():
    steps = (("arg", 0), ("type", int)), (("arg", 0), ("equal", 3))
    entry = constant(1, *steps, npositional=1)
    run = dispatcher_of(entry)
    assert run(3) == 1
    assert run.explain_miss((4,), {}) == [1]
    assert run.explain_miss((4.0,), {}) == [0]


def test_failed_check(tmp_path):
    native = compile_native(tmp_path, SCALE_PREPARE, "return 5;")
    entry = entry_of(native, [array_step(0, X)], [("array", FLOAT64, 1, None)])
    run = dispatcher_of(entry)
    assert run(X)[0] == "original"
    assert run.counts() == {"whole": 0, "broken": 0, "numpy": 1}
    entry.on_failure = lambda x: ("instead", x)
    assert run(X) == ("instead", X)
    assert run.counts() == {"whole": 0, "broken": 0, "numpy": 2}


class Model:
    pass


def test_is_a_method_on_a_class(scale):
    class Jitted(Dispatcher):
        @property
        def name(self):
            return self.original.__name__

    for kind in (Dispatcher, Jitted):
        run = kind(miss, original)
        Model.step = run
        model = Model()
        assert model.step(3, k=1) == ("miss", (model, 3), {"k": 1})
        bound = model.step
        assert bound.__self__ is model and bound.__func__ is run
        assert bound(4) == ("miss", (model, 4), {})
        assert Model.step is run
        run.__doc__ = "doc"
        run.anything = 3
        assert (run.__doc__, run.anything) == ("doc", 3)
    assert run.name == "original"


def test_subclass_may_override_the_call():
    class Loud(Dispatcher):
        def __call__(self, *args, **kwargs):
            return "loud", super().__call__(*args, **kwargs)

    assert Loud(miss, original)(1, a=2) == ("loud", ("miss", (1,), {"a": 2}))


def test_nested_dispatchers(scale):
    inner = dispatcher_of(scale)
    call = entry_of(
        None,
        [array_step(0, X)],
        [("array", FLOAT64, 1, None)],
        call=lambda inputs: [inner(inputs[0])],
    )
    outer = dispatcher_of(call)
    np.testing.assert_array_equal(outer(X), X * 2 + 1)
    assert inner.counts()["whole"] == outer.counts()["whole"] == 1


def test_entries_may_change_while_guards_run(scale):
    class Clearing:
        @property
        def value(self):
            run.clear()
            gc.collect()
            return 1

    entry = constant(
        "done", (("arg", 0), ("any",)), (("attr", 0, "value"), ("equal", 1)), npositional=1
    )
    run = dispatcher_of(entry)
    del entry
    assert run(Clearing()) == "done"
    assert run.entries == ()


def test_many_threads_share_a_dispatcher(tmp_path):
    native = compile_native(tmp_path, SCALE_PREPARE, SCALE_RUN)
    run = Dispatcher(lambda args, kwargs: args[0] * 2 + 1, original)
    wrong = []

    def call(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for turn in range(300):
            x = rng.standard_normal(int(rng.integers(2, 20_000)))
            if turn % 50 == seed:
                run.clear()
                run.add(
                    entry_of(
                        native,
                        [array_step(0, x)],
                        [("array", FLOAT64, 1, None)],
                        release_gil_words=0,
                    )
                )
            if not np.array_equal(run(x), x * 2 + 1):
                wrong.append(seed)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert run.counts()["whole"] > 1000


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_calls_leak_nothing(scale):
    config = {"lr": 0.123}
    steps = [
        array_step(0, X),
        (("arg", 1), ("dict", dict, ("lr",))),
        (("item", 1, "lr"), ("scalar", "f")),
        (("kw", "key"), ("equal", "valuable")),
    ]
    outputs = [("array", FLOAT64, 1, None), ("input", 1)]
    tree = ("dict", dict, ("y", "lr"), [("leaf", 0), ("tuple", [("leaf", 1)])])
    entry = entry_of(
        scale.native,
        steps,
        outputs,
        npositional=2,
        kwnames=("key",),
        inputs=(0, 2),
        tree=tree,
    )
    run = dispatcher_of(entry)
    word = "".join(["valu", "able"])
    objects = (X, config, config["lr"], word, run, entry)
    counts = [sys.getrefcount(item) for item in objects]
    small = np.zeros(1)

    def repeat(times: int) -> None:
        for _ in range(times):
            run(X, config, key=word)
            run(small, config, key=word)  # a miss

    repeat(5_000)
    before = resident_bytes()
    repeat(50_000)
    assert resident_bytes() - before < 1 << 20
    assert run.counts()["whole"] == 55_000
    gc.collect()
    assert [sys.getrefcount(item) for item in objects] == counts


def test_large_results_go_back_to_the_pool(scale):
    run = dispatcher_of(scale)
    x = np.ones(1 << 17)
    for _ in range(10):
        run(x)
    before = resident_bytes()
    for _ in range(1000):
        run(x)
    assert resident_bytes() - before < 4 << 20


def test_cycles_are_collected():
    class Owner:
        alive = 0

        def __init__(self):
            Owner.alive += 1
            self.run = Dispatcher(self.miss, original)
            self.run.add(constant(0, (("root", self), ("any",)), (("attr", 0, "x"), ("any",))))

        def miss(self, args, kwargs):
            return None

        def __del__(self):
            Owner.alive -= 1

    for _ in range(10):
        Owner()
    gc.collect()
    assert Owner.alive == 0
