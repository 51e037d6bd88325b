"""From a mapping's text to its resolved program."""

from __future__ import annotations

from streamer.bloblang import tree
from streamer.bloblang.environment import MappingEnvironment
from streamer.bloblang.errors import BloblangError
from streamer.bloblang.imports import MappingFile, find_root_import, make_import_error
from streamer.bloblang.parser import MappingSyntaxError, parse_mapping, parse_statements
from streamer.bloblang.resolver import Resolver, Uses


def read_program(text: str, environment: MappingEnvironment) -> tuple[tree.Program, Uses]:
    """Parse and resolve a mapping, with all that it imports.

    Raises:
        BloblangError: it cannot be read, or names something that does not exist.
    """
    file = MappingFile(text, environment)
    used: set[str] = set()
    path = find_root_import(text)
    if path is None:
        program = _resolve_program(file, _parse_file(file), used, used)
    else:
        program = _resolve_import(file, path, tree.Place(1, 1), used, used)
    return program, Uses(**dict.fromkeys(used, True))


def _parse_file(file: MappingFile) -> list[tree.Statement] | tree.Node:
    """Parse a mapping; report faults in whole statements before the unreadable one."""
    try:
        return parse_mapping(file.text)
    except MappingSyntaxError as e:
        if e.valid_chars:
            _resolve_program(file, parse_statements(file.text[: e.valid_chars]), set(), set())
        raise


def _resolve_import(
    file: MappingFile, path: str, place: tree.Place, used: set[str], used_by_statements: set[str]
) -> tree.Program:
    """Return the program in a file that another one names."""
    other = file.open_import(path, place.line, place.column)
    try:
        return _resolve_program(other, parse_statements(other.text), used, used_by_statements)
    except BloblangError as e:
        raise make_import_error(path, e, place.line, place.column) from None


def _resolve_program(
    file: MappingFile,
    parsed: list[tree.Statement] | tree.Node,
    used: set[str],
    used_by_statements: set[str],
) -> tree.Program:
    if not isinstance(parsed, list):
        parsed = [tree.Assign(tree.Place(1, 1), (), parsed)]
    in_maps = Resolver(file.environment, used, file.text)
    in_statements = Resolver(file.environment, used_by_statements, file.text)
    program = tree.Program([])
    for statement in parsed:
        if isinstance(statement, tree.NamedMap):
            if statement.name in program.maps:
                raise tree.error_at(statement, f"map name collision: {statement.name}")
            body = [_resolve_statement(in_maps, part, False) for part in statement.body]
            program.maps[statement.name] = tree.NamedMap(statement.place, statement.name, body)
        elif isinstance(statement, tree.Import):
            _add_imported_maps(file, statement, program, used)
        else:
            program.statements.append(_resolve_statement(in_statements, statement, True))
    return program


def _add_imported_maps(
    file: MappingFile, statement: tree.Import, program: tree.Program, used: set[str]
) -> None:
    """Add the named maps of an imported file; its own statements are only checked."""
    maps = _resolve_import(file, statement.path, statement.place, used, set()).maps
    if not maps:
        raise tree.error_at(statement, f"no maps to import from '{statement.path}'")
    collisions = sorted(maps.keys() & program.maps.keys())
    if collisions:
        names = f"[{' '.join(collisions)}]"
        message = f"map name collisions from import '{statement.path}': {names}"
        raise tree.error_at(statement, message)
    program.maps.update(maps)


def _resolve_statement(
    resolver: Resolver, statement: tree.Statement, meta: bool, depth: int = 0
) -> tree.Statement:
    def resolve_part(part: tree.Node | tree.Statement) -> tree.Node | tree.Statement:
        if isinstance(part, tree.Statement):
            return _resolve_statement(resolver, part, meta, depth + 1)
        return resolver.resolve_node(part, (), depth)

    match statement:
        case tree.Assign() | tree.Let():
            pass
        case tree.NamedMap():
            raise tree.error_at(statement, "defining maps is not allowed within this block")
        case tree.Import():
            raise tree.error_at(statement, "importing mappings is not allowed within this block")
        case tree.IfStatement():
            if depth > tree.MAX_DEPTH:
                raise tree.error_at(statement, tree.TOO_DEEP)
        case tree.AssignMeta():
            if not meta and not depth:
                message = "setting meta fields is not allowed within this block"
                raise tree.error_at(statement, message)
            resolver.used_traits.add("meta")
    resolved = tree.map_children(statement, resolve_part)
    if isinstance(resolved, tree.AssignMeta):
        resolved.allowed = meta
    return resolved
