"""Expressions. Source: Benthos `internal/bloblang/parser/query_*.go`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from streamer.bloblang import tree
from streamer.bloblang.arguments import match_parameters
from streamer.bloblang.catalogue import FUNCTIONS, METHODS
from streamer.bloblang.declare import Declaration
from streamer.bloblang.errors import ArgumentError
from streamer.bloblang.refusal.reader import (
    Miss,
    Part,
    Reader,
    expecting,
    listed,
    one_of,
    optional,
    required,
)

_OPERATORS: Final = ("+", "-", "/", "*", "%", "&&", "||", "==", "!=", ">=", "<=", ">", "<", "|")


class Queries(Reader):
    """Reads expressions; each place once per set of named contexts, so in linear time."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._names: tuple[str, ...] = ()
        self._depth = 0
        self._seen: dict[tuple[int, tuple[str, ...]], int | Miss] = {}
        self._operators = [self.term(sign) for sign in _OPERATORS]

    def query(self, at: int) -> int:
        """Read an expression."""
        key = (self.blanks(at), self._names)
        found = self._seen.get(key)
        if found is None:
            try:
                found = self._arithmetic(key[0])
            except Miss as miss:
                found = miss
            self._seen[key] = found
        if isinstance(found, Miss):
            raise Miss(found.at, *found.expected, reason=found.reason)
        return found

    def _arithmetic(self, at: int) -> int:
        with self.deeper(at):
            at = self._operand(at)
            while True:
                try:
                    after = one_of(self.blanks(at), *self._operators)
                except Miss:
                    return at
                at = self._operand(self.space(after))

    @contextmanager
    def deeper(self, at: int) -> Iterator[None]:
        """Go one level down, as far as mappings may be nested."""
        if self._depth > tree.MAX_DEPTH:
            raise Miss(at, reason=tree.TOO_DEEP)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def _operand(self, at: int) -> int:
        if self.text.startswith("-", at):
            at = self.space(at + 1)
        if self.text.startswith("!", at):
            at = self.blanks(at + 1)
        at = expecting(self._root, at, "query")
        while self.text.startswith(".", at):
            at = required(self._tail, self.space(at + 1))
        return at

    def _root(self, at: int) -> int:
        return one_of(
            at,
            self._match_expression,
            self._if_expression,
            self._lambda,
            self._brackets,
            self.keyword("true"),
            self.keyword("false"),
            self.number,
            self.triple,
            self.quoted,
            self.keyword("null"),
            self._array,
            self._object,
            self._call(FUNCTIONS, "function"),
            self._metadata,
            self._variable,
            self.word,
        )

    def _tail(self, at: int) -> int:
        def field(at: int) -> int:
            return one_of(at, self.word, self.quoted)

        return one_of(
            at,
            self._into,
            self._call(METHODS, "method"),
            lambda at: expecting(field, at, "field path"),
        )

    def _into(self, at: int) -> int:
        at = self.space(expecting(self.term("("), at, "method"))
        return self.term(")")(self.space(self.query(at)))

    def _metadata(self, at: int) -> int:
        at = self.term("@")(at)
        return optional(lambda at: one_of(at, self.word, self.quoted), at)

    def _variable(self, at: int) -> int:
        return self.word(self.term("$")(at))

    def _brackets(self, at: int) -> int:
        at = self.space(self.query(self.space(self.term("(")(at))))
        return required(lambda at: expecting(self.term(")"), at, "closing bracket"), at)

    def comma(self, at: int) -> int:
        """Read a comma and the space behind it."""
        return self.space(self.term(",")(self.blanks(at)))

    def opened(self, sign: str) -> Part:
        """Return the part that opens a block."""
        return lambda at: self.space(self.term(sign)(at))

    def closed(self, sign: str) -> Part:
        """Return the part that closes a block."""
        return lambda at: self.term(sign)(self.space(at))

    def _array(self, at: int) -> int:
        return listed(at, self.opened("["), self.query, self.comma, self.closed("]"))

    def _object(self, at: int) -> int:
        def pair(at: int) -> int:
            at = one_of(at, self.quoted, self.query)
            return self.query(self.space(self.term(":")(self.blanks(at))))

        return listed(at, self.opened("{"), pair, self.comma, self.closed("}"))

    def _braced(self, at: int) -> int:
        at = self.space(required(self.term("{"), self.space(at)))
        return required(self.term("}"), self.space(required(self.query, at)))

    def _if_expression(self, at: int) -> int:
        def otherwise_if(at: int) -> int:
            at = self.blank(self.term("else if")(self.space(at)))
            return self._braced(required(self.query, at))

        def otherwise(at: int) -> int:
            return self._braced(self.term("else")(self.space(at)))

        at = self._braced(required(self.query, self.blank(self.term("if")(at))))
        while (after := optional(otherwise_if, at)) != at:
            at = after
        return optional(otherwise, at)

    def _match_expression(self, at: int) -> int:
        def separator(at: int) -> int:
            return self.space(one_of(self.blanks(at), self.term(","), self.line_break))

        def cases(at: int) -> int:
            return listed(at, self.opened("{"), self._case, separator, self.closed("}"))

        at = self.blank(self.term("match")(at))
        return required(cases, self.space(optional(self.query, at)))

    def _case(self, at: int) -> int:
        def any_value(at: int) -> int:
            at = expecting(self.term("_"), at, "match case")
            return self.term("=>")(self.blanks(at))

        def value(at: int) -> int:
            at = expecting(self.query, at, "match case")
            return self.term("=>")(self.blanks(at))

        return self.query(self.blanks(one_of(at, any_value, value)))

    def _lambda(self, at: int) -> int:
        end = self.word(at)
        body = self.blank(self.term("->")(self.blank(end)))
        name = self.text[at:end]
        if name != "_" and name in self._names:
            raise Miss(at, reason=f"context label `{name}` would shadow a parent context")
        if name in ("root", "this"):
            raise Miss(at, reason=f"context label `{name}` is not allowed")
        with self._named(name):
            return required(self.query, body)

    @contextmanager
    def _named(self, name: str) -> Iterator[None]:
        before = self._names
        if name != "_":
            self._names = (*before, name)
        try:
            yield
        finally:
            self._names = before

    def _call(self, known: dict[str, Declaration], kind: str) -> Part:
        def call(at: int) -> int:
            name_end = expecting(self.snake, at, kind)
            given: list[tree.Argument] = []
            start = lambda at: expecting(self.opened("("), at, "function arguments")  # noqa: E731
            end = listed(
                name_end,
                start,
                self._must("function argument", self._argument(given)),
                self._must("comma", self.comma),
                self._must("closing bracket", self.closed(")")),
            )
            self._check(known, kind, self.text[at:name_end], given, end)
            return end

        return call

    @staticmethod
    def _must(name: str, part: Part) -> Part:
        return lambda at: required(lambda at: expecting(part, at, name), at)

    def _argument(self, given: list[tree.Argument]) -> Part:
        value = tree.Node(tree.Place(1, 1))

        def named(at: int) -> int:
            end = self.snake(at)
            at_value = self.blanks(self.term(":")(end))
            after = required(lambda at: expecting(self.query, at, "argument value"), at_value)
            given.append(tree.Argument(self.text[at:end], value))
            return after

        def nameless(at: int) -> int:
            after = self.query(at)
            given.append(tree.Argument(None, value))
            return after

        return lambda at: one_of(at, named, nameless)

    @staticmethod
    def _check(
        known: dict[str, Declaration],
        kind: str,
        name: str,
        given: list[tree.Argument],
        end: int,
    ) -> None:
        declaration = known.get(name)
        if declaration is None:
            raise Miss(end, reason=f"unrecognised {kind} '{name}'")
        try:
            match_parameters(declaration, given)
        except ArgumentError as e:
            raise Miss(end, reason=str(e)) from None
