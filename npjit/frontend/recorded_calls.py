"""Calls in functions that run over lazy arrays: what is called may have to be read first, wherever
the function has found it.

In: the code of a user's function. Out: the same function with every call's callee handed to
`_nj_called` (`Names.called`), where its source is known:

    y = self.layers[k].apply(x)    ->    y = _nj_called(self.layers[k].apply)(x)
"""

from __future__ import annotations

import ast
import copy
import functools
import types

from npjit.frontend.source import compile_function, function_tree

CALLED = "_nj_called"


@functools.lru_cache(maxsize=1024)
def calling_code(code: types.CodeType) -> types.CodeType:
    """See the module's docstring; the code itself where its source is not known."""
    tree = function_tree(code)
    if tree is None:
        return code
    node = _Calls().visit(copy.deepcopy(tree))
    made = compile_function(ast.fix_missing_locations(node), code)
    # a function object takes as many cells as its code has free variables, in their order
    return made if made.co_freevars == code.co_freevars else code


class _Calls(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        callee = ast.Call(ast.Name(CALLED, ast.Load()), [node.func], [])
        node.func = ast.copy_location(callee, node.func)
        return node
