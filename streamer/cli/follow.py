"""What `streamer submit` says of a driver while it gets on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

import click

from streamer.errors import StreamerError

if TYPE_CHECKING:
    from streamer.spark.submission import Status

_LOOK: Final = 1.0


class Drivers(Protocol):
    """Drivers on a cluster, by their ids."""

    def status(self, id: str) -> Status | None:
        """Return how one is; None when nobody knows it."""

    def kill(self, id: str) -> None:
        """Have one stopped."""


def look_after(drivers: Drivers, id: str, stop: bool, unknown: str) -> int:
    """Print how a driver is, or stop it; return the exit code.

    Args:
        drivers: of the cluster.
        id: the driver's.
        stop: stop it.
        unknown: what is said when nobody knows it.

    Raises:
        StreamerError: nobody knows it.
    """
    if stop:
        drivers.kill(id)
        tell(f"{id} is told to stop")
        return 0
    status = drivers.status(id)
    if status is None:
        raise StreamerError(unknown)
    click.echo(shown(status))
    return int(status.failed)


def follow(
    look: Callable[[], Status | None], unknown: str, waits: str, patience: float | None
) -> Status:
    """Say how a driver gets on, until it runs or ends.

    Args:
        look: tells how it is.
        unknown: what is said when nobody knows it.
        waits: what is said when it has not begun for as long as patience lasts.
        patience: seconds; None waits for its end, even when it runs.

    Raises:
        StreamerError: nobody knows it.
    """
    began, before = time.monotonic(), ""
    while True:
        status = look()
        if status is None:
            raise StreamerError(unknown)
        if status.state != before:
            tell(shown(status))
            before = status.state
        if status.ended or (patience is not None and status.state == "RUNNING"):
            return status
        if patience is not None and time.monotonic() - began > patience:
            tell(waits)
            return status
        time.sleep(_LOOK)


def shown(status: Status) -> str:
    """Return how a driver is, in a line."""
    where = f" on {status.worker}" if status.worker else ""
    return f"{status.state}{where}{f': {status.error}' if status.error else ''}"


def tell(text: str) -> None:
    """Say something beside what is printed for programs."""
    click.echo(text, err=True)
