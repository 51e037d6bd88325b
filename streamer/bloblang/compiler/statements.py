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
_SCALARS: Final = frozenset(("str", "bool", "int", "float", "number"))


def emit_all(code: Code, statements: list[tree.Statement]) -> None:
    """Emit statements in order."""
    for statement in statements:
        _statement(code, statement)


def _statement(code: Code, statement: tree.Statement) -> None:
    code.copies = 0
    match statement:
        case tree.Assign(path=path, value=value):
            found = emit(code, value)
            if code.linked:
                found = code.settle(found)
            _assign(code, path, found, value)
            _hold(code, ".".join(("root", *path[:1])), code.root, found, add=len(path) > 1)
            if code.linked:
                _follow(code, path, found)
        case tree.AssignMeta(key=key, value=value, allowed=allowed):
            if allowed:
                of_document = isinstance(value, tree.Path | tree.Get)
                _assign_meta(code, key, emit(code, value), of_document)
            else:
                refuse = code.constant(metadata.refuse, "refuse_meta")
                code.emit(f"{refuse}({emit(code, value).code})")
        case tree.Let(name=name, value=value):
            _let(code, name, emit(code, value))
        case tree.IfStatement(branches=parts):
            _if(code, parts)


def _hold(code: Code, name: str, variable: str, value: Value, add: bool = False) -> None:
    """Note of how many copies what was assigned may consist."""
    if value.kind in _SCALARS:
        return
    before = code.held.get(name, 0)
    # A variable has this value, or the one before.
    code.copies = before + code.copies if add else max(before, code.copies)
    code.weighed(variable)
    if code.copies > 1:
        code.held[name] = code.copies


def _follow(code: Code, path: tuple[str, ...], value: Value) -> None:
    """Let `this` see what was written into the message, until root became something else."""
    if path:
        code.emit(f"if L: D = {code.root}")
    elif value.code != "NOTHING":
        code.emit(f"if {value.code} is not NOTHING: L = False" if value.special else "L = False")


def _assign(code: Code, path: tuple[str, ...], value: Value, node: tree.Node) -> None:
    if not path:
        _assign_root(code, value, node)
    elif value.code == "DELETED" and not _like_index(path[-1]):
        _delete(code, path)
    elif value.special:
        _put_special(code, path, code.settle(value))
    elif not code.options.copy_on_write:
        _assign_any(code, path, value)
    elif path[:-1] in code.owned:
        code.emit(f"{_subscript(code, path)} = {value.code}")
    elif len(path) >= _LONG or any(_like_index(part) for part in path):
        _assign_any(code, path, value)
    elif code.untouched:
        code.emit(f"{code.root} = {_nested(path, value)}")
    else:
        _assign_copying(code, path, code.settle(value))
    if path and not value.special:
        _after(code, path)


def _assign_any(code: Code, path: tuple[str, ...], value: Value) -> None:
    """Emit an assignment for whatever is there; it copies all objects on the way."""
    assign = code.constant(paths.assign, "assign")
    code.emit(f"{code.root} = {assign}({code.root}, {code.constant(path)}, {value.code})")


def _nested(path: tuple[str, ...], value: Value) -> str:
    text = value.code
    for part in reversed(path):
        text = f"{{{part!r}: {text}}}"
    return text


def _assign_copying(code: Code, path: tuple[str, ...], value: Value) -> None:
    """Emit an assignment that copies the objects on the way which are not root's own."""
    known = max((end for end in range(len(path)) if path[:end] in code.owned), default=-1)
    tests = [f"type({code.root}) is dict"] if known < 0 else []
    copies = [(code.root, code.root)] if known < 0 and not code.copied else []
    known = max(known, 0)
    at = _subscript(code, path[:known])
    for end in range(known, len(path) - 1):
        name = code.name("c")
        tests.append(f"type({name} := {at}.get({path[end]!r})) is dict")
        copies.append((_subscript(code, path[: end + 1]), name))
        at = name
    with code.block(f"if {' and '.join(tests)}:"):
        for place, held in copies:
            code.emit(f"{place} = {held}.copy()")
        code.emit(f"{_subscript(code, path)} = {value.code}")
    with code.block("else:"):
        _assign_any(code, path, value)


def _subscript(code: Code, path: tuple[str, ...]) -> str:
    return code.root + "".join(f"[{part!r}]" for part in path)


def _like_index(part: str) -> bool:
    return part == "-" or part.lstrip("+-").isdecimal()


def _after(code: Code, path: tuple[str, ...]) -> None:
    """Note what is certain once a path was assigned: the objects on the way are root's own."""
    code.untouched = False
    if not code.options.copy_on_write:
        return
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
    fresh = isinstance(node, tree.Object) and not value.special and code.options.copy_on_write
    code.owned, code.copied = {()} if fresh else set(), False


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
    code.untouched, code.owned, code.copied = False, set(), False


def _delete(code: Code, path: tuple[str, ...]) -> None:
    if path[:-1] in code.owned:
        code.emit(f"{_subscript(code, path[:-1])}.pop({path[-1]!r}, None)")
        code.owned = {known for known in code.owned if known[: len(path)] != path}
        return
    if len(path) == 1 and code.options.copy_on_write:
        if not code.copied:
            own = code.constant(paths.own, "own")
            text = f"{code.root}.copy() if type({code.root}) is dict else {own}({code.root})"
            code.emit(f"{code.root} = {text}")
        code.emit(f"if type({code.root}) is dict: {code.root}.pop({path[0]!r}, None)")
        code.untouched, code.copied = False, True
        return
    remove = code.constant(paths.remove, "remove")
    code.emit(f"{code.root} = {remove}({code.root}, {code.constant(path)})")
    code.untouched, code.owned, code.copied = False, set(), False


def _assign_meta(code: Code, key: str | None, value: Value, of_document: bool) -> None:
    value = code.settle(value)
    code.weighed(value.code)
    code.held["@"] = max(code.held.get("@", 1), code.copies)
    if key is None:
        replace = code.constant(metadata.replace, "replace_meta")
        code.emit(f"{code.meta} = {replace}({code.meta}, {value.code}, {of_document})")
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
        _hold(code, f"${name}", variable, value)
        return
    value = code.settle(value)
    with code.block(f"if {value.code} is not NOTHING:"):
        code.emit(f"{variable} = UNSET if {value.code} is DELETED else {value.code}")
    _hold(code, f"${name}", variable, value)
    code.assigned.discard(name)
    if value.kind == "list":
        code.holding.add(name)


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
    code: Code,
    head: str,
    statements: list[tree.Statement],
    scope: Scope,
    end: str,
    begin: tuple[str, ...] = (),
) -> None:
    """Emit a function that runs statements.

    Args:
        code: where to.
        head: the `def` line's name and parameters.
        statements: what it does; they may use `root` and `meta`.
        scope: what is visible to them.
        end: the last line.
        begin: the first lines.
    """
    code.depth = 0
    code.scope = scope
    code.line = statements[0].place.line if statements else 1
    code.emit(f"def {head}:")
    code.depth = 1
    for line in begin:
        code.emit(line)
    names = _lets(statements)
    code.variables = {name: f"var{i}" for i, name in enumerate(names)}
    code.assigned, code.held = set(), {}
    if names:
        code.emit(" = ".join([*code.variables.values(), "UNSET"]))
    for statement in statements:
        code.line = statement.place.line
        _statement(code, statement)
    code.emit(end)
    code.put_beside()
