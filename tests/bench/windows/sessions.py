"""Sessions of a million users: a workload, what its sessions are, and the measurement.

A user has ten events on average, in two bursts. Times are even milliseconds and the gap is odd, so
that nobody has to argue whether two events that are exactly the gap apart are one session.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np

from tests.bench import answers, report
from tests.bench.peers import lines_of
from tests.bench.windows import jobs, measure, versus
from tests.bench.windows.settings import Settings

MOST = 10_000_000
"""Events: a million users."""

GAP_MS = 30_001
SPAN_MS = 1_000_000
"""The time in which all bursts begin: about a twentieth of all sessions is open at once."""

BURST, USERS_EVENTS = 5, 10
ORIGIN = np.datetime64("2026-01-01T00:00:00.000")

Sessions = dict[tuple[str, datetime], tuple[datetime, int, int]]
"""By user and start: the end, the number of events, and the sum of their amounts."""


def write(directory: Path, events: int, files: int, users_events: int = USERS_EVENTS) -> list[Path]:
    """Write the workload into numbered files, in the order of its times.

    Args:
        directory: is made.
        events: how many.
        files: how many.
        users_events: how many a user has on average.
    """
    directory.mkdir(parents=True)
    rng = np.random.default_rng(7)
    # From one to nine events a burst, five on average; twice as many bursts as can be needed.
    lengths = rng.integers(1, 2 * BURST, 2 * events // BURST + BURST)
    burst = np.repeat(np.arange(len(lengths)), lengths)[:events]
    steps = 2 * rng.integers(100, 2_500, events)
    after = np.cumsum(steps) - steps
    first = np.flatnonzero(np.diff(burst, prepend=-1))
    after -= np.repeat(after[first], np.diff(np.append(first, events)))
    start = 2 * rng.integers(0, SPAN_MS // 2, len(lengths))
    times = start[burst] + after
    order = np.argsort(times, kind="stable")
    users = burst[order] % max(1, events // users_events)
    amounts = rng.integers(1, 1_000, events)
    paths = [directory / f"activity-{number:03d}.jsonl" for number in range(files)]
    share = -(-events // files)
    for number, path in enumerate(paths):
        part = slice(number * share, (number + 1) * share)
        shown = np.datetime_as_string(ORIGIN + times[order[part]].astype("timedelta64[ms]"))
        rows = zip(users[part].tolist(), shown.tolist(), amounts[part].tolist(), strict=True)
        path.write_text(
            "".join(f'{{"user":"u{u:07}","at":"{t}Z","amount":{a}}}\n' for u, t, a in rows)
        )
    return paths


def expected(lines: Iterable[bytes], gap_ms: int = GAP_MS) -> Sessions:
    """Say what the sessions of events are, which are in the order of their times."""
    gap = timedelta(milliseconds=gap_ms)
    open_now: dict[str, tuple[datetime, datetime, int, int]] = {}
    found: Sessions = {}
    for event in map(json.loads, lines):
        user, at, amount = event["user"], datetime.fromisoformat(event["at"]), event["amount"]
        start, end, events, total = open_now.get(user, (at, at, 0, 0))
        if at - end > gap:
            found[user, start] = end, events, total
            start, events, total = at, 0, 0
        open_now[user] = start, at, events + 1, total + amount
    for user, (start, end, events, total) in open_now.items():
        found[user, start] = end, events, total
    return found


def given(lines: Iterable[bytes]) -> Sessions:
    """Read what a job wrote, a JSON object a line.

    Raises:
        ValueError: a session came twice.
    """
    found: Sessions = {}
    for session in map(json.loads, lines):
        start, end = (datetime.fromisoformat(session[name]) for name in ("start", "end"))
        key = session["user"], start
        if key in found:
            raise ValueError(f"{key} came twice")
        found[key] = end, session["events"], session["total"]
    return found


def differences(paths: list[Path], lines: Iterable[bytes]) -> str:
    """Compare lines with the sessions of some files."""
    return answers.differences(expected(lines_of(paths)), given(lines))


def session(work: Path, wanted: Settings) -> None:
    """Sum up each session as it ends."""
    events = min(MOST, wanted.events)
    report.heading(f"sessions: {events // USERS_EVENTS:,} users, gap {GAP_MS} ms, {wanted.master}")
    paths = write(work / "files", events, -(-events // measure.BATCH))
    buffer = jobs.sessions(GAP_MS)
    files = work / "files" / "*.jsonl"

    def config(out: Path) -> str:
        return jobs.from_files(files, buffer, jobs.SESSION, out, wanted.master)

    check = partial(differences, paths)
    ours = measure.run("session", config, check, work / "run", events, least=100_000)
    if not wanted.alone:
        some = versus.first(paths, min(versus.SESSIONS, events), work / "peers" / "files")
        check = partial(differences, some)
        versus.versus("session", ours, check, some, work / "peers", wanted.master)
    shutil.rmtree(work)
