"""The part `windows`: which kinds there are, and in what order they run."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from tests.bench import report
from tests.bench.windows.each import each
from tests.bench.windows.joins import join
from tests.bench.windows.lights import lights, system
from tests.bench.windows.release import release
from tests.bench.windows.sessions import session
from tests.bench.windows.settings import Settings

KINDS = ("tumbling", "hopping", "system", "session", "each", "join", "release")


def windows(work: Path, wanted: Settings, kinds: Collection[str]) -> None:
    """Measure the kinds that are asked for; one that fails does not keep the others from it.

    Raises:
        RuntimeError: some failed, or gave wrong answers.
    """
    parts: dict[str, Callable[[Path, Settings], None]] = {
        name: run
        for name, run in (("system", system), ("session", session), ("each", each), ("join", join))
        if name in kinds
    }
    tumbling, hopping = "tumbling" in kinds, "hopping" in kinds
    if tumbling or hopping:
        parts = {"lights": partial(lights, tumbling=tumbling, hopping=hopping), **parts}
    if "release" in kinds:
        parts["release"] = release
    failed = []
    for name, run in parts.items():
        try:
            run(work / name, wanted)
        except (RuntimeError, ValueError) as e:
            failed.append(name)
            report.note(f"FAILED: {e}")
    if failed:
        raise RuntimeError(f"windows: {', '.join(failed)}")
