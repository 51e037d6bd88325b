"""Finds the driver that is meant: by its id, or by what stays when the id does not.

The master gives a driver another id when it starts it again after the loss of its worker. What
stays is the checkpoint, and with it the name of the stream.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streamer.cli.submit import driver
from streamer.core.errors import StreamerError

if TYPE_CHECKING:
    from streamer.spark.cluster.standalone_master import SubmittedDriver

_DRIVER_ID: Final = re.compile(r"driver-\d{14}-\d+")
_LEVELS_BELOW_CHECKPOINT: Final = 2
"""`CHECKPOINT/submitted/JOB/start.py`: how far the job's directory is below the checkpoint."""


def find_driver(
    name: str, drivers: Sequence[SubmittedDriver], notify: Callable[[str], None] = lambda text: None
) -> str:
    """Return the id that a driver has now.

    Args:
        name: an id, the name of a stream, or its checkpoint's directory.
        drivers: all that the master knows, the newest first.
        notify: called when the id is another one than was given.

    Raises:
        StreamerError: the master knows no such driver.
    """
    if _DRIVER_ID.fullmatch(name):
        return _find_successor(name, drivers, notify)
    checkpoint = Path(name.removeprefix("file://")).absolute()
    matches = [
        one for one in drivers if checkpoint == _find_checkpoint(one) or name in _collect_names(one)
    ]
    if not matches:
        known = sorted({str(_find_checkpoint(one)) for one in drivers if one.active})
        listed = f"; those that run have {', '.join(known)}" if known else ""
        raise StreamerError(
            f"the master knows no driver of {name!r}, expected an id, the name of a stream or "
            f"its checkpoint{listed}"
        )
    matches = [one for one in matches if one.active] or matches[:1]
    if len({_find_checkpoint(one) for one in matches}) > 1:
        several = ", ".join(f"{one.id} ({_find_checkpoint(one)})" for one in matches)
        raise StreamerError(f"several drivers are called {name!r}: {several}; name one by its id")
    notify(f"{name} is {matches[0].id}")
    return matches[0].id


def _find_successor(
    id: str, drivers: Sequence[SubmittedDriver], notify: Callable[[str], None]
) -> str:
    known = next((one for one in drivers if one.id == id), None)
    if known is None or known.active:
        return id
    later = next((one for one in drivers if one.active and one.file == known.file), None)
    if later is None:
        return id
    notify(f"{id} has lost its worker, and goes on as {later.id}")
    return later.id


def _find_checkpoint(one: SubmittedDriver) -> Path:
    return Path(one.file).parents[_LEVELS_BELOW_CHECKPOINT]


def _collect_names(one: SubmittedDriver) -> set[str]:
    """Return what a driver is called: by its checkpoint, and by the config that it runs."""
    names = {_find_checkpoint(one).name}
    try:
        job = json.loads((Path(one.file).parent / driver.JOB_FILE).read_text())
        if job["arguments"][0] == "run":
            names.add(Path(job["arguments"][1]).stem)
    except (OSError, ValueError, LookupError, TypeError):
        pass  # the directory may be seen by the workers alone
    return names
