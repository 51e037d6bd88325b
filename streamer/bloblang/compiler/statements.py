"""Statements: assignments to root, metadata and variables, `if`, and the function around them."""

from __future__ import annotations

from typing import Final

from streamer.bloblang import tree
from streamer.bloblang.compiler import branches
from streamer.bloblang.compiler.code import Code, Scope, Value
from streamer.bloblang.compiler.expressions import emit
from streamer.bloblang.runtime import metadata, objects, paths

# What is noted stays small, so that compiling takes time in proportion to the mapping's length.
_LONG: Final = 16
_MOST_OWNED: Final = 64
_MOST_ASSIGNED: Final = 256


def emit_all(code: Code, statements: list[tree.Statement]) -> None:
    """Emit statements in order."""
    for statement in statements:
        _statement(code, statement)


def _statement(code: Code, statement: tree.Statement) -> None:
    match statement:
        case tree.Assign(path=path, value=value):
            _assign(code, path, emit(code, value), value)
        case tree.AssignMeta(key=key, value=value, allowed=allowed):
            if allowed:
                _assign_meta(code, key, emit(code, value))
            else:
                refuse = code.constant(metadata.refuse, "refuse_meta")
                code.emit(f"{refuse}({emit(code, value).code})")
        case tree.Let(name=name, value=value):
            _let(code, name, emit(code, value))
        case tree.IfStatement(branches=parts):
            _if(code, parts)


def _assign(code: Code, path: tuple[str, ...], value: Value, node: tree.Node) -> None:
    if not path:
        _assign_root(code, value, node)
    elif value.code == "DELETED" and _like_index(path[-1]) is False:
        _delete(code, path)
    elif value.special:
        _put_special(code, path, code.settle(value))
    elif path[:-1] in code.owned:
        code.emit(f"{_subscript(code, path)} = {value.code}")
    elif code.untouched and len(path) < _LONG and not any(_like_index(part) for part in path):
        text = value.code
        for part in reversed(path):
            text = f"{{{part!r}: {text}}}"
        code.emit(f"{code.root} = {text}")
    else:
        assign = code.constant(paths.assign, "assign")
        code.emit(f"{code.root} = {assign}({code.root}, {code.constant(path)}, {value.code})")
    if path and not value.special:
        _after(code, path)


def _subscript(code: Code, path: tuple[str, ...]) -> str:
    return code.root + "".join(f"[{part!r}]" for part in path)


def _like_index(part: str) -> bool:
    return part == "-" or part.lstrip("+-").isdecimal()


def _after(code: Code, path: tuple[str, ...]) -> None:
    """Note what is certain once a path was assigned: the objects on the way are root's own."""
    code.untouched = False
    code.owned = {known for known in code.owned if known[: len(path)] != path}
    if len(code.owned) > _MOST_OWNED:
        code.owned = set()
    for end, part in enumerate(path[:_LONG]):
        if _like_index(part):
            break
        code.owned.add(path[:end])


def _assign_root(code: Code, value: Value, node: tree.Node) -> None:
    if value.special and not isinstance(node, tree.Literal):
        value = code.settle(value)
        with code.block(f"if {value.code} is not NOTHING:"):
            code.emit(f"{code.root} = {value.code}")
    elif value.code != "NOTHING":
        code.emit(f"{code.root} = {value.code}")
    code.untouched = False
    code.owned = {()} if isinstance(node, tree.Object) and not value.special else set()


def _put_special(code: Code, path: tuple[str, ...], value: Value) -> None:
    """Emit an assignment whose value may ask for removal, or for nothing at all."""
    if path in {(*known, path[-1]) for known in code.owned} and not _like_index(path[-1]):
        holder = _subscript(code, path[:-1])
        with code.block(f"if {value.code} is DELETED:"):
            code.emit(f"{holder}.pop({path[-1]!r}, None)")
        with code.block(f"elif {value.code} is not NOTHING:"):
            code.emit(f"{holder}[{path[-1]!r}] = {value.code}")
        code.owned = {known for known in code.owned if known[: len(path)] != path}
        return
    put = code.constant(paths.put, "put")
    code.emit(f"{code.root} = {put}({code.root}, {code.constant(path)}, {value.code})")
    code.untouched = False
    code.owned = set()


def _delete(code: Code, path: tuple[str, ...]) -> None:
    if () not in code.owned and len(path) == 1:
        own = code.constant(paths.own, "own")
        code.emit(f"{code.root} = {own}({code.root})")
        code.emit(f"if type({code.root}) is dict: {code.root}.pop({path[0]!r}, None)")
        code.untouched = False
    elif path[:-1] in code.owned:
        code.emit(f"{_subscript(code, path[:-1])}.pop({path[-1]!r}, None)")
        code.owned = {known for known in code.owned if known[: len(path)] != path}
    else:
        remove = code.constant(paths.remove, "remove")
        code.emit(f"{code.root} = {remove}({code.root}, {code.constant(path)})")
        code.untouched, code.owned = False, set()


def _assign_meta(code: Code, key: str | None, value: Value) -> None:
    value = code.settle(value)
    if key is None:
        replace = code.constant(metadata.replace, "replace_meta")
        code.emit(f"{code.meta} = {replace}({code.meta}, {value.code})")
    elif value.special:
        put = code.constant(metadata.put, "put_meta")
        code.emit(f"{code.meta} = {put}({code.meta}, {key!r}, {value.code})")
    else:
        code.emit(f"{code.meta} = {{**{code.meta}, {key!r}: {value.code}}}")


def _let(code: Code, name: str, value: Value) -> None:
    variable = code.variables[name]
    if not value.special:
        code.emit(f"{variable} = {value.code}")
        if len(code.assigned) < _MOST_ASSIGNED:
            code.assigned.add(name)
        return
    value = code.settle(value)
    with code.block(f"if {value.code} is not NOTHING:"):
        code.emit(f"{variable} = UNSET if {value.code} is DELETED else {value.code}")
    code.assigned.discard(name)


def _if(code: Code, parts: list[tuple[tree.Node | None, list[tree.Statement]]]) -> None:
    arms = [(test, body) for test, body in parts if test is not None]

    def test(at: int) -> str:
        prefix = f"failed to check if condition {at + 1}: "
        return branches.condition(code, arms[at][0], objects.strict_condition, prefix, emit)

    def body(at: int) -> None:
        emit_all(code, arms[at][1])
        code.emit("pass")

    def last() -> None:
        for _, statements in parts[len(arms) :]:
            emit_all(code, statements)
        code.emit("pass")

    branches.cascade(code, len(arms), test, body, last)


def _lets(statements: list[tree.Statement]) -> list[str]:
    """Return the names of all variables that statements assign."""
    names: list[str] = []
    for statement in statements:
        if isinstance(statement, tree.Let):
            names.append(statement.name)
        elif isinstance(statement, tree.IfStatement):
            for _, body in statement.branches:
                names.extend(_lets(body))
    return list(dict.fromkeys(names))


def emit_function(
    code: Code, head: str, statements: list[tree.Statement], scope: Scope, end: str
) -> None:
    """Emit a function that runs statements.

    Args:
        code: where to.
        head: the `def` line's name and parameters.
        statements: what it does; they may use `root` and `meta`.
        scope: what is visible to them.
        end: the last line.
    """
    code.depth = 0
    code.scope = scope
    code.line = statements[0].place.line if statements else 1
    code.emit(f"def {head}:")
    code.depth = 1
    names = _lets(statements)
    code.variables = {name: f"var{i}" for i, name in enumerate(names)}
    code.assigned = set()
    if names:
        code.emit(" = ".join([*code.variables.values(), "UNSET"]))
    for statement in statements:
        code.line = statement.place.line
        _statement(code, statement)
    code.emit(end)
