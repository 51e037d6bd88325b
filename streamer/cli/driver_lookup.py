"""Which driver is meant: by its id, or by what stays when the id does not.

The master gives a driver another id when it starts it again after the loss of its worker. What
stays is the checkpoint, and with it the name of the stream.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streamer.cli import driver
from streamer.errors import StreamerError

if TYPE_CHECKING:
    from streamer.spark.submission import Submitted

_ID: Final = re.compile(r"driver-\d{14}-\d+")
_BELOW_CHECKPOINT: Final = 2
"""`CHECKPOINT/submitted/JOB/start.py`: how far the job's directory is below the checkpoint."""


def find_driver(
    wanted: str, drivers: Sequence[Submitted], say: Callable[[str], None] = lambda text: None
) -> str:
    """Return the id that a driver has now.

    Args:
        wanted: an id, the name of a stream, or its checkpoint's directory.
        drivers: all that the master knows, the newest first.
        say: hears when the id is another one than was given.

    Raises:
        StreamerError: the master knows no such driver.
    """
    if _ID.fullmatch(wanted):
        return _successor(wanted, drivers, say)
    place = Path(wanted.removeprefix("file://")).absolute()
    found = [one for one in drivers if place == _checkpoint(one) or wanted in _names(one)]
    if not found:
        known = sorted({str(_checkpoint(one)) for one in drivers if one.active})
        listed = f"; those that run have {', '.join(known)}" if known else ""
        raise StreamerError(
            f"the master knows no driver of {wanted!r}, expected an id, the name of a stream or "
            f"its checkpoint{listed}"
        )
    found = [one for one in found if one.active] or found[:1]
    if len({_checkpoint(one) for one in found}) > 1:
        several = ", ".join(f"{one.id} ({_checkpoint(one)})" for one in found)
        raise StreamerError(f"several drivers are called {wanted!r}: {several}; name one by its id")
    say(f"{wanted} is {found[0].id}")
    return found[0].id


def _successor(id: str, drivers: Sequence[Submitted], say: Callable[[str], None]) -> str:
    known = next((one for one in drivers if one.id == id), None)
    if known is None or known.active:
        return id
    later = next((one for one in drivers if one.active and one.file == known.file), None)
    if later is None:
        return id
    say(f"{id} has lost its worker, and goes on as {later.id}")
    return later.id


def _checkpoint(one: Submitted) -> Path:
    return Path(one.file).parents[_BELOW_CHECKPOINT]


def _names(one: Submitted) -> set[str]:
    """Return what a driver is called: by its checkpoint, and by the config that it runs."""
    found = {_checkpoint(one).name}
    try:
        job = json.loads((Path(one.file).parent / driver.JOB).read_text())
        if job["arguments"][0] == "run":
            found.add(Path(job["arguments"][1]).stem)
    except (OSError, ValueError, LookupError, TypeError):
        pass  # the directory may be seen by the workers alone
    return found
