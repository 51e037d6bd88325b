"""`switch`: chooses a scanner by the name of what is read.

"For each source of data the first candidate to pass will be selected. A candidate without any
conditions acts as a catch-all and will pass for every source." A source that no candidate takes is
an error, and is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from streamer.bloblang.runtime.regex import compile_re2
from streamer.sdk.input.scanning import (
    MAX_CUT_MESSAGES,
    START_MARK,
    ScanError,
    ScanInput,
    ScanMark,
    ScannedCut,
    Scanner,
    expansion_of,
)
from streamer.sdk.regex_field import pattern_problem
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

RE_MATCH_NAME: Final = "re_match_name"
SCANNER: Final = "scanner"


SPEC: Final = Spec(
    Kind.SCANNER,
    "switch",
    "Chooses a scanner for each source by its name, such as the path of a file.",
    description=(
        "The first candidate whose pattern matches is taken; end the list with one that has no "
        "pattern, since a source that none takes is logged as an error and left out."
    ),
    config=Field(
        "",
        "object",
        "The candidates, in order.",
        shape="array",
        children=(
            Field(
                RE_MATCH_NAME,
                "string",
                "A regular expression (RE2) that the source's name must match; any name when it "
                "is left out.",
                optional=True,
                check=pattern_problem,
                examples=(r"\.csv$",),
            ),
            Field(SCANNER, "scanner", "The scanner of the sources that match."),
        ),
    ),
    examples=(
        Example(
            "By the ending of the file's name",
            "input:\n"
            "  file:\n"
            "    paths: [ ./data/* ]\n"
            "    scanner:\n"
            "      switch:\n"
            "        - re_match_name: '\\.csv$'\n"
            "          scanner: { csv: {} }\n"
            "        - re_match_name: '\\.jsonl\\.gz$'\n"
            "          scanner:\n"
            "            decompress:\n"
            "              algorithm: gzip\n"
            "              into: { lines: {} }\n"
            "        - scanner: { to_the_end: {} }\n",
        ),
    ),
)


class Candidate(NamedTuple):
    """A scanner, and the pattern of the names that it is for; an empty one is for all."""

    pattern: str
    scanner: Scanner

    def matches(self, name: str) -> bool:
        """Return whether it is for a source of this name."""
        raw = name.encode("utf-8", "surrogateescape")
        return not self.pattern or compile_re2(self.pattern).search(raw) is not None


@dataclass(frozen=True, slots=True)
class SwitchScanner:
    """Scans with the first candidate whose pattern matches the name."""

    candidates: tuple[Candidate, ...]

    @property
    def expansion(self) -> int:
        """About how many bytes come out for one, at most."""
        return max((expansion_of(one.scanner) for one in self.candidates), default=1)

    def scan_stream(
        self, source: ScanInput, since: ScanMark = START_MARK, max_messages: int = MAX_CUT_MESSAGES
    ) -> Iterator[ScannedCut]:
        """Cut a stream; see `Scanner`."""
        for candidate in self.candidates:
            if candidate.matches(source.name):
                return candidate.scanner.scan_stream(source, since, max_messages)
        raise ScanError(
            f"{source.name!r} matches the re_match_name of no candidate of the scanner switch; end "
            "the list with a candidate without one"
        )


def build(parsed: tuple[ParsedFields, ...], context: BuildContext) -> SwitchScanner:
    """Build the candidates' scanners."""
    return SwitchScanner(
        tuple(Candidate(one[RE_MATCH_NAME] or "", context.build(one[SCANNER])) for one in parsed)
    )
