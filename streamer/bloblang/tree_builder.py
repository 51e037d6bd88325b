"""From the parser's matches to the tree; called by lark rule by rule, from the inside out."""
# ruff: noqa: D102 - each method is the grammar's rule of the same name

from __future__ import annotations

from typing import Any

from lark import Token, Transformer

from streamer.bloblang import literals, operators, tree
from streamer.bloblang.errors import BloblangError
from streamer.bloblang.tree import Place


def place_of(token: Token) -> Place:
    """Return where a token begins."""
    return Place(token.line or 1, token.column or 1)


def _place_after(token: Token) -> Place:
    return Place(token.end_line or 1, token.end_column or 1)


def _unexpected_input(node: tree.Node) -> BloblangError:
    """Refuse what the tables take and Benthos does not; error_parser/ finds the words."""
    return tree.error_at(node, "encountered unexpected input")


def _drop_tokens(parts: list[Any]) -> list[Any]:
    return [part for part in parts if not isinstance(part, Token)]


def _unquote_token(token: Token) -> str:
    try:
        return literals.unquote(str(token))
    except ValueError as e:
        message = f"failed to unescape quoted string contents: {e}"
        raise BloblangError(token.line or 1, token.column or 1, message) from None


def _token_text(token: Token) -> str:
    return _unquote_token(token) if token.type == "STRING" else str(token)


def _negate_number(node: tree.Node, sign: Token) -> None:
    """Make the number that an expression begins with negative; only numbers have such a sign."""
    number = tree.find_leftmost(node)
    if (
        sign != "-"
        or not isinstance(number, tree.Literal)
        or type(number.value) not in (int, float)
    ):
        raise _unexpected_input(node)
    number.value = -number.value


class TreeBuilder(Transformer[Token, Any]):
    """One method per rule of the grammar; each takes the rule's parts and returns a node."""

    def number(self, parts: list[Token]) -> tree.Node:
        try:
            return tree.Literal(place_of(parts[0]), literals.parse_number(str(parts[0])))
        except ValueError as e:
            raise BloblangError(parts[0].line or 1, parts[0].column or 1, str(e)) from None

    def string(self, parts: list[Token]) -> tree.Node:
        return tree.Literal(place_of(parts[0]), _unquote_token(parts[0]))

    def triple(self, parts: list[Token]) -> tree.Node:
        return tree.Literal(place_of(parts[0]), str(parts[0])[3:-3])

    def boolean(self, parts: list[Token]) -> tree.Node:
        return tree.Literal(place_of(parts[0]), parts[0] == "true")

    def null(self, parts: list[Token]) -> tree.Node:
        return tree.Literal(place_of(parts[0]), None)

    def metadata(self, parts: list[Token]) -> tree.Node:
        key = str(parts[0])[1:]
        if key.startswith('"'):
            key = _unquote_token(parts[0].update(value=key))
        return tree.Metadata(place_of(parts[0]), key)

    def variable(self, parts: list[Token]) -> tree.Node:
        return tree.Variable(place_of(parts[0]), str(parts[0])[1:])

    def name(self, parts: list[Token]) -> tree.Node:
        return tree.Name(place_of(parts[0]), str(parts[0]))

    def get(self, parts: list[Any]) -> tree.Node:
        target, token = parts
        if isinstance(target, tree.Get):
            return tree.Get(target.place, target.target, (*target.path, _token_text(token)))
        return tree.Get(place_of(token), target, (_token_text(token),))

    def function(self, parts: list[Any]) -> tree.Node:
        name = str(parts[0]).partition("(")[0]
        return tree.Call(place_of(parts[0]), name, parts[1], end=_place_after(parts[2]))

    def method(self, parts: list[Any]) -> tree.Node:
        target, token, arguments, closing = parts
        name = str(token).partition("(")[0]
        return tree.Method(place_of(token), target, name, arguments, end=_place_after(closing))

    def args(self, parts: list[Any]) -> list[tree.Argument]:
        return [p if isinstance(p, tree.Argument) else tree.Argument(None, p) for p in parts]

    def named_arg(self, parts: list[Any]) -> tree.Argument:
        return tree.Argument(str(parts[0]).partition(":")[0], parts[1])

    def map_into(self, parts: list[Any]) -> tree.Node:
        return tree.MapInto(parts[0].place, parts[0], parts[2])

    def brackets(self, parts: list[Any]) -> tree.Node:
        return tree.Brackets(place_of(parts[0]), parts[1])

    def array(self, parts: list[Any]) -> tree.Node:
        return tree.Array(place_of(parts[0]), parts[1:])

    def object(self, parts: list[Any]) -> tree.Node:
        return tree.Object(place_of(parts[0]), _drop_tokens(parts))

    def named_pair(self, parts: list[Any]) -> tuple[tree.Node, tree.Node]:
        return tree.Literal(place_of(parts[0]), _unquote_token(parts[0])), parts[1]

    def pair(self, parts: list[Any]) -> tuple[tree.Node, tree.Node]:
        first = tree.find_leftmost(parts[0])
        if isinstance(first, tree.Literal) and type(first.value) is str:
            raise _unexpected_input(first)  # a key that begins with a string ends with it
        return parts[0], parts[1]

    def lambda_(self, parts: list[Any]) -> tree.Node:
        return tree.Lambda(place_of(parts[0]), str(parts[0]).split()[0], parts[1])

    def if_expression(self, parts: list[Any]) -> tree.Node:
        token, *rest = parts[0], *_drop_tokens(parts)
        otherwise = rest.pop()[0] if len(rest) % 2 else None
        return tree.If(place_of(token), list(zip(rest[::2], rest[1::2], strict=True)), otherwise)

    def else_(self, parts: list[Any]) -> list[Any]:
        return _drop_tokens(parts)

    def match(self, parts: list[Any]) -> tree.Node:
        subject, *cases = _drop_tokens(parts)
        return tree.Match(place_of(parts[0]), subject, cases)

    def match_this(self, parts: list[Any]) -> tree.Node:
        return tree.Match(place_of(parts[0]), None, _drop_tokens(parts))

    def case(self, parts: list[Any]) -> tuple[tree.Node | None, tree.Node]:
        return parts[0], parts[1]

    def any_case(self, parts: list[Any]) -> tuple[tree.Node | None, tree.Node]:
        return None, parts[0]

    def unary(self, parts: list[Any]) -> tree.Node:
        node: tree.Node = parts[-1]
        if len(parts) == 3:
            _negate_number(node, parts[1])
        return node if len(parts) == 1 else tree.Not(place_of(parts[0]), node)

    def operand(self, parts: list[Any]) -> tree.Node:
        *signs, node = parts
        if not signs:
            return node  # type: ignore[no-any-return]
        if len(signs) > 1:
            _negate_number(node, signs[1])
        if len(signs) > 2:
            raise _unexpected_input(node)
        place = place_of(signs[0])
        return tree.Binary(place, "-", tree.Literal(place, 0), node)

    def query(self, parts: list[Any]) -> tree.Node:
        if len(parts) == 1:
            return parts[0]  # type: ignore[no-any-return]
        signs = [str(token).partition("#")[0].strip() for token in parts[1::2]]
        operands, place = parts[::2], tree.find_leftmost(parts[0]).place
        if isinstance(parts[0], tree.Binary):
            place = parts[0].place
        for operand in operands:
            if isinstance(operand, tree.Binary):
                operand.place = place  # a minus sign belongs to the whole
        return operators.arrange_operands(operands, signs, place)

    def path(self, parts: list[Token]) -> tuple[Place, tuple[str, ...]]:
        return place_of(parts[0]), tuple(map(_token_text, parts))

    def assign(self, parts: list[Any]) -> tree.Statement:
        place, path = parts[0]
        return tree.Assign(place, path[1:] if path[0] == "root" else path, parts[1])

    def let(self, parts: list[Any]) -> tree.Statement:
        return tree.Let(place_of(parts[0]), _token_text(parts[1]), parts[2])

    def meta(self, parts: list[Any]) -> tree.Statement:
        key = _token_text(parts[1]) if len(parts) > 2 else None
        return tree.AssignMeta(place_of(parts[0]), key, parts[-1])

    def named_map(self, parts: list[Any]) -> tree.Statement:
        opening, body = parts[2]
        place, name = place_of(parts[0]), _place_after(parts[1])
        if opening.line != name.line or opening.column == name.column:
            raise BloblangError(place.line, place.column, "expected whitespace")
        return tree.NamedMap(place, _token_text(parts[1]), body)

    def imported(self, parts: list[Any]) -> tree.Statement:
        return tree.Import(place_of(parts[0]), _unquote_token(parts[1]))

    def if_statement(self, parts: list[Any]) -> tree.Statement:
        token, *rest = parts
        otherwise = [(None, rest.pop()[1])] if len(rest) % 2 else []
        branches = [(test, body) for test, (_, body) in zip(rest[::2], rest[1::2], strict=True)]
        return tree.IfStatement(place_of(token), [*branches, *otherwise])

    def block(self, parts: list[Any]) -> tuple[Token, list[tree.Statement]]:
        statements = _drop_tokens(parts)
        for statement in statements:
            if isinstance(statement, tree.NamedMap | tree.Import):
                raise tree.error_at(statement, "expected assignment")
        return parts[0], statements

    def mapping(self, parts: list[Any]) -> list[tree.Statement]:
        return parts

    def expression(self, parts: list[Any]) -> tree.Node:
        node: tree.Node = parts[0]
        return node

    def interpolation(self, parts: list[Any]) -> tree.Node:
        node: tree.Node = parts[0]
        if parts[1].strip(" \t") != "}":
            raise _unexpected_input(node)  # no line may end before the brace
        return node

    def field(self, parts: list[Any]) -> list[Any]:
        return parts
