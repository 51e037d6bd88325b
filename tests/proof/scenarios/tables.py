"""Lookup tables that are replaced."""

from __future__ import annotations

import json
import time
from pathlib import Path

from tests.proof.runner import Run, under_load
from tests.proof.verdict import ProofError

_MORE = """
table_resources:
  - label: versions
    csv: {{path: "{path}", key: name, refresh_interval: 100ms}}
"""


def replaced(run: Run) -> str:
    """Kill the driver when windows were just written; replace the table while it is down."""
    path = run.directory / "versions.csv"
    _replace(path, 0)
    looked_up = 'table("versions").get("now").number.number()'
    run.configure(version=looked_up, more=_MORE.format(path=path))

    def fault(run: Run) -> None:
        between = 0
        for number in range(1, run.times + 1):
            before, until = run.sink.written(), time.monotonic() + 60
            while run.sink.written() == before and time.monotonic() < until:
                time.sleep(0.0005)
            run.kill()
            between += run.chronicle.planned() > run.chronicle.committed()
            _replace(path, number)
            run.start()
            run.wait_for_output()
        run.injected.append(f"{run.times} kill -9, {between} before the commit")

    figures = under_load(run, fault)
    return f"{figures}; {_check_versions(run)}"


def _replace(path: Path, number: int) -> None:
    """Write a table, as the docs want it: beside it, then over it."""
    draft = path.with_suffix(".tmp")
    draft.write_text(f"name,number\nnow,{number}\n")
    draft.replace(path)


def _check_versions(run: Run) -> str:
    """Hold that a window that came again was made with the same version; return the figures."""
    found: dict[tuple[str, str, str], int] = {}
    for line in run.sink.windows():
        one = json.loads(line)
        window = one["start"], one["end"], one["key"]
        if found.setdefault(window, one["version"]) != one["version"]:
            raise ProofError(
                f"the window of {one['key']} to {one['end']} came with version {found[window]} "
                f"of the table, and again with version {one['version']}"
            )
    seen = sorted(set(found.values()))
    if seen != list(range(run.times + 1)):
        raise ProofError(f"of {run.times + 1} versions of the table windows have {seen}")
    return f"{len(seen)} versions"
