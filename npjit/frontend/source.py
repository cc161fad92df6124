"""The verified syntax tree of a running function.

`function_tree(code)` parses the function's source once and proves that the found node is the
function that runs: the node, recompiled inside a wrapper that has the same free variables, gives
the same bytecode, constants and names. A function whose source cannot be found or proven counts as
having none (None).
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import types
import weakref

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

# the trees of code that was compiled from them here
_made: weakref.WeakKeyDictionary[types.CodeType, Function] = weakref.WeakKeyDictionary()

_FUTURE_FLAGS = 0x1FF0000  # compiler flags that `from __future__ import` sets


@functools.lru_cache(maxsize=1024)
def function_tree(code: types.CodeType) -> Function | None:
    """The function's definition (decorators removed) or Lambda, with the file's lines and columns;
    None without source.
    """
    if code in _made:
        return _made[code]
    for imports in (_no_imports, _module_imports):
        for node in _candidates(code):
            if _same_code(compile_function(node, code, imports(code)), code):
                return node
    return None


def _no_imports(code: types.CodeType) -> tuple[ast.stmt, ...]:
    return ()


def _module_imports(code: types.CodeType) -> tuple[ast.stmt, ...]:
    """The file's module-level imports: CPython compiles `name.f()` otherwise where `name` is one of
    them.
    """
    return _imports_of("".join(linecache.getlines(code.co_filename)))


@functools.lru_cache(maxsize=64)
def _imports_of(source: str) -> tuple[ast.stmt, ...]:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ()
    found: list[ast.stmt] = []
    stack: list[ast.AST] = [*tree.body]
    while stack:
        n = stack.pop()
        if isinstance(n, (ast.Import, ast.ImportFrom)):
            if getattr(n, "module", "") != "__future__":  # the compiler flags say that
                found.append(n)
        elif not isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack.extend(ast.iter_child_nodes(n))
    return tuple(found)


def _candidates(code: types.CodeType) -> list[Function]:
    lines = linecache.getlines(code.co_filename)
    if not lines:
        return []
    if code.co_name == "<lambda>":
        return _lambdas(code, "".join(lines))
    try:
        source = "".join(inspect.getblock(lines[code.co_firstlineno - 1 :]))
        body = ast.parse(source if not source[:1].isspace() else f"if 1:\n{source}").body
    except (SyntaxError, IndentationError, OSError):
        return []
    node: ast.stmt | None = body[0] if body else None
    before = 1
    if isinstance(node, ast.If) and source[:1].isspace():
        node, before = node.body[0], 2
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name != code.co_name:
        return []
    ast.increment_lineno(node, code.co_firstlineno - before)
    node.decorator_list = []
    return [node]


def _lambdas(code: types.CodeType, source: str) -> list[Function]:
    """The lambdas that start on the code's first line, those at the code's own columns first."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []
    columns = {p[2] for p in code.co_positions() if p[0] == code.co_firstlineno and p[2]}
    found = [
        n
        for n in ast.walk(tree)
        if isinstance(n, ast.Lambda)
        and n.lineno <= code.co_firstlineno <= (n.end_lineno or n.lineno)
    ]
    return sorted(found, key=lambda n: (n.body.col_offset not in columns, -n.col_offset))


def compile_function(
    node: Function,
    code: types.CodeType,
    imports: tuple[ast.stmt, ...] = (),
    cells: tuple[str, ...] = (),
) -> types.CodeType:
    """The code object of `node`, compiled with the free variables of `code` and these further
    `cells`, under these module imports.
    """
    name = "_npjit_scope"
    body: list[ast.stmt] = [ast.Return(node) if isinstance(node, ast.Lambda) else node]
    if not isinstance(node, ast.Lambda) and node.name not in code.co_freevars:
        # to itself a function is a global, or not known
        body.insert(0, ast.Global([node.name]))
    arguments = ast.arguments(
        posonlyargs=[],
        args=[ast.arg(v) for v in (*code.co_freevars, *cells)],
        kwonlyargs=[],
        kw_defaults=[],
        defaults=[],
    )
    wrapper = ast.FunctionDef(
        name=name, args=arguments, body=body, decorator_list=[], type_params=[]
    )
    module = ast.fix_missing_locations(ast.Module([*imports, wrapper], []))
    flags = code.co_flags & _FUTURE_FLAGS
    compiled = compile(module, code.co_filename, "exec", flags=flags, dont_inherit=True)
    scope = _nested(compiled, name)
    return _nested(scope, "<lambda>" if isinstance(node, ast.Lambda) else node.name)


def compile_made(
    node: Function, code: types.CodeType, cells: tuple[str, ...] = ()
) -> types.CodeType:
    """The same for a tree that stands in no file; `function_tree` knows it by its code."""
    made = compile_function(node, code, cells=cells)
    _made[made] = node
    return made


def _nested(code: types.CodeType, name: str) -> types.CodeType:
    for const in code.co_consts:
        if isinstance(const, types.CodeType) and const.co_name == name:
            return const
    raise LookupError(name)


def _same_code(a: types.CodeType, b: types.CodeType) -> bool:
    """Whether two code objects do the same, wherever they were written."""
    if (a.co_code, a.co_names, a.co_varnames, a.co_freevars, a.co_cellvars) != (
        b.co_code,
        b.co_names,
        b.co_varnames,
        b.co_freevars,
        b.co_cellvars,
    ):
        return False
    if len(a.co_consts) != len(b.co_consts):
        return False
    return all(_same_const(x, y) for x, y in zip(a.co_consts, b.co_consts, strict=True))


def _same_const(a: object, b: object) -> bool:
    if isinstance(a, types.CodeType) and isinstance(b, types.CodeType):
        return _same_code(a, b)
    return type(a) is type(b) and repr(a) == repr(b)
