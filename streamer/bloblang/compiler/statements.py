"""Statements: assignments to root, metadata and variables, `if`, and the function around them."""

from __future__ import annotations

from typing import Final

from streamer.bloblang import tree
from streamer.bloblang.compiler import branches
from streamer.bloblang.compiler.code import Code, Scope, Value
from streamer.bloblang.compiler.expressions import emit
from streamer.bloblang.runtime import checks, metadata, paths

# What is noted stays small, so that compiling takes time in proportion to the mapping's length.
_MAX_TRACKED_SEGMENTS: Final = 16
_MAX_OWNED_PATHS: Final = 64
_MAX_ASSIGNED_VARIABLES: Final = 256
_SCALAR_KINDS: Final = frozenset(("str", "bool", "int", "float", "number"))


def emit_statements(code: Code, statements: list[tree.Statement]) -> None:
    """Emit statements in order."""
    for statement in statements:
        _emit_statement(code, statement)


def _emit_statement(code: Code, statement: tree.Statement) -> None:
    code.copies = 0
    match statement:
        case tree.Assign(path=path, value=value):
            result = emit(code, value)
            if code.this_follows_root:
                result = code.ensure_atom(result)
            _emit_assign(code, path, result, value)
            _record_copies(
                code, ".".join(("root", *path[:1])), code.root, result, add=len(path) > 1
            )
            if code.this_follows_root:
                _emit_document_update(code, path, result)
        case tree.AssignMeta(key=key, value=value, allowed=allowed):
            if allowed:
                of_document = isinstance(value, tree.Path | tree.Get)
                _emit_assign_meta(code, key, emit(code, value), of_document)
            else:
                refuse = code.add_constant(metadata.refuse_assignment, "refuse_meta")
                code.emit(f"{refuse}({emit(code, value).code})")
        case tree.Let(name=name, value=value):
            _emit_let(code, name, emit(code, value))
        case tree.IfStatement(branches=parts):
            _emit_if(code, parts)


def _record_copies(code: Code, name: str, variable: str, value: Value, add: bool = False) -> None:
    """Note of how many copies what was assigned may consist."""
    if value.kind in _SCALAR_KINDS:
        return
    before = code.copy_counts.get(name, 0)
    # A variable has this value, or the one before.
    code.copies = before + code.copies if add else max(before, code.copies)
    code.emit_size_check(variable)
    if code.copies > 1:
        code.copy_counts[name] = code.copies


def _emit_document_update(code: Code, path: tuple[str, ...], value: Value) -> None:
    """Let `this` see what was written into the message, until root became something else."""
    if path:
        code.emit(f"if L: D = {code.root}")
    elif value.code != "NOTHING":
        code.emit(f"if {value.code} is not NOTHING: L = False" if value.special else "L = False")


def _emit_assign(code: Code, path: tuple[str, ...], value: Value, node: tree.Node) -> None:
    if not path:
        _emit_assign_root(code, value, node)
    elif value.code == "DELETED" and not _is_index_like(path[-1]):
        _emit_delete(code, path)
    elif value.special:
        _emit_put_special(code, path, code.ensure_atom(value))
    elif not code.options.copy_on_write:
        _emit_assign_any(code, path, value)
    elif path[:-1] in code.owned_paths:
        code.emit(f"{_subscript_code(code, path)} = {value.code}")
    elif len(path) >= _MAX_TRACKED_SEGMENTS or any(_is_index_like(part) for part in path):
        _emit_assign_any(code, path, value)
    elif code.is_root_unset:
        code.emit(f"{code.root} = {_nested_object_code(path, value)}")
    else:
        _emit_copying_assign(code, path, code.ensure_atom(value))
    if path and not value.special:
        _record_assignment(code, path)


def _emit_assign_any(code: Code, path: tuple[str, ...], value: Value) -> None:
    """Emit an assignment for whatever is there; it copies all objects on the way."""
    assign = code.add_constant(paths.assign, "assign")
    code.emit(f"{code.root} = {assign}({code.root}, {code.add_constant(path)}, {value.code})")


def _nested_object_code(path: tuple[str, ...], value: Value) -> str:
    text = value.code
    for part in reversed(path):
        text = f"{{{part!r}: {text}}}"
    return text


def _emit_copying_assign(code: Code, path: tuple[str, ...], value: Value) -> None:
    """Emit an assignment that copies the objects on the way which are not root's own."""
    known = max((end for end in range(len(path)) if path[:end] in code.owned_paths), default=-1)
    tests = [f"type({code.root}) is dict"] if known < 0 else []
    copies = [(code.root, code.root)] if known < 0 and not code.is_root_copied else []
    known = max(known, 0)
    at = _subscript_code(code, path[:known])
    for end in range(known, len(path) - 1):
        name = code.fresh_name("c")
        tests.append(f"type({name} := {at}.get({path[end]!r})) is dict")
        copies.append((_subscript_code(code, path[: end + 1]), name))
        at = name
    with code.block(f"if {' and '.join(tests)}:"):
        for place, source in copies:
            code.emit(f"{place} = {source}.copy()")
        code.emit(f"{_subscript_code(code, path)} = {value.code}")
    with code.block("else:"):
        _emit_assign_any(code, path, value)


def _subscript_code(code: Code, path: tuple[str, ...]) -> str:
    return code.root + "".join(f"[{part!r}]" for part in path)


def _is_index_like(part: str) -> bool:
    return part == "-" or part.lstrip("+-").isdecimal()


def _record_assignment(code: Code, path: tuple[str, ...]) -> None:
    """Note what is certain once a path was assigned: the objects on the way are root's own."""
    code.is_root_unset = False
    if not code.options.copy_on_write:
        return
    code.owned_paths = {known for known in code.owned_paths if known[: len(path)] != path}
    if len(code.owned_paths) > _MAX_OWNED_PATHS:
        code.owned_paths = set()
    for end, part in enumerate(path[:_MAX_TRACKED_SEGMENTS]):
        if _is_index_like(part):
            break
        code.owned_paths.add(path[:end])


def _emit_assign_root(code: Code, value: Value, node: tree.Node) -> None:
    if value.special and not isinstance(node, tree.Literal):
        value = code.ensure_atom(value)
        with code.block(f"if {value.code} is not NOTHING:"):
            code.emit(f"{code.root} = {value.code}")
    elif value.code != "NOTHING":
        code.emit(f"{code.root} = {value.code}")
    code.is_root_unset = False
    fresh = isinstance(node, tree.Object) and not value.special and code.options.copy_on_write
    code.owned_paths, code.is_root_copied = {()} if fresh else set(), False


def _emit_put_special(code: Code, path: tuple[str, ...], value: Value) -> None:
    """Emit an assignment whose value may ask for removal, or for nothing at all."""
    if path in {(*known, path[-1]) for known in code.owned_paths} and not _is_index_like(path[-1]):
        holder = _subscript_code(code, path[:-1])
        with code.block(f"if {value.code} is DELETED:"):
            code.emit(f"{holder}.pop({path[-1]!r}, None)")
        with code.block(f"elif {value.code} is not NOTHING:"):
            code.emit(f"{holder}[{path[-1]!r}] = {value.code}")
        code.owned_paths = {known for known in code.owned_paths if known[: len(path)] != path}
        return
    put = code.add_constant(paths.put_value, "put")
    code.emit(f"{code.root} = {put}({code.root}, {code.add_constant(path)}, {value.code})")
    code.is_root_unset, code.owned_paths, code.is_root_copied = False, set(), False


def _emit_delete(code: Code, path: tuple[str, ...]) -> None:
    if path[:-1] in code.owned_paths:
        code.emit(f"{_subscript_code(code, path[:-1])}.pop({path[-1]!r}, None)")
        code.owned_paths = {known for known in code.owned_paths if known[: len(path)] != path}
        return
    if len(path) == 1 and code.options.copy_on_write:
        if not code.is_root_copied:
            copy = code.add_constant(paths.copy_root, "copy_root")
            text = f"{code.root}.copy() if type({code.root}) is dict else {copy}({code.root})"
            code.emit(f"{code.root} = {text}")
        code.emit(f"if type({code.root}) is dict: {code.root}.pop({path[0]!r}, None)")
        code.is_root_unset, code.is_root_copied = False, True
        return
    remove = code.add_constant(paths.remove, "remove")
    code.emit(f"{code.root} = {remove}({code.root}, {code.add_constant(path)})")
    code.is_root_unset, code.owned_paths, code.is_root_copied = False, set(), False


def _emit_assign_meta(code: Code, key: str | None, value: Value, of_document: bool) -> None:
    value = code.ensure_atom(value)
    code.emit_size_check(value.code)
    code.copy_counts["@"] = max(code.copy_counts.get("@", 1), code.copies)
    if key is None:
        replace = code.add_constant(metadata.replace_all, "replace_meta")
        code.emit(f"{code.meta} = {replace}({code.meta}, {value.code}, {of_document})")
    elif value.special:
        put = code.add_constant(metadata.put_value, "put_meta")
        code.emit(f"{code.meta} = {put}({code.meta}, {key!r}, {value.code})")
    else:
        code.emit(f"{code.meta} = {{**{code.meta}, {key!r}: {value.code}}}")


def _emit_let(code: Code, name: str, value: Value) -> None:
    variable = code.variables[name]
    if not value.special:
        code.emit(f"{variable} = {value.code}")
        if len(code.assigned_variables) < _MAX_ASSIGNED_VARIABLES:
            code.assigned_variables.add(name)
        _record_copies(code, f"${name}", variable, value)
        return
    value = code.ensure_atom(value)
    with code.block(f"if {value.code} is not NOTHING:"):
        code.emit(f"{variable} = UNSET if {value.code} is DELETED else {value.code}")
    _record_copies(code, f"${name}", variable, value)
    code.assigned_variables.discard(name)
    if value.kind == "list":
        code.variables_with_deleted.add(name)


def _emit_if(code: Code, parts: list[tuple[tree.Node | None, list[tree.Statement]]]) -> None:
    arms = [(test, body) for test, body in parts if test is not None]

    def test(at: int) -> str:
        prefix = f"failed to check if condition {at + 1}: "
        return branches.emit_condition(
            code, arms[at][0], checks.check_strict_condition, prefix, emit
        )

    def body(at: int) -> None:
        emit_statements(code, arms[at][1])
        code.emit("pass")

    def last() -> None:
        for _, statements in parts[len(arms) :]:
            emit_statements(code, statements)
        code.emit("pass")

    branches.emit_cascade(code, len(arms), test, body, last)


def _find_variables(statements: list[tree.Statement]) -> list[str]:
    """Return the names of all variables that statements assign."""
    names: list[str] = []
    for statement in statements:
        if isinstance(statement, tree.Let):
            names.append(statement.name)
        elif isinstance(statement, tree.IfStatement):
            for _, body in statement.branches:
                names.extend(_find_variables(body))
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
    names = _find_variables(statements)
    code.variables = {name: f"var{i}" for i, name in enumerate(names)}
    code.assigned_variables, code.copy_counts = set(), {}
    if names:
        code.emit(" = ".join([*code.variables.values(), "UNSET"]))
    for statement in statements:
        code.line = statement.place.line
        _emit_statement(code, statement)
    code.emit(end)
    code.emit_hoisted()
