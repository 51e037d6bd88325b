"""Checks of a checkpoint: whether it can be read, who has it, its format and its age."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from streamer.core.durations import SECOND, format_duration
from streamer.plan.checkpoint_dir import is_remote
from streamer.tools.doctor.diagnosis import Diagnosis, Severity

_NAME: Final = "checkpoint"
_RESTORE: Final = (
    "restore it from a backup; without one, start with another directory (--checkpoint), which "
    "begins with the input's beginning"
)


def check_checkpoint(
    directory: str,
    fingerprint: Mapping[str, Any] | None = None,
    wall: Callable[[], int] = time.time_ns,
) -> Iterator[Diagnosis]:
    """Check a checkpoint; nothing is written but its lock, for a moment.

    Args:
        directory: where it is; also the directory of a service, with a checkpoint for each stream.
        fingerprint: that of the plan that is to go on with it; None for none.
        wall: the machine's clock, ns.

    Raises:
        StreamerError: it is damaged, of another format, or the plan does not fit it.
    """
    if is_remote(directory):
        yield Diagnosis(_NAME, Severity.NONE, f"{directory}: read when Spark starts")
        return
    path = Path(directory.removeprefix("file://"))
    if not path.exists():
        yield Diagnosis(_NAME, Severity.OK, f"{path}: new, a start makes it")
        return
    if not path.is_dir():
        text = f"{path} is a file; expected a directory"
        yield Diagnosis(_NAME, Severity.ERROR, text, "name another one with --checkpoint")
        return
    if not (path / "streamer.json").exists() and not (path / "spark").exists():
        # A service has a directory for each of its streams.
        streams = [record.parent for record in sorted(path.glob("*/streamer.json"))]
        for stream in streams:
            yield from _check_contents(stream, None, wall())
        if not streams:
            yield Diagnosis(_NAME, Severity.OK, f"{path}: no stream has begun in it")
        return
    yield from _check_contents(path, fingerprint, wall())


def _check_contents(
    path: Path, fingerprint: Mapping[str, Any] | None, now: int
) -> Iterator[Diagnosis]:
    from streamer.spark.checkpoint.checkpoint import Checkpoint, CheckpointError, in_use_error
    from streamer.spark.checkpoint.checkpoint_diagnosis import find_damaged_file
    from streamer.spark.checkpoint.directory_lock import DirectoryLock

    lock = DirectoryLock(path)
    try:
        is_free, holder = lock.acquire(), lock.holder()
    finally:
        lock.close()
    if not is_free:
        text = str(in_use_error(str(path), str(holder or ""))).partition(";")[0]
        remedy = "a stream that runs has it; stop that one before another start"
        yield Diagnosis(_NAME, Severity.WARNING, text, remedy)
        yield _describe_record(path, now)
        return
    checkpoint = Checkpoint(path, wait=0.0)
    try:
        record = checkpoint.read_record()
        if damaged := find_damaged_file(checkpoint.spark):
            text = f"{checkpoint.spark}/{damaged} is damaged"
            yield Diagnosis(_NAME, Severity.ERROR, text, _RESTORE)
            return
        yield _describe_record(path, now)
        if fingerprint is not None and not record.get("finished"):
            checkpoint.check_fingerprint(fingerprint)
    except CheckpointError as e:
        text, _, remedy = str(e).partition("; ")
        yield Diagnosis(_NAME, Severity.ERROR, text, remedy or _RESTORE)
    finally:
        checkpoint.close()


def _describe_record(path: Path, now: int) -> Diagnosis:
    """Return the format of a checkpoint and the age of its newest micro-batch."""
    try:
        record = json.loads((path / "streamer.json").read_bytes())
    except (OSError, ValueError):
        return Diagnosis(_NAME, Severity.ERROR, f"{path}/streamer.json cannot be read", _RESTORE)
    written = [one.stat().st_mtime_ns for one in path.glob("spark*/commits/*")]
    state = "its run has finished, and the next one begins anew; " if record.get("finished") else ""
    age = "no micro-batch yet"
    if written:
        seconds = max(0, now - max(written)) // SECOND
        age = f"its newest micro-batch is {format_duration(seconds * SECOND)} old"
    return Diagnosis(_NAME, Severity.OK, f"{path}: format {record.get('format')}, {state}{age}")
