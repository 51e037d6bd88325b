"""Findings of a lint where the extra `all` is installed, and what it leaves out may not be."""

from __future__ import annotations

from collections.abc import Iterable

from streamer.core.errors import Lint
from streamer.core.extras import NOT_IN_ALL


def list_findings(lints: Iterable[Lint]) -> list[str]:
    """Return the findings as text, but for packages of extras that are not in `all`."""
    return [
        str(lint)
        for lint in lints
        if lint.code != "missing_package"
        or not any(f"[{extra}]" in str(lint) for extra in NOT_IN_ALL)
    ]
