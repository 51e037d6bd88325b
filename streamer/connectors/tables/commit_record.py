"""Commits of a table, as its history has them: for figures, and for whoever checks a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from streamer.core.timestamps import format_rfc3339

_NS_PER_MS = 1_000_000


class CommitRecord(NamedTuple):
    """One commit.

    Attributes:
        version: the version, or the identifier of the snapshot.
        time_ms: when it was made, Unix ms.
        operation: what the format calls it.
        rows: rows that it adds; -1 where the history does not say it.
        files: files that it adds.
        size: bytes of these files.
        retries: how often the library has tried again, since another program was faster.
        writer: names the output of the stream that made it; empty for another program.
        batch: the number of its micro-batch; -1 for another program.
    """

    version: int
    time_ms: int
    operation: str
    rows: int
    files: int
    size: int
    retries: int
    writer: str
    batch: int


def describe_commits(commits: Sequence[CommitRecord]) -> str:
    """Return commits in words, the newest first; empty where there are none."""
    if not commits:
        return ""
    return "last commits: " + ", ".join(_describe_one(one) for one in commits)


def _describe_one(commit: CommitRecord) -> str:
    rows = "" if commit.rows < 0 else f"{commit.rows:,} rows, "
    author = f", micro-batch {commit.batch}" if commit.batch >= 0 else ""
    files = f"{commit.files:,} file{'' if commit.files == 1 else 's'}"
    at = format_rfc3339(commit.time_ms * _NS_PER_MS)
    return f"{commit.version} at {at} ({commit.operation}: {rows}{files}{author})"
