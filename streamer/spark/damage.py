"""What is wrong when Spark says little: which file of a checkpoint is not what was written there.

Of files that were written over, or that a disk has lost, Spark says no more than what it stumbled
on, such as `Input length = 1`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from streamer.engine.location import Location
from streamer.engine.places import Places
from streamer.engine.troubles import Trouble, trouble_of

_LOGS: Final = ("offsets", "commits")
_READ: Final = 2
"""Of each log, a start reads so many of the newest files."""

REMEDY: Final = "restore the checkpoint from a backup, or start anew with another one"

_NOTHING: Final = "-"
"""Stands in the line of a source that has no offset yet."""


def trouble_at(error: str, places: Places, checkpoint: Location, directory: Location) -> Trouble:
    """Return why a micro-batch has failed, and which component it is of.

    Args:
        error: all that Spark says.
        places: the stream's components.
        checkpoint: the stream's checkpoint.
        directory: what Spark calls its location, below it.
    """
    found = trouble_of(error, places, str(checkpoint))
    # Of state that cannot be read, it may be the log that says which state that is.
    unclear = not found.place or found.lasts
    if unclear and (file := damaged(directory)):
        size = _size(directory, file)
        how = f"ends too soon or was written over ({size} bytes)" if size else "is empty"
        text = f"the checkpoint {checkpoint} is damaged, {directory}/{file} {how}"
        return Trouble(f"{text}; {REMEDY}", places.state, lasts=True)
    return found


def damaged(directory: Location) -> str:
    """Return the first file that cannot be read, by its path below a directory; empty for none.

    Args:
        directory: what Spark calls the checkpoint's location.
    """
    try:
        files = (path for path in _needed(directory) if not _is_readable(path))
        return next((str(path).removeprefix(f"{directory}/") for path in files), "")
    except OSError:
        return ""  # A file system elsewhere, which does not answer.


def _needed(directory: Location) -> Iterator[Location]:
    for log in _LOGS:
        found = (path for path in (directory / log).glob("*") if path.name.isdecimal())
        yield from sorted(found, key=lambda path: -int(path.name))[:_READ]


def _is_readable(path: Location) -> bool:
    """Tell whether a file has a version in its first line, and JSON in each of the others.

    Of one that ends behind its version Spark says nothing, and takes it for one without state.
    """
    try:
        version, *lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
        for line in lines:
            if line != _NOTHING:
                json.loads(line)
    except FileNotFoundError:
        return True  # Spark removes old ones meanwhile.
    except (OSError, ValueError):
        return False
    return bool(lines) and version[:1] == "v" and version[1:].isdecimal()


def _size(directory: Location, file: str) -> int:
    log, _, number = file.partition("/")
    try:
        return len((directory / log / number).read_bytes())
    except OSError:
        return 0
