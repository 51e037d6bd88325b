"""From a mapping's text to its resolved program."""

from __future__ import annotations

from streamer.bloblang import tree
from streamer.bloblang.errors import BloblangError
from streamer.bloblang.parser import parse_mapping
from streamer.bloblang.resolver import Resolver, Uses


def read_program(text: str) -> tuple[tree.Program, Uses]:
    """Parse and resolve a mapping.

    Raises:
        BloblangError: it cannot be read, or names something that does not exist.
    """
    parsed = parse_mapping(text)
    if not isinstance(parsed, list):
        place = tree.Place(1, 1)
        parsed = [tree.Assign(place, (), parsed)]
    resolver = Resolver()
    program = tree.Program([])
    for statement in parsed:
        if isinstance(statement, tree.NamedMap):
            if statement.name in program.maps:
                raise _refuse(statement, f"map name collision: {statement.name}")
            body = [_resolve(resolver, part, False) for part in statement.body]
            program.maps[statement.name] = tree.NamedMap(statement.place, statement.name, body)
        elif isinstance(statement, tree.Import):
            raise _refuse(statement, "failed to read import: imports are not available yet")
        else:
            program.statements.append(_resolve(resolver, statement, True))
    return program, resolver.uses()


def _refuse(statement: tree.Statement, message: str) -> BloblangError:
    return BloblangError(statement.place.line, statement.place.column, message)


def _resolve(resolver: Resolver, statement: tree.Statement, meta: bool) -> tree.Statement:
    match statement:
        case tree.Assign(place=place, path=path, value=value):
            return tree.Assign(place, path, resolver.node(value, ()))
        case tree.Let(place=place, name=name, value=value):
            return tree.Let(place, name, resolver.node(value, ()))
        case tree.AssignMeta(place=place, key=key, value=value):
            if not meta:
                message = "setting meta fields is not allowed within this block"
                raise _refuse(statement, message)
            resolver.used.add("meta")
            return tree.AssignMeta(place, key, resolver.node(value, ()))
        case tree.IfStatement(place=place, branches=branches):
            return tree.IfStatement(
                place,
                [
                    (
                        test and resolver.node(test, ()),
                        [_resolve(resolver, part, meta) for part in body],
                    )
                    for test, body in branches
                ],
            )
        case tree.NamedMap():
            raise _refuse(statement, "defining maps is not allowed within this block")
    raise _refuse(statement, "importing mappings is not allowed within this block")
