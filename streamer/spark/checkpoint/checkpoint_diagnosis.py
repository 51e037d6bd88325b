"""Finds the file of a checkpoint that is damaged, where Spark's error does not name any.

Of files that were written over, or that a disk has lost, Spark says no more than what it stumbled
on, such as `Input length = 1`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from streamer.engine.driver.failure_diagnosis import Diagnosis, diagnose
from streamer.engine.planner.checkpoint_path import Location
from streamer.engine.planner.offset_log import NO_OFFSET
from streamer.engine.report.metric_labels import EndpointLabels

_LOGS: Final = ("offsets", "commits")
_FILES_READ_PER_LOG: Final = 2
"""Of each log, a start reads so many of the newest files."""

REMEDY: Final = "restore the checkpoint from a backup, or start again with another one"


def diagnose_failure(
    error: str, places: EndpointLabels, checkpoint: Location, directory: Location
) -> Diagnosis:
    """Return why a micro-batch has failed, and which component it is of.

    Args:
        error: all that Spark says.
        places: the stream's components.
        checkpoint: the stream's checkpoint.
        directory: what Spark calls its location, below it.
    """
    trouble = diagnose(error, places, str(checkpoint))
    # Of state that cannot be read, it may be the log that says which state that is.
    unclear = not trouble.place or trouble.is_permanent
    if unclear and (file := find_damaged_file(directory)):
        size = _file_size(directory, file)
        how = f"ends too soon or was written over ({size} bytes)" if size else "is empty"
        text = f"the checkpoint {checkpoint} is damaged, {directory}/{file} {how}"
        return Diagnosis(f"{text}; {REMEDY}", places.state, is_permanent=True)
    return trouble


def find_damaged_file(directory: Location) -> str:
    """Return the first file that cannot be read, by its path below a directory; empty for none.

    Args:
        directory: what Spark calls the checkpoint's location.
    """
    try:
        files = (path for path in _files_read_at_start(directory) if not _is_readable(path))
        return next((str(path).removeprefix(f"{directory}/") for path in files), "")
    except OSError:
        return ""  # A file system elsewhere, which does not answer.


def _files_read_at_start(directory: Location) -> Iterator[Location]:
    for log in _LOGS:
        paths = (path for path in (directory / log).glob("*") if path.name.isdecimal())
        yield from sorted(paths, key=lambda path: -int(path.name))[:_FILES_READ_PER_LOG]


def _is_readable(path: Location) -> bool:
    """Return whether a file has a version in its first line, and JSON in each of the others.

    Of one that ends behind its version Spark says nothing, and takes it for one without state.
    """
    try:
        version, *lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
        for line in lines:
            if line != NO_OFFSET:
                json.loads(line)
    except FileNotFoundError:
        return True  # Spark removes old ones meanwhile.
    except (OSError, ValueError):
        return False
    return bool(lines) and version[:1] == "v" and version[1:].isdecimal()


def _file_size(directory: Location, file: str) -> int:
    log, _, number = file.partition("/")
    try:
        return len((directory / log / number).read_bytes())
    except OSError:
        return 0
