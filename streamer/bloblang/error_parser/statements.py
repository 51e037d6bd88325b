"""Statements, whole mappings, and interpolated strings.

Source: Benthos `internal/bloblang/parser/mapping_parser.go`, `root_expression_parser.go`,
`field_parser.go`.
"""

from __future__ import annotations

from streamer.bloblang.error_parser.expressions import ExpressionReader
from streamer.bloblang.error_parser.tokens import (
    ParseFailure,
    Rule,
    read_expected,
    read_first_of,
    read_list,
    read_optional,
    read_required,
)


class MappingReader(ExpressionReader):
    """Reads mappings and strings, and says where and why it had to stop."""

    _valid_chars = 0

    def find_mapping_error(self) -> ParseFailure | None:
        """Return why the text is no mapping, neither statements nor one expression; else None."""
        as_statements = self.find_statements_error()
        if as_statements is None or as_statements.reason:
            return as_statements
        try:
            self._read_single_expression()
            return None
        except ParseFailure as as_expression:
            return as_expression if as_expression.at > as_statements.at else as_statements

    def find_statements_error(self) -> ParseFailure | None:
        """Return why the text does not consist of statements; else None."""
        try:
            self._read_statements()
        except ParseFailure as miss:
            miss.valid_chars = self._valid_chars
            return miss
        return None

    def find_field_error(self) -> ParseFailure | None:
        """Return why the text is no interpolated string; else None."""
        at = 0
        try:
            while 0 <= (at := self.text.find("${", at)) < len(self.text):
                at = self._read_interpolation(at)
        except ParseFailure as miss:
            return miss
        return None

    def _read_interpolation(self, at: int) -> int:
        if self.text.startswith("${{!", at):
            end = self.text.find("}}", at + 4)
            if end < 0:
                raise ParseFailure(at + 4, "end of escaped expression", reason="required")
            return end + 2
        if not self.text.startswith("${!", at):
            return at + 1
        at = self.blanks(read_required(self.query, self.blanks(at + 3)))
        return read_required(lambda at: read_expected(self.term("}"), at, "end of expression"), at)

    def _read_statements(self) -> None:
        end = len(self.text)
        at = self._statement_rule(top=True, meta=True)(self.space(0))
        while (at := self.blanks(at)) < end:
            at = self.space(self.line_break(at))
            if at < end:
                self._valid_chars = at
                at = self._statement_rule(top=True, meta=True)(at)

    def _read_single_expression(self) -> None:
        begin = self.space(0)
        end = self.query(begin)
        rest = self.space(end)
        if rest < len(self.text):
            beginning = self.text[begin:end]
            beginning = beginning[:12] + "..." if len(beginning) > 12 else beginning
            raise ParseFailure(
                rest,
                "the mapping to end here as the beginning is shorthand for "
                f"`root = {beginning}`, but this shorthand form cannot be followed with more "
                "assignments",
            )

    def _statement_rule(self, *, top: bool, meta: bool) -> Rule:
        parts = [
            self._read_let,
            self._meta_rule(meta),
            self._read_assignment,
            self._read_if_statement,
        ]
        if top:
            parts = [self._read_import, self._read_map, *parts]
        return lambda at: read_first_of(at, *parts)

    def _read_import(self, at: int) -> int:
        at = self.blank(self.term("import")(at))
        return read_required(lambda at: read_expected(self.quoted_string, at, "filepath"), at)

    def _name_rule(self, expected: str) -> Rule:
        def name(at: int) -> int:
            return read_first_of(at, self.quoted_string, self.word)

        return lambda at: read_required(lambda at: read_expected(name, at, expected), at)

    def _read_map(self, at: int) -> int:
        at = self.blank(self.term("map")(at))
        at = self.blank(self._name_rule("map name")(at))
        return self._block_rule(meta=False)(at)

    def _block_rule(self, *, meta: bool) -> Rule:
        def separator(at: int) -> int:
            return self.space(self.line_break(self.blanks(at)))

        statement = self._statement_rule(top=False, meta=meta)

        def block(at: int) -> int:
            with self.nested_level(at):
                return read_list(at, self.opening("{"), statement, separator, self.closing("}"))

        return block

    def _read_value(self, at: int) -> int:
        return self.query(self.blank(self.term("=")(at)))

    def _read_let(self, at: int) -> int:
        at = self.blank(read_expected(self.term("let"), at, "assignment"))
        return self._read_value(self.blank(self._name_rule("variable name")(at)))

    def _meta_rule(self, allowed: bool) -> Rule:
        def meta(begin: int) -> int:
            at = self.blank(read_expected(self.term("meta"), begin, "assignment"))
            at = read_optional(lambda at: read_first_of(at, self.quoted_string, self.word), at)
            at = self._read_value(self.blanks(at))
            if not allowed:
                reason = "setting meta fields is not allowed within this block"
                raise ParseFailure(begin, reason=reason)
            return at

        return meta

    def _read_assignment(self, at: int) -> int:
        def segment(at: int) -> int:
            return read_first_of(at, self.quoted_string, self.word)

        def path(at: int) -> int:
            at = segment(self.term(".")(at))
            while self.text.startswith(".", at):
                at = segment(at + 1)
            return at

        at = read_optional(path, read_expected(self.word, at, "assignment"))
        return self._read_value(self.blank(at))

    def _read_if_statement(self, at: int) -> int:
        block = self._block_rule(meta=True)

        def otherwise_if(at: int) -> int:
            at = self.blank(self.term("else if")(self.space(at)))
            return block(self.space(read_required(self.query, at)))

        def otherwise(at: int) -> int:
            return block(self.space(self.term("else")(self.space(at))))

        at = self.blank(read_expected(self.term("if"), at, "assignment"))
        at = block(self.space(read_required(self.query, at)))
        while (after := read_optional(otherwise_if, at)) != at:
            at = after
        return read_optional(otherwise, at)
