"""Checks of a config: its findings, and whether what it connects to can be reached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamer.core.errors import Lint
from streamer.plan import Plan
from streamer.tools.doctor.diagnosis import Diagnosis, Severity
from streamer.tools.dry_run.components import check_components

_REMEDY = "see that it runs and can be reached from here, or correct the config"
_SEVERITIES = {True: Severity.OK, False: Severity.ERROR, None: Severity.NONE}


def to_diagnoses(lints: Iterable[Lint], severity: Severity = Severity.ERROR) -> Iterator[Diagnosis]:
    """Return findings about a config, such as a variable or a package that is missing."""
    for lint in lints:
        place = f"{lint.file}({lint.line},{lint.column})"
        missing = "no such file" in lint.message
        remedy = lint.suggestion or ("check the path" if missing else "streamer lint says more")
        yield Diagnosis("config", severity, f"{place} {lint.message}", remedy)


def check_reachability(plan: Plan) -> Iterator[Diagnosis]:
    """Connect every input and output, as a dry run does."""
    for check in check_components(plan):
        remedy = _REMEDY if check.ok is False else ""
        yield Diagnosis(check.name, _SEVERITIES[check.ok], check.detail, remedy)
