"""Statements, whole mappings, and interpolated strings.

Source: Benthos `internal/bloblang/parser/mapping_parser.go`, `root_expression_parser.go`,
`field_parser.go`.
"""

from __future__ import annotations

from streamer.bloblang.refusal.queries import Queries
from streamer.bloblang.refusal.reader import (
    Miss,
    Part,
    expecting,
    listed,
    one_of,
    optional,
    required,
)


class Statements(Queries):
    """Reads mappings and strings, and says where and why it had to stop."""

    _read = 0

    def mapping_error(self) -> Miss | None:
        """Return why the text is no mapping, neither statements nor one expression; else None."""
        as_statements = self.statements_error()
        if as_statements is None or as_statements.reason:
            return as_statements
        try:
            self._alone()
            return None
        except Miss as as_expression:
            return as_expression if as_expression.at > as_statements.at else as_statements

    def statements_error(self) -> Miss | None:
        """Return why the text does not consist of statements; else None."""
        try:
            self._statements()
        except Miss as miss:
            miss.read = self._read
            return miss
        return None

    def field_error(self) -> Miss | None:
        """Return why the text is no interpolated string; else None."""
        at = 0
        try:
            while 0 <= (at := self.text.find("${", at)) < len(self.text):
                at = self._interpolation(at)
        except Miss as miss:
            return miss
        return None

    def _interpolation(self, at: int) -> int:
        if self.text.startswith("${{!", at):
            end = self.text.find("}}", at + 4)
            if end < 0:
                raise Miss(at + 4, "end of escaped expression", reason="required")
            return end + 2
        if not self.text.startswith("${!", at):
            return at + 1
        at = self.blanks(required(self.query, self.blanks(at + 3)))
        return required(lambda at: expecting(self.term("}"), at, "end of expression"), at)

    def _statements(self) -> None:
        end = len(self.text)
        at = self._statement(top=True, meta=True)(self.space(0))
        while (at := self.blanks(at)) < end:
            at = self.space(self.line_break(at))
            if at < end:
                self._read = at
                at = self._statement(top=True, meta=True)(at)

    def _alone(self) -> None:
        begin = self.space(0)
        end = self.query(begin)
        rest = self.space(end)
        if rest < len(self.text):
            shown = self.text[begin:end]
            shown = shown[:12] + "..." if len(shown) > 12 else shown
            raise Miss(
                rest,
                "the mapping to end here as the beginning is shorthand for "
                f"`root = {shown}`, but this shorthand form cannot be followed with more "
                "assignments",
            )

    def _statement(self, *, top: bool, meta: bool) -> Part:
        parts = [self._let, self._meta(meta), self._assignment, self._if]
        if top:
            parts = [self._import, self._map, *parts]
        return lambda at: one_of(at, *parts)

    def _import(self, at: int) -> int:
        at = self.blank(self.term("import")(at))
        return required(lambda at: expecting(self.quoted, at, "filepath"), at)

    def _name(self, expected: str) -> Part:
        def name(at: int) -> int:
            return one_of(at, self.quoted, self.word)

        return lambda at: required(lambda at: expecting(name, at, expected), at)

    def _map(self, at: int) -> int:
        at = self.blank(self.term("map")(at))
        at = self.blank(self._name("map name")(at))
        return self._block(meta=False)(at)

    def _block(self, *, meta: bool) -> Part:
        def separator(at: int) -> int:
            return self.space(self.line_break(self.blanks(at)))

        statement = self._statement(top=False, meta=meta)

        def block(at: int) -> int:
            with self.deeper(at):
                return listed(at, self.opened("{"), statement, separator, self.closed("}"))

        return block

    def _value(self, at: int) -> int:
        return self.query(self.blank(self.term("=")(at)))

    def _let(self, at: int) -> int:
        at = self.blank(expecting(self.term("let"), at, "assignment"))
        return self._value(self.blank(self._name("variable name")(at)))

    def _meta(self, allowed: bool) -> Part:
        def meta(begin: int) -> int:
            at = self.blank(expecting(self.term("meta"), begin, "assignment"))
            at = optional(lambda at: one_of(at, self.quoted, self.word), at)
            at = self._value(self.blanks(at))
            if not allowed:
                reason = "setting meta fields is not allowed within this block"
                raise Miss(begin, reason=reason)
            return at

        return meta

    def _assignment(self, at: int) -> int:
        def segment(at: int) -> int:
            return one_of(at, self.quoted, self.word)

        def path(at: int) -> int:
            at = segment(self.term(".")(at))
            while self.text.startswith(".", at):
                at = segment(at + 1)
            return at

        at = optional(path, expecting(self.word, at, "assignment"))
        return self._value(self.blank(at))

    def _if(self, at: int) -> int:
        block = self._block(meta=True)

        def otherwise_if(at: int) -> int:
            at = self.blank(self.term("else if")(self.space(at)))
            return block(self.space(required(self.query, at)))

        def otherwise(at: int) -> int:
            return block(self.space(self.term("else")(self.space(at))))

        at = self.blank(expecting(self.term("if"), at, "assignment"))
        at = block(self.space(required(self.query, at)))
        while (after := optional(otherwise_if, at)) != at:
            at = after
        return optional(otherwise, at)
