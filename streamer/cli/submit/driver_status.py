"""Prints the progress of a driver for `streamer submit`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

import click

from streamer.core.errors import StreamerError

if TYPE_CHECKING:
    from streamer.spark.cluster.standalone_master import DriverStatus

_POLL_INTERVAL_S: Final = 1.0


class Drivers(Protocol):
    """Drivers on a cluster, by their ids."""

    def status(self, id: str) -> DriverStatus | None:
        """Return how one is; None when nobody knows it."""

    def kill(self, id: str) -> None:
        """Have one stopped."""


def show_or_stop(drivers: Drivers, id: str, stop: bool, unknown_text: str) -> int:
    """Print how a driver is, or stop it; return the exit code.

    Args:
        drivers: of the cluster.
        id: the driver's.
        stop: stop it.
        unknown_text: the error's text when the cluster does not know it.

    Raises:
        StreamerError: nobody knows it.
    """
    if stop:
        drivers.kill(id)
        print_notice(f"{id} gets the request to stop")
        return 0
    status = drivers.status(id)
    if status is None:
        raise StreamerError(unknown_text)
    click.echo(format_status(status))
    return int(status.has_failed)


def follow_driver(
    poll: Callable[[], DriverStatus | None],
    unknown_text: str,
    waiting_text: str,
    timeout_s: float | None,
) -> DriverStatus:
    """Print each change of a driver's status, until it runs or ends.

    Args:
        poll: returns its status; None when the cluster does not know it.
        unknown_text: the error's text when the cluster does not know it.
        waiting_text: the error's text when it has not begun within `timeout_s`.
        timeout_s: seconds; None waits for its end, even when it runs.

    Raises:
        StreamerError: nobody knows it.
    """
    began, before = time.monotonic(), ""
    while True:
        status = poll()
        if status is None:
            raise StreamerError(unknown_text)
        if status.state != before:
            print_notice(format_status(status))
            before = status.state
        if status.has_ended or (timeout_s is not None and status.state == "RUNNING"):
            return status
        if timeout_s is not None and time.monotonic() - began > timeout_s:
            print_notice(waiting_text)
            return status
        time.sleep(_POLL_INTERVAL_S)


def format_status(status: DriverStatus) -> str:
    """Return how a driver is, in a line."""
    where = f" on {status.worker}" if status.worker else ""
    return f"{status.state}{where}{f': {status.error}' if status.error else ''}"


def print_notice(text: str) -> None:
    """Print a line for people, to the standard error; programs read the standard output."""
    click.echo(text, err=True)
