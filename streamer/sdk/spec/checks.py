"""Checks of components before a stream runs: whether the systems that they use are there."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


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
