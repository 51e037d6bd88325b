"""Checks of components: of their fields together, and of the systems that they use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

FieldsCheck = Callable[[Any], Iterable[tuple[str, Any]]]
"""Returns what is wrong with fields together: the names of fields, and the texts."""


def join_checks(*checks: FieldsCheck) -> FieldsCheck:
    """Return the check of a spec that makes all of these, in their order."""

    def check(parsed: Any) -> Iterator[tuple[str, Any]]:
        for one in checks:
            yield from one(parsed)

    return check


@runtime_checkable
class SupportsProbe(Protocol):
    """A built component that can look at what it will read or write, for `streamer dry-run`."""

    def probe(self) -> str:
        """Connect, or open, without moving a message and without leaving anything behind.

        Returns:
            What was found, in a few words: `3 files, 12,345 bytes`.

        Raises:
            StreamerError: what is wrong, and what to do.
            OSError: the system refuses; its text is shown.
        """


@runtime_checkable
class SupportsPreflight(Protocol):
    """A built component that is looked at when its stream starts."""

    def preflight(self, stream: str) -> str:
        """Check, for some seconds at most, that the component can work.

        Args:
            stream: names the checkpoint.

        Returns:
            What is wrong and may pass by itself, in one line; empty when all is well.

        Raises:
            StreamerError: what is wrong until something is changed.
        """
