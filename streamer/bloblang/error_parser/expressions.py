"""Expressions. Source: Benthos `internal/bloblang/parser/query_*.go`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from streamer.bloblang import tree
from streamer.bloblang.arguments import match_parameters
from streamer.bloblang.catalog import FUNCTIONS, METHODS
from streamer.bloblang.declare import Declaration
from streamer.bloblang.error_parser.tokens import (
    ParseFailure,
    Rule,
    TokenReader,
    read_expected,
    read_first_of,
    read_list,
    read_optional,
    read_required,
)
from streamer.bloblang.errors import ArgumentError

_OPERATORS: Final = ("+", "-", "/", "*", "%", "&&", "||", "==", "!=", ">=", "<=", ">", "<", "|")


class ExpressionReader(TokenReader):
    """Reads expressions; each place once per set of named contexts, so in linear time."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._names: tuple[str, ...] = ()
        self._depth = 0
        self._outcomes: dict[tuple[int, tuple[str, ...]], int | ParseFailure] = {}
        self._operators = [self.term(sign) for sign in _OPERATORS]

    def query(self, at: int) -> int:
        """Read an expression."""
        key = (self.blanks(at), self._names)
        outcome = self._outcomes.get(key)
        if outcome is None:
            try:
                outcome = self._read_arithmetic(key[0])
            except ParseFailure as miss:
                outcome = miss
            self._outcomes[key] = outcome
        if isinstance(outcome, ParseFailure):
            raise ParseFailure(outcome.at, *outcome.expected, reason=outcome.reason)
        return outcome

    def _read_arithmetic(self, at: int) -> int:
        with self.nested_level(at):
            at = self._read_operand(at)
            while True:
                try:
                    after = read_first_of(self.blanks(at), *self._operators)
                except ParseFailure:
                    return at
                at = self._read_operand(self.space(after))

    @contextmanager
    def nested_level(self, at: int) -> Iterator[None]:
        """Go one level down, as far as mappings may be nested."""
        if self._depth > tree.MAX_DEPTH:
            raise ParseFailure(at, reason=tree.TOO_DEEP)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def _read_operand(self, at: int) -> int:
        if self.text.startswith("-", at):
            at = self.space(at + 1)
        if self.text.startswith("!", at):
            at = self.blanks(at + 1)
        at = read_expected(self._read_root, at, "query")
        while self.text.startswith(".", at):
            at = read_required(self._read_tail, self.space(at + 1))
        return at

    def _read_root(self, at: int) -> int:
        return read_first_of(
            at,
            self._read_match,
            self._read_if,
            self._read_lambda,
            self._read_brackets,
            self.keyword("true"),
            self.keyword("false"),
            self.number,
            self.triple_quoted,
            self.quoted_string,
            self.keyword("null"),
            self._read_array,
            self._read_object,
            self._call_rule(FUNCTIONS, "function"),
            self._read_metadata,
            self._read_variable,
            self.word,
        )

    def _read_tail(self, at: int) -> int:
        def field(at: int) -> int:
            return read_first_of(at, self.word, self.quoted_string)

        return read_first_of(
            at,
            self._read_into,
            self._call_rule(METHODS, "method"),
            lambda at: read_expected(field, at, "field path"),
        )

    def _read_into(self, at: int) -> int:
        at = self.space(read_expected(self.term("("), at, "method"))
        return self.term(")")(self.space(self.query(at)))

    def _read_metadata(self, at: int) -> int:
        at = self.term("@")(at)
        return read_optional(lambda at: read_first_of(at, self.word, self.quoted_string), at)

    def _read_variable(self, at: int) -> int:
        return self.word(self.term("$")(at))

    def _read_brackets(self, at: int) -> int:
        at = self.space(self.query(self.space(self.term("(")(at))))
        return read_required(lambda at: read_expected(self.term(")"), at, "closing bracket"), at)

    def comma(self, at: int) -> int:
        """Read a comma and the space behind it."""
        return self.space(self.term(",")(self.blanks(at)))

    def opening(self, sign: str) -> Rule:
        """Return the part that opens a block."""
        return lambda at: self.space(self.term(sign)(at))

    def closing(self, sign: str) -> Rule:
        """Return the part that closes a block."""
        return lambda at: self.term(sign)(self.space(at))

    def _read_array(self, at: int) -> int:
        return read_list(at, self.opening("["), self.query, self.comma, self.closing("]"))

    def _read_object(self, at: int) -> int:
        def pair(at: int) -> int:
            at = read_first_of(at, self.quoted_string, self.query)
            return self.query(self.space(self.term(":")(self.blanks(at))))

        return read_list(at, self.opening("{"), pair, self.comma, self.closing("}"))

    def _read_braces(self, at: int) -> int:
        at = self.space(read_required(self.term("{"), self.space(at)))
        return read_required(self.term("}"), self.space(read_required(self.query, at)))

    def _read_if(self, at: int) -> int:
        def otherwise_if(at: int) -> int:
            at = self.blank(self.term("else if")(self.space(at)))
            return self._read_braces(read_required(self.query, at))

        def otherwise(at: int) -> int:
            return self._read_braces(self.term("else")(self.space(at)))

        at = self._read_braces(read_required(self.query, self.blank(self.term("if")(at))))
        while (after := read_optional(otherwise_if, at)) != at:
            at = after
        return read_optional(otherwise, at)

    def _read_match(self, at: int) -> int:
        def separator(at: int) -> int:
            return self.space(read_first_of(self.blanks(at), self.term(","), self.line_break))

        def cases(at: int) -> int:
            return read_list(at, self.opening("{"), self._read_case, separator, self.closing("}"))

        at = self.blank(self.term("match")(at))
        return read_required(cases, self.space(read_optional(self.query, at)))

    def _read_case(self, at: int) -> int:
        def any_value(at: int) -> int:
            at = read_expected(self.term("_"), at, "match case")
            return self.term("=>")(self.blanks(at))

        def value(at: int) -> int:
            at = read_expected(self.query, at, "match case")
            return self.term("=>")(self.blanks(at))

        return self.query(self.blanks(read_first_of(at, any_value, value)))

    def _read_lambda(self, at: int) -> int:
        end = self.word(at)
        body = self.blank(self.term("->")(self.blank(end)))
        name = self.text[at:end]
        if name != "_" and name in self._names:
            raise ParseFailure(at, reason=f"context label `{name}` would shadow a parent context")
        if name in ("root", "this"):
            raise ParseFailure(at, reason=f"context label `{name}` is not allowed")
        with self._bound_name(name):
            return read_required(self.query, body)

    @contextmanager
    def _bound_name(self, name: str) -> Iterator[None]:
        before = self._names
        if name != "_":
            self._names = (*before, name)
        try:
            yield
        finally:
            self._names = before

    def _call_rule(self, known: dict[str, Declaration], kind: str) -> Rule:
        def call(at: int) -> int:
            name_end = read_expected(self.snake_case_name, at, kind)
            arguments: list[tree.Argument] = []
            start = lambda at: read_expected(self.opening("("), at, "function arguments")  # noqa: E731
            end = read_list(
                name_end,
                start,
                self._required_rule("function argument", self._argument_rule(arguments)),
                self._required_rule("comma", self.comma),
                self._required_rule("closing bracket", self.closing(")")),
            )
            self._check_arguments(known, kind, self.text[at:name_end], arguments, end)
            return end

        return call

    @staticmethod
    def _required_rule(name: str, part: Rule) -> Rule:
        return lambda at: read_required(lambda at: read_expected(part, at, name), at)

    def _argument_rule(self, arguments: list[tree.Argument]) -> Rule:
        value = tree.Node(tree.Place(1, 1))

        def named(at: int) -> int:
            end = self.snake_case_name(at)
            at_value = self.blanks(self.term(":")(end))
            after = read_required(
                lambda at: read_expected(self.query, at, "argument value"), at_value
            )
            arguments.append(tree.Argument(self.text[at:end], value))
            return after

        def nameless(at: int) -> int:
            after = self.query(at)
            arguments.append(tree.Argument(None, value))
            return after

        return lambda at: read_first_of(at, named, nameless)

    @staticmethod
    def _check_arguments(
        known: dict[str, Declaration],
        kind: str,
        name: str,
        arguments: list[tree.Argument],
        end: int,
    ) -> None:
        declaration = known.get(name)
        if declaration is None:
            raise ParseFailure(end, reason=f"unrecognised {kind} '{name}'")
        try:
            match_parameters(declaration, arguments)
        except ArgumentError as e:
            raise ParseFailure(end, reason=str(e)) from None
