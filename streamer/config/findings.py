"""The findings about a config, collected while it is read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from streamer.config.nodes import Node, Scalar
from streamer.config.source_map import Source
from streamer.config.text_offsets import find_offset
from streamer.config.unset_variables import UNSET_MARK, is_unset
from streamer.core.errors import Lint
from streamer.core.redaction import Redaction, may_begin_in

if TYPE_CHECKING:
    from streamer.config.references import ReferencedValue

_VALUE_CODES: Final = frozenset(
    {
        "invalid_option",
        "bad_duration",
        "bad_value",
        "bad_bloblang",
        "bad_python",
        "missing_label",
        "bad_label",
    }
    | {f"expected_{what}" for what in ("string", "int", "float", "bool", "object", "array")}
)
_HARMLESS_CODES: Final = frozenset(
    {"unknown_field", "duplicate_field", "deprecated", "missing_label", "duplicate_label"}
    | {"bad_label", "missing_variable", "should_omit", "doubtful_bloblang", "missing_package"}
    | {"missing_secret", "readable_secret"}
)
MAX_FINDINGS: Final = 1_000
_MAX_COMPARED_NAMES: Final = 500
"""Names that are compared for a suggestion: it takes time for each."""
_MAX_MESSAGE_CHARS: Final = 1_500


class TooManyFindings(Exception):
    """Nobody reads so many; whoever collects them may stop."""


class Findings:
    """A list of at most `MAX_FINDINGS` lints that knows how to place them.

    Attributes:
        secrets: texts that no message may show, by what is shown instead: values of environment
            variables and of secret fields, and passwords of URLs.
        unset: lines, by file, with variables that have no value, whether or not that is a finding.
        files_with_marks: the files in which `UNSET_MARK` stands in the place of such variables.
        referenced_values: what references to secrets stand for: each is read once.
        warns_of_files: whether a secret's file that everybody may read is a finding.
    """

    def __init__(self) -> None:
        self.secrets: dict[str, str] = {}
        self.unset: set[tuple[str, int]] = set()
        self.files_with_marks: set[str] = set()
        self.referenced_values: dict[Any, ReferencedValue] = {}
        self.warns_of_files = False
        self._lints: list[tuple[int, Lint]] = []
        self._sources: dict[str, int] = {}
        self._harmless_count = 0
        self._unknown_count = 0

    def __len__(self) -> int:
        return len(self._lints)

    def clear(self) -> None:
        """Forget all findings, when the text is to be read in another way."""
        self._lints.clear()
        self._harmless_count = 0

    @property
    def harmful_count(self) -> int:
        """Number of findings that leave a value missing or unusable, whose checks are skipped.

        Values that nobody knows are counted too, though they are no findings.
        """
        return len(self._lints) - self._harmless_count + self._unknown_count

    def add_at_offset(
        self, source: Source, offset: int, code: str, message: str, suggestion: str = ""
    ) -> None:
        """Add a finding at an offset of a source's text."""
        line, column = source.locate(offset)
        self.add(Lint(source.name, line, column, code, message, suggestion))

    def add_at(self, node: Node, code: str, message: str, suggestion: str = "") -> None:
        """Add a finding about a node, unless a variable without a value is in it."""
        if is_unset(node):
            self._unknown_count += code not in _HARMLESS_CODES
            return
        self.add_at_offset(node.source, node.start, code, message, suggestion)

    def add_inside(
        self, node: Scalar, at: tuple[int, int], code: str, message: str, suggestion: str = ""
    ) -> None:
        """Add a finding at a 1-based line and column of a scalar's text."""
        self.add_at_offset(node.source, find_offset(node, *at), code, message, suggestion)

    def add(self, lint: Lint) -> None:
        """Add a finding whose place is known.

        Raises:
            TooManyFindings: it does not fit.
        """
        if len(self._lints) == MAX_FINDINGS:
            raise TooManyFindings
        order = self._sources.setdefault(lint.file, len(self._sources))
        self._lints.append((order, lint))
        self._harmless_count += lint.code in _HARMLESS_CODES

    def to_sorted(self, without_unset: bool = False) -> tuple[Lint, ...]:
        """Return all findings by source, line and column, each once, without secrets.

        Args:
            without_unset: leave out what is said of values where a variable has none, even if
                that is no finding.
        """
        ordered = sorted(
            self._redact_lints(), key=lambda item: (item[0], item[1].line, item[1].column)
        )
        missing = {(lint.file, lint.line) for _, lint in ordered if lint.code == "missing_variable"}
        unset = self.unset if without_unset else set()
        # What is wrong with a value that a missing variable leaves behind is no news.
        return tuple(
            dict.fromkeys(
                lint
                for _, lint in ordered
                if lint.code not in _VALUE_CODES
                or lint.file in self.files_with_marks
                or (
                    (lint.file, lint.line) not in missing
                    and ((lint.file, lint.line) not in unset or lint.code == "missing_label")
                )
            )
        )

    def _redact_lints(self) -> list[tuple[int, Lint]]:
        """Return the findings without secrets: a fault is often described by quoting a value."""
        texts = "\n".join(lint.message + lint.suggestion for _, lint in self._lints)
        # A config may hold thousands, of which hardly any is in a message.
        redact = Redaction(
            {s: by for s, by in self.secrets.items() if may_begin_in(s, texts)}
        ).redact_text

        def redact_text(text: str) -> str:
            text = redact(text).replace(UNSET_MARK, "")
            return text if len(text) <= _MAX_MESSAGE_CHARS else f"{text[:_MAX_MESSAGE_CHARS]}…"

        return [
            (
                order,
                replace(
                    lint, message=redact_text(lint.message), suggestion=redact_text(lint.suggestion)
                ),
            )
            for order, lint in self._lints
        ]


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return a suggestion that names the closest of the known names, or an empty string."""
    names = list(known)
    if len(names) > _MAX_COMPARED_NAMES:
        return ""
    by_lower_case = {known_name.lower(): known_name for known_name in names}
    close = difflib.get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.6)
    return f"did you mean {by_lower_case[close[0]]}?" if close else ""
