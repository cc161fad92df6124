"""Functions that cannot be captured whole, each with a maker of its arguments.

In: nothing. Out: `PROGRAMS`, pairs of a function and a maker. Their effects go to `LOG`, `STATE`,
`RNG`, standard output, or into their arguments; `reset()` puts all back.
"""

import contextlib
import dataclasses
import math

import numpy as np

LOG: list = []
STATE = {"count": 0, "best": None}
COUNT = 0
SCALE = 2.0
RNG = np.random.default_rng(0)
PROGRAMS: list = []


def reset():
    """Put the state of this module back."""
    global COUNT, RNG
    LOG.clear()
    STATE.clear()
    STATE.update(count=0, best=None)
    COUNT = 0
    RNG = np.random.default_rng(7)
    np.random.seed(7)


def state():
    """What the programs have left behind."""
    legacy = np.random.get_state()[1].tolist(), np.random.get_state()[2:]
    return list(LOG), dict(STATE), COUNT, RNG.bit_generator.state, legacy


def vector(n=20):
    return np.linspace(-1.0, 2.0, n)


def program(*makers):
    """Register a function with makers of its arguments."""

    def register(f):
        PROGRAMS.append((f, lambda: tuple(make() for make in makers)))
        return f

    return register


def shout(x):
    y = np.exp(x) * 2
    print("helper", y.sum().round(6))
    return y + 1


# ------------------------------------------------------------ printing


@program(vector)
def print_between(x):
    y = np.exp(x) * 2 + 1
    print("sum", np.sum(y**2).round(6))
    z = y - y.mean()
    return z * 3


@program(vector)
def print_often(x):
    print("a", x.shape)
    y = x * 2 + 1
    print("b", y.dtype, f"{np.sum(y):.4f}")
    z = np.sqrt(np.abs(y))
    print("c", end=" ")
    z = z - x
    print("d", z.max() > 1, len(z))
    return y, z


@program(vector)
def print_in_loop(x):
    total = 0.0
    for k in range(4):
        x = np.cos(x) + k
        if k % 2 == 0:
            print(k, float(np.round(x.sum(), 6)))
        total += x.mean() * k
    return x, total


@program(vector)
def print_with_keywords(x):
    print(*(np.round(x[:3] * 2, 3)), sep=";", end="!\n")
    return x * 2 + 1


@program(vector)
def print_first_and_last(x):
    print("begin")
    y = np.tanh(x) * x
    z = y.sum() + y
    print("end")
    return z


# ------------------------------------------------------------ effects on older objects


@program(vector)
def append_to_outer(x):
    y = np.sin(x) * 2
    LOG.append(float(y.sum()))
    return y * y + 1


@program(vector, list)
def append_to_argument(x, out):
    for k in range(3):
        x = x * 1.5 + k
        out.append(x.copy())
        out.append(x.sum() + k)
    return len(out)


@program(vector)
def update_dict(x):
    STATE["count"] += 1
    y = x * STATE["count"] + 1
    STATE["best"] = y.max() * 2
    return y / STATE["count"]


@program(vector)
def global_counter(x):
    global COUNT
    COUNT += 1
    y = np.exp(x) + COUNT
    COUNT = COUNT + int(y.shape[0] > 3)
    return y * COUNT


@program(vector, lambda: {"w": np.ones(20)})
def dict_argument(x, params):
    g = 2 * (params["w"] - x)
    params["w"] = params["w"] - 0.1 * g
    params["step"] = params.get("step", 0) + 1
    return np.sum((params["w"] - x) ** 2)


@dataclasses.dataclass
class Momentum:
    rate: float
    velocity: np.ndarray
    steps: int = 0

    def update(self, w, g):
        self.velocity = 0.9 * self.velocity - self.rate * g
        self.steps += 1
        return w + self.velocity


@program(lambda: Momentum(0.1, np.zeros(20)), vector, vector)
def optimizer(momentum, w, x):
    for _ in range(3):
        g = 2 * (w - x * 3)
        w = momentum.update(w, g)
        print(momentum.steps)
    return w


# ------------------------------------------------------------ random numbers


@program(vector)
def generator_inside_expression(x):
    return np.exp(x) * RNG.normal(size=x.shape[0]) + np.sin(x)


@program(lambda: 5)
def legacy_random(n):
    a = np.random.rand(n) + np.random.normal(0.0, 1.0, size=n)
    return a * 2 + np.random.randint(0, 10, size=n)


@program(vector, lambda: np.random.default_rng(3))
def generator_argument(x, rng):
    noise = rng.normal(size=x.size)
    y = x + 0.1 * noise
    keep = rng.random(x.size) < 0.5
    return np.where(keep, y, 0.0) / 0.5, rng.integers(10)


@program(vector)
def random_walk(x):
    path = np.zeros(10)
    place = x.sum()
    for i in range(10):
        place += RNG.standard_normal() * 0.5
        path[i] = place**2
    return path - path.mean()


@program(lambda: 50)
def monte_carlo(n):
    rng = np.random.default_rng(1)
    xy = rng.random((n, 2)) * 2 - 1
    inside = (xy**2).sum(axis=1) <= 1.0
    rng.shuffle(xy)
    return 4 * inside.mean(), xy[0] * 2


# ------------------------------------------------------------ order of evaluation


def noisy(value, name):
    LOG.append(name)
    return value


@program(vector)
def order_of_calls(x):
    y = noisy(x * 2, "a") + np.sqrt(noisy(x**2, "b")) * noisy(3.0, "c")
    return y - noisy(1, "d")


@program(vector)
def order_with_rebinding(x):
    def bump():
        nonlocal x
        x = x + 1
        return x.sum()

    y = x * 2 + bump() + x
    return y, x


@program(vector)
def order_with_mutation(x):
    def double():
        x[:] = x * 2
        LOG.append(1)
        return 1.0

    y = np.sum(x) + double() + np.sum(x)
    return y, x


@program(vector)
def order_with_global(x):
    def change():
        global COUNT
        COUNT += 10
        return 1.0

    return COUNT + x * change() + COUNT


@program(vector)
def short_circuit(x):
    y = x * 2
    if y.sum() > 1e9 and noisy(True, "never"):
        return x
    ok = y.max() > 0 or noisy(False, "never, either")
    z = np.exp(y) if noisy(ok, "asked") else np.log(y)
    return z * 2, ok


@program(vector)
def chained_comparison(x):
    return 0.0 < np.sum(x) < noisy(1e3, "high"), x * 2 + 1


@program(vector, lambda: [3, 1])
def targets_with_calls(x, places):
    out = np.zeros(8)
    out[noisy(places[0], "target")] = np.sum(noisy(x, "value") ** 2)
    out[places[1]] += RNG.random() * 2
    return out * 2


@program(vector)
def keywords_and_stars(x):
    args = (x * 2, x + 1)
    return np.add(*args, **noisy({}, "kw")) * np.sum(noisy(x, "x"), axis=noisy(0, "axis"))


@program(vector)
def subscript_of_call(x):
    table = {"a": x * 2, "b": x + 1}
    return table[noisy("b", "key")] * 3 + noisy(x, "x")[1:2]


# ------------------------------------------------------------ branches and loops


@program(vector)
def branches_that_differ(x):
    if np.sum(x) > 0:
        result = {"positive": x * 2 + 1}
        LOG.append(1)
    else:
        result = [np.exp(x)]
    return result, x.sum() * 2


@program(vector)
def branch_by_item(x):
    i = int(np.argmax(np.abs(x)))
    LOG.append(i)
    names = {0: "first", len(x) - 1: "last"}
    y = x * 2 + i
    return names.get(i, "middle"), y[i] * y


@program(vector)
def while_to_convergence(x):
    steps = 0
    while True:
        new = 0.5 * (x + np.cos(x))
        change = np.abs(new - x).max()
        x = new
        steps += 1
        if steps == 2:
            print("two", round(float(change), 6))
        if change < 1e-3:
            break
    return x, steps


@program(vector)
def break_continue_else(x):
    for k in range(5):
        x = x * 1.1 + 0.1
        if k == 1:
            continue
        LOG.append(k)
        if x.sum() > 1e9:
            break
    else:
        x = np.sqrt(np.abs(x)) + 1
    while x.sum() > 1.0:
        x = x * 0.5 - 0.1
        print("halved")
    else:
        x = x + 3
    return x


@program(vector)
def early_return(x):
    print("start")
    y = x * 2 + 1
    for k in range(3):
        y = y + k
        if y.sum() > 40:
            LOG.append(k)
            return y * 10
    return y - 1


@program(vector)
def zero_trips(x):
    last = x * 2
    for k in range(0):
        last = x * k
        print("never")
    return last + 1


@program(vector)
def maybe_unbound(x):
    if x.sum() < -1e9:
        y = x * 2
    print("before")
    z = x + 1
    LOG.append("before the error")
    return y * 2 + z


@program(vector)
def unbound_after_loop(x):
    for k in range(0):
        value = x * k
    LOG.append(1)
    x[0] = 5.0
    return value + 1


@program(vector)
def deleted_name(x):
    y = x * 2 + 1
    print("y")
    del y
    z = x + 1
    LOG.append(z.sum())
    return y + z  # noqa: F821


@program(vector)
def loop_over_results(x):
    total = 0.0
    for value in np.round(x * 2, 3):
        total += value
    for i, row in enumerate(np.outer(x[:3], x[:4])):
        LOG.append(float(row.sum()))
        total = total + np.dot(row, row) * i
    return total


@program(lambda: [vector(3), vector(5), vector(4)])
def ragged_list(arrays):
    out = []
    for a in arrays:
        out.append(np.sin(a) * a.size)
        LOG.append(a.size)
    return out, sum(float(a.sum()) for a in out)


@program(vector)
def comprehension_with_effect(x):
    parts = [noisy(x * k, k) for k in range(3)]
    y = np.stack(parts).sum(axis=0) + 1
    return y, {k: float(np.sum(p**2)) for k, p in enumerate(parts)}


@program(vector)
def walrus(x):
    if (n := np.sum(noisy(x, "x") * 2)) > 0:
        return x * n
    return n


# ------------------------------------------------------------ sizes that depend on data


@program(vector)
def masked_then_sorted(x):
    y = np.sort(x[x > 0] * 2)
    n = len(y)
    print(n)
    z = y[: n // 2] ** 2 + 1
    return z, n, np.unique(np.round(x)) * 2


@program(vector)
def where_and_index(x):
    (places,) = np.nonzero(x > 0.5)
    chosen = x[places] * 2 + places
    print(len(places))
    return np.cumsum(chosen) + places.size


@program(lambda: np.array([3, 1, 3, 2, 1, 1]))
def unique_counts(labels):
    values, counts = np.unique(labels, return_counts=True)
    p = counts / counts.sum()
    LOG.append(len(values))
    return -np.sum(p * np.log(p)), values * 2


# ------------------------------------------------------------ exceptions


@program(vector)
def try_around_numpy(x):
    try:
        y = x * 2 + 1
        z = y.reshape(3, 7)
        LOG.append("not reached")
    except ValueError as e:
        LOG.append(type(e).__name__)
        z = y - 1
    return z * 2


@program(vector)
def finally_runs(x):
    y = x * 2
    try:
        y = np.exp(y) + 1
        print("inside")
        y = y / y.sum()
        return y * 2
    finally:
        LOG.append(float(y.sum().round(6)))


@program(lambda: np.zeros((3, 3)))
def singular(a):
    for k in range(3):
        try:
            b = a + k * np.eye(3)
            c = np.linalg.inv(b) @ b
            LOG.append("fine")
        except np.linalg.LinAlgError:
            LOG.append("singular")
            c = b * 0
        else:
            c = c + 1
    return c


@program(vector)
def raises_in_the_middle(x):
    x[0] = 10.0
    print("one")
    x[1:] *= 2
    y = x @ np.ones(3)
    x[2] = 99.0
    return y


@program(vector)
def raises_own(x):
    y = np.sqrt(np.abs(x)) * 2
    LOG.append("checked")
    if y.max() > 1:
        raise ValueError(f"too large: {y.max():.3f}")
    return y


@program(vector)
def raise_and_chain(x):
    try:
        y = np.sum(x * 2) + noisy(1, "a")
        raise KeyError("k")
    except KeyError as e:
        raise RuntimeError(f"no {y:.3f}") from e


@program(vector)
def asserts(x):
    y = x * 2 + 1
    print("y")
    assert y.sum() < 0, "the sum is positive"
    return y


@program(vector)
def nested_try(x):
    for k in range(3):
        try:
            try:
                y = x * k + 1
                if k == 1:
                    raise ValueError(k)
                LOG.append(float(y.sum()))
            finally:
                LOG.append(k)
        except ValueError:
            y = x - 1
            continue
    return y


# ------------------------------------------------------------ context managers


class Region:
    def __init__(self, swallow=False):
        self.swallow = swallow

    def __enter__(self):
        LOG.append("in")
        return self

    def __exit__(self, kind, error, traceback):
        LOG.append(f"out {kind and kind.__name__}")
        return self.swallow


@program(vector)
def with_own_manager(x):
    with Region() as region:
        y = np.exp(x) * 2
        z = y.sum() + y
    return z, region.swallow, y * 2


@program(vector)
def with_swallowed_error(x):
    y, z = x, x
    with Region(swallow=True), contextlib.nullcontext():
        y = np.exp(x) * 2
        z = y.reshape(3, 7) + 1
        y = y * 0
    return y + 1, z * 2


@program(vector)
def with_errstate(x):
    print("start")
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.log(x) / x
        z = np.where(np.isfinite(y), y, 0.0)
    with np.errstate(all="raise"):
        w = z * 2 + 1
    return w - z


@program(vector)
def errstate_that_raises(x):
    LOG.append("start")
    with np.errstate(divide="raise"):
        y = 1 / (x - x)
        LOG.append("not reached")
    return y


# ------------------------------------------------------------ functions


@program(vector)
def calls_helper(x):
    y = shout(x * 2) + 1
    return y * shout(y - x).mean()


@program(vector)
def closure_over_rebound(x):
    factor = 2.0

    def scaled(v):
        return v * factor

    y = scaled(x) + 1
    print("y")
    factor = 3.0
    z = scaled(y) - 1
    return z


@program(vector)
def nested_counter(x):
    calls = 0

    def f(v):
        nonlocal calls
        calls += 1
        return np.sin(v) * calls

    y = f(x) + f(x * 2)
    return y, calls


def factorial_like(x, n):
    print("depth", n)
    if n == 0:
        return x + 1
    return factorial_like(x * 1.5, n - 1) * 2


PROGRAMS.append((factorial_like, lambda: (vector(), 3)))


@program(vector)
def lambda_kept(x):
    f = lambda v: v * SCALE + x  # noqa: E731
    LOG.append(f)
    LOG.pop()
    return f(x) + f(x * 2)


@program(vector)
def late_generator(x):
    items = (x * k for k in range(3))
    x = x + 1
    print("made")
    return sum(i.sum() for i in items), x * 2


@program(vector)
def imports_inside(x):
    import collections

    y = np.exp(x) * 2
    counts = collections.Counter(np.round(y).astype(int).tolist())
    return counts.most_common(1), y + 1


@program(vector)
def defines_class(x):
    class Local:
        weight = 2.0

        def __call__(self, v):
            return v * self.weight

    print(Local.__name__)
    return Local()(x) + np.cos(x)


@program(vector)
def star_targets(x):
    first, *rest = noisy((x * 2, x + 1, x - 1), "t")
    (a, b), c = (noisy(rest, "r"), first)
    return a * b + c, rest


@program(vector)
def defaults_and_stars(x, *args, scale=3.0, **kwargs):
    y = x * scale + len(args)
    print(args, sorted(kwargs))
    return y * y


@program(vector)
def strings_and_formats(x):
    name = f"x{len(x)}"
    y = x * 2 + 1
    LOG.append("%s %.3f" % (name, np.sum(y)))  # noqa: UP031
    return name.upper(), y * 2


@program(vector)
def item_as_key(x):
    best = {}
    for k in range(4):
        key = np.round(x * k).astype(int)[k].item()
        LOG.append(key)
        best[key] = best.get(key, 0.0) + float(np.sum(x) * k)
    return best


@program(vector)
def math_functions(x):
    a = math.sqrt(float(np.sum(x**2)))
    LOG.append(math.floor(a))
    return x / a + math.pi


# ------------------------------------------------------------ memory


@program(vector)
def in_place_between(x):
    x *= 2
    print(x[0])
    x[1:] += x[:-1]
    LOG.append(x[3])
    np.sqrt(np.abs(x), out=x)
    return x


@program(vector)
def view_across_a_break(x):
    v = x[::2]
    print(v.size)
    v *= 3
    y = x + 1
    LOG.append(v[0])
    v[:] = y[::2]
    return v, y


@program(vector)
def same_object_twice(x):
    y = x * 2
    pair = [y, y]
    print(len(pair))
    pair[0] += 1
    return pair, y is pair[1]


@program(vector)
def results_of_one_memory(x):
    y = np.exp(x)
    LOG.append(1)
    a = y * 2
    b = a[1:]
    c = a.reshape(4, 5)
    print(b.size)
    b[0] = 100.0
    return a, c


@program(vector)
def identity_kept(x):
    y = x
    print("x")
    x += 1
    z = y * 2
    return y is x, z


@program(vector, lambda: np.arange(5))
def swapped(x, k):
    a, b = x[:5] * 2, k + 1.5
    for i in range(3):
        a, b = b, a * 0.5
        LOG.append(i)
    return a, b


@program(lambda: np.array([{"a": 1}, 2], dtype=object), vector)
def object_array(things, x):
    y = x * 2
    print(things[0])
    y = y + len(things)
    return y * 2


# ------------------------------------------------------------ generators


@program(vector)
def generator(x):
    y = np.exp(x) * 2
    yield y
    y = y - y.mean()
    got = yield y.sum()
    LOG.append(got)
    for k in range(3):
        yield np.sum(y * k) + k
    return y


@program(vector)
def batches(x):
    for start in range(0, len(x), 8):
        part = x[start : start + 8] * 2 + 1
        yield part / part.sum()


@program(vector)
def delegates(x):
    y = x * 2 + 1
    result = yield from generator(y)
    yield result * 2


@program(vector)
def uses_generator(x):
    total = np.zeros(8)
    for part in batches(x):
        total[: len(part)] += part**2
    return total * 2


@program(vector)
def growing_history(x):
    history = []
    for _ in range(30):
        x = x - 0.1 * np.tanh(x)
        history.append(np.sum(x * x))
        print(f"{len(history)}: {history[-1]:.6f}")
        if len(history) > 1 and abs(history[-1] - history[-2]) < 1e-2:
            break
    return x, len(history)


@program(lambda: {c: vector() * i for i, c in enumerate("abc", 1)}, vector)
def dict_of_parameters(params, x):
    for name in params:
        gradient = 2 * (params[name] - x)
        params[name] -= 0.1 * gradient
        LOG.append(name)
    return {name: p.sum() for name, p in params.items()}


@program(vector)
def matches(x):
    y = x * 2 + 1
    match noisy({"kind": "sum", "by": 2.0}, "m"):
        case {"kind": "sum", "by": factor}:
            y = y * factor + np.sum(y)
        case _:
            y = -y
    return y + 1


@program(vector)
def while_with_walrus(x):
    while (size := np.abs(noisy(x, "x")).max()) > 0.5:
        x = x * 0.7 - 0.01
        x = x / (1 + size)
    return x * 2, size


@program(vector)
def jumps_in_loops_and_tries(x):
    total = 0.0
    for k in range(6):
        try:
            y = x * k + 1
            if k == 1:
                continue
            if k == 4:
                break
            for j in range(3):
                if j == 2:
                    break
                y = y * 0.5 + j
                LOG.append((k, j))
            else:
                y = y * 1e9
            total += y.sum()
        finally:
            LOG.append(k)
    else:
        total = -1.0
    return total


@program(vector)
def return_in_finally(x):
    y = x * 2
    try:
        y = y + 1
        raise KeyError(noisy("k", "raised"))
    finally:
        y = y * 3
        return y.sum() + y  # noqa: B012


@program(vector)
def chained_assignment(x):
    a = b = noisy(x * 2, "call") + 1
    a += 1
    c, d = e = (b * 2, noisy(3.0, "d"))
    return a, b is a, c * d, e


class Holder:
    def __init__(self):
        self.items = [0.0, 1.0]
        self.total = np.zeros(20)

    @property
    def size(self):
        LOG.append("size")
        return 2.0


@program(Holder, vector)
def stores_into_attributes(holder, x):
    holder.total += x * 2
    holder.items[1] += np.sum(x)
    holder.items[noisy(0, "place")] = np.max(x) * holder.size
    holder.last = y = np.exp(x) * holder.size
    del holder.items[:1]
    return y + holder.total, holder.items


@program(vector)
def keys_and_lambdas(x):
    rows = [noisy(x[k : k + 3] * k, k) for k in range(4)]
    best = max(rows, key=lambda row: float(np.sum(row)))
    ordered = sorted(range(4), key=lambda k: -rows[k].sum())
    apply = np.vectorize(lambda v: v * 2 + x[1])
    return best + 1, ordered, apply(x[:5]) * 2


@program(vector)
def nested_definitions(x):
    scale = np.sum(x * 2)

    def decorate(f):
        LOG.append(f.__name__)
        return f

    @decorate
    def inner(v, factor=scale * 2, *more):
        return v * factor + scale

    y = inner(x) + 1
    scale = scale + 1
    return inner(y, 0.5) * 2


@program(vector)
def sets_and_dicts(x):
    names = {noisy(k, k) for k in (3, 1, 2)}
    table = {n: np.sum(x * n) for n in sorted(names)}
    table.update(total=sum(table.values()))
    text = ", ".join(f"{k}={v:.3f}" for k, v in table.items())
    return table, text, [n for n in names if noisy(n, "n") > 1]


@program(vector)
def several_managers(x):
    with Region() as a, Region(swallow=True) as b:
        y = x * 2 + 1
        LOG.append((a.swallow, b.swallow))
        y = y @ np.ones((3, 3))
        LOG.append("not reached")
    y = y * 2
    return y


@program(vector)
def error_in_handler(x):
    y = x * 2 + 1
    try:
        try:
            y = y.reshape(7, 7) * 2
        except ValueError:
            y = y * 3
            y = np.linalg.inv(np.zeros((2, 2))) + y[0]
    except np.linalg.LinAlgError as e:
        LOG.append(type(e).__name__)
    return y + 1


@program(vector, lambda: 3)
def loop_variable_after_the_loop(x, n):
    for k in range(n):
        x = x * 1.5 + k
        LOG.append(k)
    y = x * k
    for value in x[:n]:
        total = value * 2
    print("done")
    return y + k, total, value


@program(vector)
def evaluated_in_text(x):
    y = x * 2
    print(f"{y[0]:.2f} {noisy(y, 'y').sum():.3f} {np.max(y) * 2:.{len('abc')}f} {y[1]!r:>10}")
    return f"{np.sum(y):.4f}", y + 1


@program(vector)
def conditional_parts(x):
    y = np.sum(x * 2) if noisy(True, "t") else np.sum(noisy(x, "never"))
    z = (noisy(0, "zero") or np.max(x)) + (noisy(1, "one") and np.min(x))
    w = [np.sum(x * k) if noisy(k, k) else None for k in range(3)]
    return y, z, w, not noisy(x.any(), "any")
