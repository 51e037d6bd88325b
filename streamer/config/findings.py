"""The findings about a config, collected while it is read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from streamer.config.inside import offset_inside
from streamer.config.nodes import Node, Scalar
from streamer.config.source import Source
from streamer.config.unset import UNSET, is_unset
from streamer.errors import Lint
from streamer.redaction import Redaction, begins_in

_ABOUT_VALUES: Final = frozenset(
    {"invalid_option", "bad_duration", "bad_value", "bad_bloblang", "missing_label", "bad_label"}
    | {f"expected_{what}" for what in ("string", "int", "float", "bool", "object", "array")}
)
_HARMLESS: Final = frozenset(
    {"unknown_field", "duplicate_field", "deprecated", "missing_label", "duplicate_label"}
    | {"bad_label", "missing_variable", "should_omit", "doubtful_bloblang", "missing_package"}
)
MAX_FINDINGS: Final = 1_000
_MOST_COMPARED: Final = 500
"""Names that are compared for a suggestion: it takes time for each."""
_LONGEST: Final = 1_500


class TooManyFindings(Exception):
    """Nobody reads so many; whoever collects them may stop."""


class Findings:
    """A list of at most `MAX_FINDINGS` lints that knows how to place them.

    Attributes:
        secrets: texts that no message may show, by what is shown instead: values of environment
            variables and of secret fields, and passwords of URLs.
        unset: lines, by file, with variables that have no value, whether or not that is a finding.
        marked: the files in which `UNSET` stands in the place of such variables.
    """

    def __init__(self) -> None:
        self.secrets: dict[str, str] = {}
        self.unset: set[tuple[str, int]] = set()
        self.marked: set[str] = set()
        self._lints: list[tuple[int, Lint]] = []
        self._sources: dict[str, int] = {}
        self._harmless = 0
        self._unknown = 0

    def __len__(self) -> int:
        return len(self._lints)

    def clear(self) -> None:
        """Forget all findings, when the text is to be read in another way."""
        self._lints.clear()
        self._harmless = 0

    @property
    def harmful(self) -> int:
        """How many findings leave a value missing or unusable, so that it can't be looked at.

        Values that nobody knows are counted too, though they are no findings.
        """
        return len(self._lints) - self._harmless + self._unknown

    def at_offset(
        self, source: Source, offset: int, code: str, message: str, suggestion: str = ""
    ) -> None:
        """Add a finding at an offset of a source's text."""
        line, column = source.place(offset)
        self.add(Lint(source.name, line, column, code, message, suggestion))

    def at(self, node: Node, code: str, message: str, suggestion: str = "") -> None:
        """Add a finding about a node, unless a variable without a value is in it."""
        if is_unset(node):
            self._unknown += code not in _HARMLESS
            return
        self.at_offset(node.source, node.start, code, message, suggestion)

    def inside(
        self, node: Scalar, at: tuple[int, int], code: str, message: str, suggestion: str = ""
    ) -> None:
        """Add a finding at a 1-based line and column of a scalar's text."""
        self.at_offset(node.source, offset_inside(node, *at), code, message, suggestion)

    def add(self, lint: Lint) -> None:
        """Add a finding whose place is known.

        Raises:
            TooManyFindings: it does not fit.
        """
        if len(self._lints) == MAX_FINDINGS:
            raise TooManyFindings
        order = self._sources.setdefault(lint.file, len(self._sources))
        self._lints.append((order, lint))
        self._harmless += lint.code in _HARMLESS

    def sorted(self, without_unset: bool = False) -> tuple[Lint, ...]:
        """Return all findings by source, line and column, each once, without secrets.

        Args:
            without_unset: leave out what is said of values where a variable has none, even if
                that is no finding.
        """
        ordered = sorted(self._clean(), key=lambda item: (item[0], item[1].line, item[1].column))
        missing = {(lint.file, lint.line) for _, lint in ordered if lint.code == "missing_variable"}
        unset = self.unset if without_unset else set()
        # What is wrong with a value that a missing variable leaves behind is no news.
        return tuple(
            dict.fromkeys(
                lint
                for _, lint in ordered
                if lint.code not in _ABOUT_VALUES
                or lint.file in self.marked
                or (
                    (lint.file, lint.line) not in missing
                    and ((lint.file, lint.line) not in unset or lint.code == "missing_label")
                )
            )
        )

    def _clean(self) -> list[tuple[int, Lint]]:
        """Return the findings without secrets: what is wrong is often said by quoting a value."""
        said = "\n".join(lint.message + lint.suggestion for _, lint in self._lints)
        # A config may hold thousands, of which hardly any is in a message.
        redact = Redaction({s: by for s, by in self.secrets.items() if begins_in(s, said)}).text

        def clean(text: str) -> str:
            text = redact(text).replace(UNSET, "")
            return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"

        return [
            (order, replace(lint, message=clean(lint.message), suggestion=clean(lint.suggestion)))
            for order, lint in self._lints
        ]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a suggestion that names the closest of the known names, or an empty string."""
    names = list(known)
    if len(names) > _MOST_COMPARED:
        return ""
    folded = {known_name.lower(): known_name for known_name in names}
    close = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return f"did you mean {folded[close[0]]}?" if close else ""
