"""Outcomes of the checks of a stream: findings of lint, its plan, results of unit tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from streamer.core.errors import ConfigError, Lint
from streamer.service.library.errors import UnitTestsFailedError
from streamer.service.library.text_view import TextView
from streamer.tools.unit_tests.suite import CaseResult


class LintFindings(TextView, Sequence[Lint]):
    """The findings of lint about a config, in the order of its text; empty when all is well.

    Example:
        >>> findings = LintFindings([Lint("a.yaml", 2, 3, "unknown_field", "field x is unknown")])
        >>> findings
        a.yaml(2,3) field x is unknown [unknown_field]
        >>> len(findings), findings[0].code, bool(LintFindings(()))
        (1, 'unknown_field', False)
    """

    def __init__(self, lints: Sequence[Lint]) -> None:
        """Take the findings."""
        self._lints = tuple(lints)

    @overload
    def __getitem__(self, index: int) -> Lint: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Lint, ...]: ...

    def __getitem__(self, index: int | slice) -> Lint | tuple[Lint, ...]:
        return self._lints[index]

    def __len__(self) -> int:
        return len(self._lints)

    def __iter__(self) -> Iterator[Lint]:
        return iter(self._lints)

    def __str__(self) -> str:
        return "\n".join(f"{lint} [{lint.code}]" for lint in self._lints) or "no findings"

    def raise_for_findings(self) -> None:
        """Do nothing when there are no findings.

        Raises:
            ConfigError: there are some; it has them all.
        """
        if self._lints:
            raise ConfigError(self._lints)


class Explanation(TextView):
    """The plan of a stream in words: stages, shards, windows, and the place of each processor."""

    def __init__(self, text: str) -> None:
        """Take the text, without secrets."""
        self._text = text

    def __str__(self) -> str:
        return self._text


class TestReport(TextView):
    """The results of the unit tests of a config.

    Attributes:
        cases: the results, in the order of the files.
        lints: findings about the config and its tests; any of them is a failure.
    """

    __test__ = False

    def __init__(self, cases: Sequence[CaseResult], lints: Sequence[Lint]) -> None:
        """Take the results, without secrets."""
        self.cases = tuple(cases)
        self.lints = LintFindings(lints)

    @property
    def passed(self) -> bool:
        """Whether there are tests, and all of them have passed."""
        return bool(self.cases) and not self.failures and not self.lints

    @property
    def failures(self) -> tuple[CaseResult, ...]:
        """The tests that have failed."""
        return tuple(case for case in self.cases if case.failures)

    def __str__(self) -> str:
        if not self.cases and not self.lints:
            return "no tests"
        failed = len(self.failures)
        parts = [f"{len(self.cases) - failed} passed"]
        parts += [f"{failed} failed"] if failed else []
        parts += [f"{len(self.lints)} findings of lint"] if self.lints else []
        lines = [f"{len(self.cases)} tests: {', '.join(parts)}"]
        lines += [str(self.lints)] if self.lints else []
        for case in self.failures:
            lines.append(f"{case.name} (line {case.line}):")
            lines += [f"  {line.text}" for failure in case.failures for line in failure]
        return "\n".join(lines)

    def raise_for_failures(self) -> None:
        """Do nothing when all tests have passed.

        Raises:
            UnitTestsFailedError: some have failed, or there are none; the text is the report.
        """
        if not self.passed:
            raise UnitTestsFailedError(str(self))
