"""Worker threads: chunk bounds, nesting, several callers at once, forks, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from npjit._runtime import Dispatcher, num_threads, set_num_threads

from tests.native_code import FLOAT64, NEEDS_COMPILER, compile_native, entry_of

pytestmark = NEEDS_COMPILER

# x -> (begin, end) of each chunk of 0 <= i < len(x) with grain 10, -1 where there is none.
CHUNKS = """
  double* y = (double*)buffers[0];
  for (int i = 0; i < 16; ++i) y[i] = -1;
  api->parallel([](void* y, npjit_int64 begin, npjit_int64 end, int chunk) {
    ((double*)y)[2 * chunk] = begin;
    ((double*)y)[2 * chunk + 1] = end;
  }, y, in[1], 10);
  y[16] = api->chunks(in[1], 10);
"""
# Each element of y is counted up once per visit, by a nested parallel loop over the chunk.
NESTED = """
  struct Context { const npjit_api* api; double* y; npjit_int64 begin; };
  Context context{api, (double*)buffers[0], 0};
  for (npjit_int64 i = 0; i < in[1]; ++i) context.y[i] = ((const double*)in[0])[i];
  api->parallel([](void* p, npjit_int64 begin, npjit_int64 end, int) {
    Context inner = *(Context*)p;
    inner.begin = begin;
    inner.api->parallel([](void* p, npjit_int64 begin, npjit_int64 end, int) {
      Context* c = (Context*)p;
      for (npjit_int64 i = begin; i < end; ++i) c->y[c->begin + i] += 1;
    }, &inner, end - begin, 1);
  }, &context, in[1], 1);
"""
# For each of 8 chunks 1 where the caller did it. A worker takes 0.1 s for one; the caller waits for
# it to come, x[0] times 10 ms at most.
LATE = """
  struct Context { double* y; unsigned long caller; int came; long tries; };
  Context context{(double*)buffers[0], pthread_self(), 0, 0};
  context.tries = (long)((const double*)in[0])[0];
  api->parallel([](void* p, npjit_int64, npjit_int64, int chunk) {
    Context* c = (Context*)p;
    const bool is_caller = pthread_self() == c->caller;
    c->y[chunk] = is_caller;
    if (!is_caller) __atomic_store_n(&c->came, 1, __ATOMIC_SEQ_CST);
    if (!is_caller) usleep(100000);
    while (is_caller && !__atomic_load_n(&c->came, __ATOMIC_SEQ_CST) && c->tries > 0) {
      usleep(10000);
      c->tries -= 1;
    }
  }, &context, 80, 1);
"""
FOREVER = "while (!api->interrupted()) {} return NPJIT_INTERRUPTED;"


@pytest.fixture(autouse=True)
def restore_threads():
    before = num_threads()
    yield
    set_num_threads(before)


def dispatcher_of(native, outputs=None) -> Dispatcher:
    outputs = outputs or [("array", FLOAT64, 1, None)]
    dispatcher = Dispatcher(lambda args, kwargs: pytest.fail("no entry matched"), None)
    step = ("arg", 0), ("array", FLOAT64, 1, (-2,), "C", None)
    dispatcher.add(entry_of(native, [step], outputs, release_gil_words=0))
    return dispatcher


@pytest.fixture
def chunks(tmp_path) -> Dispatcher:
    return dispatcher_of(compile_native(tmp_path, "out[1] = 17;", CHUNKS))


@pytest.fixture
def nested(tmp_path) -> Dispatcher:
    return dispatcher_of(compile_native(tmp_path, "out[1] = in[1];", NESTED))


@pytest.mark.parametrize(
    ("threads", "n", "bounds"),
    [
        (1, 100, [(0, 100)]),
        (4, 100, [(0, 25), (25, 50), (50, 75), (75, 100)]),
        (4, 102, [(0, 26), (26, 52), (52, 77), (77, 102)]),
        (4, 29, [(0, 15), (15, 29)]),  # chunks of at least 10 items
        (4, 9, [(0, 9)]),
        (4, 0, [(0, 0)]),  # so that partial results of an empty reduction are written
    ],
)
def test_chunk_bounds_are_static(chunks, threads, n, bounds):
    set_num_threads(threads)
    for _ in range(50):
        got = chunks(np.zeros(n))
        assert got[16] == len(bounds)
        assert got[: 2 * len(bounds)].reshape(-1, 2).tolist() == [list(pair) for pair in bounds]
        assert (got[2 * len(bounds) : 16] == -1).all()


def test_the_caller_works_alone_after_a_worker_was_late(tmp_path):
    native = compile_native(
        tmp_path,
        "out[1] = 8;",
        LATE,
        'extern "C" unsigned long pthread_self(); extern "C" int usleep(unsigned);',
    )
    call = dispatcher_of(native)
    set_num_threads(2)
    if call(np.full(2, 200.0)).all():
        pytest.skip("no worker came within two seconds")
    assert call(np.full(2, 20.0)).all()


def test_thread_count_is_checked():
    with pytest.raises(ValueError, match="at least 1"):
        set_num_threads(0)
    set_num_threads(3)
    assert num_threads() == 3


def test_nested_loops_visit_each_item_once(nested):
    set_num_threads(4)
    for n in (1, 7, 1000):
        x = np.arange(n, dtype=float)
        np.testing.assert_array_equal(nested(x), x + 1)


def test_callers_at_once_and_changing_thread_counts(nested):
    x = np.arange(5000, dtype=float)
    wrong: list[int] = []

    def call() -> None:
        for _ in range(100):
            if not np.array_equal(nested(x), x + 1):
                wrong.append(1)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    count = 1
    while any(thread.is_alive() for thread in threads):
        set_num_threads(count % 5 + 1)
        count += 1
        time.sleep(0.001)
    assert wrong == []


def child_status(work) -> int:
    """Fork, do the work in the child under an alarm, and give its exit status."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        os._exit(0 if work() else 1)
    return os.waitpid(child, 0)[1]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_workers_wake_elsewhere_than_the_caller(chunks):
    allowed = os.sched_getaffinity(0)
    set_num_threads(3)  # so that the call of two threads starts a worker of its own
    chunks(np.zeros(100))
    before = set(os.listdir("/proc/self/task"))
    set_num_threads(2)
    chunks(np.zeros(100))
    (worker,) = set(os.listdir("/proc/self/task")) - before
    try:
        for cpu in sorted(allowed)[:2]:
            os.sched_setaffinity(0, {cpu})
            for _ in range(200):  # after a late worker the caller works alone for a while
                while Path(f"/proc/self/task/{worker}/stat").read_text().split()[2] != "S":
                    time.sleep(0.001)
                chunks(np.zeros(100))
                if os.sched_getaffinity(int(worker)) == allowed - {cpu}:
                    break
                time.sleep(0.05)
            assert os.sched_getaffinity(int(worker)) == allowed - {cpu}
    finally:
        os.sched_setaffinity(0, allowed)


def test_fork_after_use(nested):
    set_num_threads(4)
    x = np.arange(5000, dtype=float)
    nested(x)
    for _ in range(3):
        assert child_status(lambda: np.array_equal(nested(x), x + 1)) == 0
    np.testing.assert_array_equal(nested(x), x + 1)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_fork_while_the_workers_are_busy(nested):
    set_num_threads(4)
    x = np.arange(200_000, dtype=float)
    stop = threading.Event()

    def keep_busy() -> None:
        while not stop.is_set():
            nested(x)

    busy = threading.Thread(target=keep_busy)
    busy.start()
    try:
        statuses = [child_status(lambda: np.array_equal(nested(x), x + 1)) for _ in range(10)]
    finally:
        stop.set()
        busy.join()
    assert statuses == [0] * 10


def test_interrupt_ends_a_running_plan(tmp_path):
    run = dispatcher_of(compile_native(tmp_path, "", FOREVER), [("python", "f")])
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run(np.zeros(3))
    timer.join()


def test_handlers_exception_passes(tmp_path):
    class Stop(Exception):
        pass

    def handler(number, frame):
        raise Stop

    run = dispatcher_of(compile_native(tmp_path, "", FOREVER), [("python", "f")])
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(Stop):
            run(np.zeros(3))
    finally:
        signal.signal(signal.SIGALRM, before)


def test_scratch_is_aligned_and_grows(tmp_path):
    body = """
      char* a = (char*)api->scratch(100);
      for (int i = 0; i < 100; ++i) a[i] = 1;
      char* b = (char*)api->scratch(3000000);
      for (int i = 0; i < 3000000; ++i) b[i] = 1;
      *(double*)buffers[0] = (npjit_int64)a % 64 + (npjit_int64)b % 64;
    """
    run = dispatcher_of(compile_native(tmp_path, "", body), [("python", "f")])
    assert run(np.zeros(3)) == 0.0


@pytest.mark.parametrize(
    ("setting", "expected"), [("3", 3), ("", None), ("many", None), ("-2", None)]
)
def test_environment_sets_the_thread_count(setting, expected):
    program = "import npjit._runtime as r; print(r.num_threads())"
    environment = os.environ | {"NPJIT_NUM_THREADS": setting}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) == (expected or len(os.sched_getaffinity(0)))
    assert ("NPJIT_NUM_THREADS is no positive number" in done.stderr) == (expected is None)
