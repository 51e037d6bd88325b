"""From a mapping's text to its resolved program."""

from __future__ import annotations

from streamer.bloblang import tree
from streamer.bloblang.errors import BloblangError
from streamer.bloblang.imports import File, failed_import, replaced_by
from streamer.bloblang.outside import Outside
from streamer.bloblang.parser import Unreadable, parse_mapping, parse_statements
from streamer.bloblang.resolver import Resolver, Uses


def read_program(text: str, outside: Outside) -> tuple[tree.Program, Uses]:
    """Parse and resolve a mapping, with all that it imports.

    Raises:
        BloblangError: it cannot be read, or names something that does not exist.
    """
    file = File(text, outside)
    used: set[str] = set()
    path = replaced_by(text)
    if path is None:
        program = _resolved(file, _read(file), used, used)
    else:
        program = _imported(file, path, tree.Place(1, 1), used, used)
    return program, Uses(**dict.fromkeys(used, True))


def _read(file: File) -> list[tree.Statement] | tree.Node:
    """Parse a mapping; what is wrong with whole statements before the unreadable one is told."""
    try:
        return parse_mapping(file.text)
    except Unreadable as e:
        if e.read:
            _resolved(file, parse_statements(file.text[: e.read]), set(), set())
        raise


def _imported(
    file: File, path: str, place: tree.Place, used: set[str], used_by_statements: set[str]
) -> tree.Program:
    """Return the program in a file that another one names."""
    other = file.open(path, place.line, place.column)
    try:
        return _resolved(other, parse_statements(other.text), used, used_by_statements)
    except BloblangError as e:
        raise failed_import(path, e, place.line, place.column) from None


def _resolved(
    file: File,
    parsed: list[tree.Statement] | tree.Node,
    used: set[str],
    used_by_statements: set[str],
) -> tree.Program:
    if not isinstance(parsed, list):
        parsed = [tree.Assign(tree.Place(1, 1), (), parsed)]
    in_maps = Resolver(file.outside, used)
    in_statements = Resolver(file.outside, used_by_statements)
    program = tree.Program([])
    for statement in parsed:
        if isinstance(statement, tree.NamedMap):
            if statement.name in program.maps:
                raise _refuse(statement, f"map name collision: {statement.name}")
            body = [_resolve(in_maps, part, False) for part in statement.body]
            program.maps[statement.name] = tree.NamedMap(statement.place, statement.name, body)
        elif isinstance(statement, tree.Import):
            _import(file, statement, program, used)
        else:
            program.statements.append(_resolve(in_statements, statement, True))
    return program


def _import(file: File, statement: tree.Import, program: tree.Program, used: set[str]) -> None:
    """Add the named maps of an imported file; its own statements are only checked."""
    maps = _imported(file, statement.path, statement.place, used, set()).maps
    if not maps:
        raise _refuse(statement, f"no maps to import from '{statement.path}'")
    collisions = sorted(maps.keys() & program.maps.keys())
    if collisions:
        names = f"[{' '.join(collisions)}]"
        message = f"map name collisions from import '{statement.path}': {names}"
        raise _refuse(statement, message)
    program.maps.update(maps)


def _refuse(statement: tree.Statement, message: str) -> BloblangError:
    return BloblangError(statement.place.line, statement.place.column, message)


def _resolve(
    resolver: Resolver, statement: tree.Statement, meta: bool, depth: int = 0
) -> tree.Statement:
    match statement:
        case tree.Assign(place=place, path=path, value=value):
            return tree.Assign(place, path, resolver.node(value, (), depth))
        case tree.Let(place=place, name=name, value=value):
            return tree.Let(place, name, resolver.node(value, (), depth))
        case tree.AssignMeta(place=place, key=key, value=value):
            if not meta and not depth:
                message = "setting meta fields is not allowed within this block"
                raise _refuse(statement, message)
            resolver.used.add("meta")
            return tree.AssignMeta(place, key, resolver.node(value, (), depth), meta)
        case tree.IfStatement(place=place, branches=branches):
            if depth > tree.MAX_DEPTH:
                raise _refuse(statement, tree.TOO_DEEP)
            return tree.IfStatement(
                place,
                [
                    (
                        test and resolver.node(test, (), depth),
                        [_resolve(resolver, part, meta, depth + 1) for part in body],
                    )
                    for test, body in branches
                ],
            )
        case tree.NamedMap():
            raise _refuse(statement, "defining maps is not allowed within this block")
    raise _refuse(statement, "importing mappings is not allowed within this block")
