"""Where functions are cut: the text of the cut function and its segments.

In: functions whose calls of `effect` stay Python. Out: the statements that are left, without a run.
"""

import ast
import textwrap

import numpy as np
import pytest

from npjit.frontend.cut import cut
from npjit.frontend.marks import Marks, key_of, own_nodes
from npjit.frontend.source import function_tree

SCALE = 2.0


def effect(value):
    return value


class Own:
    value = 1.0


def texts(f):
    """The cut function and its segments, as text; temporaries renamed in the order of the text."""
    tree = function_tree(f.__code__)
    marks = Marks()
    for s in tree.body:
        for n in own_nodes(s):
            if isinstance(n, ast.Call) and ast.unparse(n.func) == "effect":
                marks.python[key_of(n)] = "an effect"
    made = cut(tree, f.__code__, f.__globals__, marks)
    found = [ast.unparse(made.node), *(ast.unparse(s.node) for s in made.segments)]
    names = sorted(
        {
            n.id
            for m in (made.node, *(s.node for s in made.segments))
            for n in ast.walk(m)
            if isinstance(n, ast.Name) and n.id.startswith("_npjit_")
        },
        key=lambda name: [part.zfill(4) for part in name.split("_")],
    )
    for number, name in enumerate((n for n in names if "call" not in n), 1):
        found = [t.replace(name, f"t{number}") for t in found]
    bodies = [t.replace("_npjit_call_", "call_").partition(":\n")[2] for t in found]
    return [textwrap.dedent(b) for b in bodies]


def order(x):
    y = np.exp(x) * effect(x) + np.sin(x)
    return y


def nothing_after(x):
    y = x * 2
    effect(y)


def argument_joins(x):
    y = x * 2
    effect(np.sum(y))
    return y + 1


def attribute_is_loaded_first(x, own):
    return own.value * effect(x) * SCALE


def short_circuit(x):
    return np.any(x > 1) and effect(x)


def branch(x):
    if np.sum(x) > 0:
        effect(1)
        y = x * 2
    else:
        y = x * 3
    return y + 1


def loop(x):
    for k in range(3):
        x = x * 2 + k
        effect(k)
    return x - 1


def loop_without_break(x):
    effect(x)
    for k in range(3):
        x = x * 2 + k
    return x - 1


def early_return(x):
    effect(x)
    if x.sum() > 0:
        return x * 2
    return x * 3


def caught(x):
    try:
        y = x * 2
        z = y + 1
        effect(z)
    except ValueError:
        return y
    return z


def maybe_unbound(x, flag):
    if flag:
        y = x * 2
    effect(x)
    return y + x * 3


def seen_by_a_function(x):
    y = x * 2
    z = y + 1

    def g():
        return y

    y = z * 2
    w = y - 1
    effect(g)
    return w


def generator(x):
    y = x * 2
    got = yield y + 1
    return got * y


def constant(x):
    taps = 3
    effect(x)
    out = []
    for k in range(taps):
        out.append(x[k] * 2)
    return np.stack(out)


CASES = {
    constant: [
        """
        taps = 3
        effect(x)
        return call_1(x)""",
        """
        taps = 3
        out = []
        for k in range(taps):
            out.append(x[k] * 2)
        return np.stack(out)""",
    ],
    order: [
        """
        t1 = call_1(x)
        t2 = effect(x)
        y = call_2(t2, t1, x)
        return y""",
        """
        t1 = np.exp(x)
        return t1""",
        """
        y = t1 * t2 + np.sin(x)
        return y""",
    ],
    nothing_after: [
        """
        y = call_1(x)
        effect(y)""",
        """
        y = x * 2
        return y""",
    ],
    argument_joins: [
        """
        t1, y = call_1(x)
        effect(t1)
        return call_2(y)""",
        """
        y = x * 2
        t1 = np.sum(y)
        return (t1, y)""",
        "return y + 1",
    ],
    attribute_is_loaded_first: [
        """
        t1 = own.value
        t2 = effect(x)
        return call_1(t1, t2)""",
        "return t1 * t2 * SCALE",
    ],
    short_circuit: [
        "return call_1(x) and effect(x)",
        "return np.any(x > 1)",
    ],
    branch: [
        """
        t1 = call_1(x)
        if t1:
            effect(1)
            y = call_2(x)
        else:
            y = call_3(x)
        return call_4(y)""",
        """
        t1 = np.sum(x) > 0
        return t1""",
        """
        y = x * 2
        return y""",
        """
        y = x * 3
        return y""",
        "return y + 1",
    ],
    loop: [
        """
        for k in range(3):
            x = call_1(k, x)
            effect(k)
        return call_2(x)""",
        """
        x = x * 2 + k
        return x""",
        "return x - 1",
    ],
    loop_without_break: [
        """
        effect(x)
        return call_1(x)""",
        """
        for k in range(3):
            x = x * 2 + k
        return x - 1""",
    ],
    early_return: [
        """
        effect(x)
        return call_1(x)""",
        """
        if x.sum() > 0:
            return x * 2
        return x * 3""",
    ],
    caught: [
        """
        try:
            y = call_1(x)
            z = call_2(y)
            effect(z)
        except ValueError:
            return y
        return z""",
        """
        y = x * 2
        return y""",
        """
        z = y + 1
        return z""",
    ],
    maybe_unbound: [
        """
        if flag:
            y = call_1(x)
        effect(x)
        return y + call_2(x)""",
        """
        y = x * 2
        return y""",
        "return x * 3",
    ],
    seen_by_a_function: [
        """
        y = call_1(x)
        z = call_2(y)

        def g():
            return y
        y = call_3(z)
        w = call_4(y)
        effect(g)
        return w""",
        """
        y = x * 2
        return y""",
        """
        z = y + 1
        return z""",
        """
        y = z * 2
        return y""",
        """
        w = y - 1
        return w""",
    ],
    generator: [
        """
        t1, y = call_1(x)
        got = (yield t1)
        return call_2(got, y)""",
        """
        y = x * 2
        t1 = y + 1
        return (t1, y)""",
        "return got * y",
    ],
}


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_where_it_is_cut(f):
    assert texts(f) == [textwrap.dedent(t).strip("\n") for t in CASES[f]]
