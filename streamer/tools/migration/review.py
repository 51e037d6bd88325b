"""The review of a config of Benthos or Redpanda Connect: what runs, what differs, what is missing.

It reads files, and changes and starts nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from streamer.config import LintOptions, lint_config
from streamer.config.lint.rules import RULES
from streamer.config.partial import MissingComponent, PartialConfig, read_partial_config
from streamer.config.unit_tests.definitions import find_definitions, read_definitions
from streamer.core.errors import ConfigError, Lint
from streamer.sdk.spec import Kind
from streamer.tools.migration.differences import Difference, find_differences

_MISSING_CODES = frozenset({"unavailable_component", "unknown_component"})
_THOROUGH_OPTIONS = LintOptions(check_variables=False, thorough=True)


class Verdict(StrEnum):
    """Whether a config runs."""

    RUNS = "runs"
    NEEDS_CHANGES = "needs_changes"
    LACKS_COMPONENTS = "lacks_components"


@dataclass(frozen=True, slots=True)
class Review:
    """The review of one file.

    Attributes:
        file: its name as the user wrote it.
        missing: components that there are not.
        findings: what lint says besides, in the order of the file.
        differences: in behaviour, between Benthos and streamer.
        tests: number of its unit tests, those of files beside it included.
        config: the config as far as it can be read; None where it cannot.
    """

    file: str
    missing: tuple[MissingComponent, ...]
    findings: tuple[Lint, ...]
    differences: tuple[Difference, ...]
    tests: int = 0
    config: PartialConfig | None = None

    @property
    def verdict(self) -> Verdict:
        """Whether the config runs."""
        if self.missing:
            return Verdict.LACKS_COMPONENTS
        return Verdict.NEEDS_CHANGES if self.findings else Verdict.RUNS


def review_config(file: str, env: Mapping[str, str], resources: Sequence[str] = ()) -> Review:
    """Return the review of a config's file.

    Args:
        file: its name.
        env: the environment's variables; those that are missing are no findings.
        resources: files with further resources.
    """
    try:
        config = read_partial_config(file, env)
    except ConfigError as e:
        return Review(file, (), e.lints, ())
    # A thorough lint alone knows which findings come of variables without a value. It warns of
    # much with which a config runs.
    lints = lint_config(file, env=env, options=_THOROUGH_OPTIONS, resources=resources)
    findings = tuple(
        one for one in lints if RULES[one.code].level == "error" and one.code not in _MISSING_CODES
    )
    return Review(
        file, config.missing, findings, find_differences(config), _count_tests(file), config
    )


def _count_tests(file: str) -> int:
    return sum(len(read_definitions(path).cases) for path in (file, *find_definitions(file)))


def count_missing(reviews: Iterable[Review]) -> list[tuple[tuple[Kind, str], int]]:
    """Return missing components with the number of files that name them, the most wanted first."""
    count: Counter[tuple[Kind, str]] = Counter()
    for review in reviews:
        count.update({(one.kind, one.name) for one in review.missing})
    return sorted(count.items(), key=lambda item: (-item[1], item[0]))


def group_differences(reviews: Iterable[Review]) -> dict[Difference, list[str]]:
    """Return differences with their places, `file` or `file:line`; equal ones are one."""
    places: dict[tuple[str, str], tuple[Difference, list[str]]] = {}
    for review in reviews:
        for one in review.differences:
            _, listed = places.setdefault((one.subject, one.text), (one, []))
            listed.append(f"{review.file}:{one.line}" if one.line else review.file)
    return dict(places.values())


def to_fields(review: Review) -> dict[str, object]:
    """Return a review as a JSON object."""
    return {
        "file": review.file,
        "verdict": str(review.verdict),
        "tests": review.tests,
        "missing": [
            {
                "kind": str(one.kind),
                "name": one.name,
                "line": one.line,
                "column": one.column,
                "known": one.is_known,
                "replacement": one.replacement,
            }
            for one in review.missing
        ],
        "findings": [
            {
                "line": one.line,
                "column": one.column,
                "code": one.code,
                "message": one.message,
                "suggestion": one.suggestion,
            }
            for one in review.findings
        ],
        "differences": [
            {"subject": one.subject, "line": one.line, "text": one.text, "change": one.change}
            for one in review.differences
        ],
    }
