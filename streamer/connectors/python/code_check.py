"""Checks of code in Python without running it: syntax, names, and the function that is called."""

from __future__ import annotations

import ast
import builtins
import difflib
import symtable
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from streamer.connectors.python.annotations import EXPECTED_TEXT, Takes, read_annotation
from streamer.sdk.spec import BadTextError

PROVIDED_NAMES: Final = ("Message",)
"""Names that inline code has without an import."""

EXTRA_PARAMETERS: Final = ("metadata", "tables")
"""Parameters that are filled in by name, beside those of `args`."""

_MODULE_NAMES: Final = frozenset(
    ("__name__", "__file__", "__doc__", "__builtins__", "__annotations__", "__spec__", "__path__")
)
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class ParsedCode:
    """Code that can be compiled.

    Attributes:
        tree: its syntax.
        imports: what names stand for that are imported at the top.
        names: all names that the top level binds.
        is_open: whether it may have further names, by a star import or the like.
    """

    tree: ast.Module
    imports: dict[str, str] = field(default_factory=dict)
    names: dict[str, ast.AST] = field(default_factory=dict)
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """The function that is called, or the class of which an object is made.

    Attributes:
        function: the function, or the method `process`; None where only running the code tells.
        constructor: `__init__` of a class; None without one.
        is_class: whether it is a class.
    """

    function: _Function | None = None
    constructor: _Function | None = None
    is_class: bool = False


def parse_code(text: str) -> ParsedCode:
    """Parse code.

    Raises:
        BadTextError: it has a syntax error, or a name that nothing defines.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
            compile(tree, "<code>", "exec", dont_inherit=True)
    except SyntaxError as e:
        raise BadTextError(f"is no Python: {e.msg}", e.lineno or 1, e.offset or 1) from None
    except (ValueError, RecursionError, MemoryError) as e:
        raise BadTextError(f"is no Python: {e}") from None
    imports: dict[str, str] = {}
    names: dict[str, ast.AST] = {}
    is_open = False
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.ImportFrom)
            and any(one.name == "*" for one in node.names)
            or isinstance(node, ast.Name)
            and node.id in ("exec", "globals", "__getattr__")
        ):
            is_open = True
    for node in _top_level(tree.body):
        _bind_names(node, imports, names)
    return ParsedCode(tree, imports, names, is_open)


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Return the statements of the top level, with those inside of conditions and the like."""
    for node in body:
        yield node
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from _top_level(getattr(node, name, []))
        for handler in getattr(node, "handlers", []):
            yield from _top_level(handler.body)


def _bind_names(node: ast.stmt, imports: dict[str, str], names: dict[str, ast.AST]) -> None:
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        names[node.name] = node
    elif isinstance(node, ast.Import):
        for one in node.names:
            bound = one.asname or one.name.partition(".")[0]
            imports[bound] = one.name if one.asname else bound
            names[bound] = node
    elif isinstance(node, ast.ImportFrom):
        for one in node.names:
            imports[one.asname or one.name] = f"{node.module or ''}.{one.name}"
            names[one.asname or one.name] = node
    else:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                names.setdefault(inner.id, node)


def check_names(text: str, code: ParsedCode) -> None:
    """Check that something defines each name that inline code uses.

    Raises:
        BadTextError: nothing defines one, at the place where it is first used.
    """
    if code.is_open:
        return
    defined = {*dir(builtins), *PROVIDED_NAMES, *_MODULE_NAMES}
    used: set[str] = set()
    _collect_names(symtable.symtable(text, "<code>", "exec"), defined, used)
    unknown = used - defined
    if not unknown:
        return
    for node in sorted(
        (one for one in ast.walk(code.tree) if isinstance(one, ast.Name) and one.id in unknown),
        key=lambda one: (one.lineno, one.col_offset),
    ):
        close = difflib.get_close_matches(node.id, defined, 1)
        hint = f"did you mean {close[0]}?" if close else "import it, or define it"
        message = f"uses the name {node.id}, which nothing defines"
        raise BadTextError(message, node.lineno, node.col_offset + 1, hint)


def _collect_names(table: symtable.SymbolTable, defined: set[str], used: set[str]) -> None:
    is_module = table.get_type() == "module"
    for symbol in table.get_symbols():
        is_bound = symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
        if is_bound and (is_module or symbol.is_declared_global()):
            defined.add(symbol.get_name())
        elif symbol.is_referenced() and (is_module or symbol.is_global()):
            used.add(symbol.get_name())
    for inner in table.get_children():
        _collect_names(inner, defined, used)


def find_table_labels(tree: ast.AST) -> Iterator[str]:
    """Return the labels of tables that code looks up: those that it names by a text."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id == "tables"
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, str)
        ):
            yield node.slice.value


def find_target(code: ParsedCode, name: str) -> Target | None:
    """Return the function or class of a name; None where the code has none of that name."""
    node = code.names.get(name)
    if isinstance(node, _FUNCTIONS):
        return Target(node)
    if isinstance(node, ast.ClassDef):
        methods = {one.name: one for one in node.body if isinstance(one, _FUNCTIONS)}
        if "process" not in methods and not node.bases:
            return Target(None, None, is_class=True)
        function = methods.get("process")
        constructor = methods.get("__init__")
        return Target(function, constructor if not node.bases else None, is_class=True)
    return Target() if node is not None or code.is_open else None


def list_targets(code: ParsedCode) -> list[str]:
    """Return the names of functions and classes, in order."""
    kinds = (*_FUNCTIONS, ast.ClassDef)
    return [name for name, node in code.names.items() if isinstance(node, kinds)]


def check_target(code: ParsedCode, name: str, args: dict[str, Any]) -> Takes | None:
    """Check that the function of a name exists and takes what it is called with.

    Returns:
        What it takes; None where only running the code tells.

    Raises:
        BadTextError: it does not exist, or does not take it.
    """
    target = find_target(code, name)
    if target is None:
        names = list_targets(code)
        close = difflib.get_close_matches(name, names, 1)
        has = f"it has {', '.join(names)}" if names else "it has none"
        hint = f"did you mean {close[0]}?" if close else ""
        raise BadTextError(f"has no function {name}; {has}", suggestion=hint)
    if target.function is None:
        if target.is_class and isinstance(code.names[name], ast.ClassDef):
            node = code.names[name]
            assert isinstance(node, ast.ClassDef)
            if not node.bases:
                raise BadTextError(
                    f"has a class {name} without a method process", node.lineno, node.col_offset + 1
                )
        return None
    function = target.function
    parameters = [*function.args.posonlyargs, *function.args.args]
    if target.is_class:
        parameters = parameters[1:]
    at = (function.lineno, function.col_offset + 1)
    if not parameters:
        raise BadTextError(f"has a function {function.name} that takes nothing", *at)
    first = parameters[0]
    if first.annotation is None:
        what = f"has a function {function.name} whose parameter {first.arg} has no annotation"
        raise BadTextError(f"{what}; {EXPECTED_TEXT}", first.lineno, first.col_offset + 1)
    takes = read_annotation(first.annotation, code.imports)
    if takes is None:
        text = ast.unparse(first.annotation)
        place = (first.annotation.lineno, first.annotation.col_offset + 1)
        raise BadTextError(f"has {text} as what {function.name} takes; {EXPECTED_TEXT}", *place)
    if target.is_class:
        if target.constructor is not None:
            _check_args(target.constructor, target.constructor.args.args[1:], args, ())
        elif args and isinstance(code.names[name], ast.ClassDef):
            node = code.names[name]
            if isinstance(node, ast.ClassDef) and not (node.bases or node.decorator_list):
                raise BadTextError(f"has a class {name} that takes no args", *at)
        _check_args(function, parameters[1:], {}, EXTRA_PARAMETERS)
    else:
        _check_args(function, parameters[1:], args, EXTRA_PARAMETERS)
    return takes


def _check_args(
    function: _Function, parameters: list[ast.arg], args: dict[str, Any], filled: tuple[str, ...]
) -> None:
    """Check that args are parameters, and that no parameter is without a value."""
    at = (function.lineno, function.col_offset + 1)
    more = function.args.kwonlyargs
    names = [one.arg for one in (*parameters, *more)]
    if function.args.kwarg is None:
        for name in args:
            if name not in names:
                text = f"has a function {function.name} without the parameter {name} of args"
                raise BadTextError(text, *at)
    count = len(function.args.defaults)
    required = [one.arg for one in parameters[: max(len(parameters) - count, 0)]]
    required += [
        one.arg
        for one, default in zip(more, function.args.kw_defaults, strict=True)
        if default is None
    ]
    for name in required:
        if name not in args and name not in filled:
            text = f"has a function {function.name} whose parameter {name} has no value"
            raise BadTextError(text, *at, f"set it in args, as `args: {{ {name}: … }}`")
