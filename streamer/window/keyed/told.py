"""What the message of a pair is told, found out when somebody asks: most pipelines never do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Entries = Callable[[int], dict[str, Any]]
"""Gives the metadata of a pair, by its place."""


class Told(Mapping[str, Any]):
    """The metadata of one pair."""

    __slots__ = ("_entries", "_place", "_found")

    def __init__(self, entries: Entries, place: int) -> None:
        """Take what finds it out, and the pair's place there."""
        self._entries = entries
        self._place = place
        self._found: dict[str, Any] | None = None

    def _all(self) -> dict[str, Any]:
        found = self._found
        if found is None:
            found = self._found = self._entries(self._place)
        return found

    def __getitem__(self, name: str) -> Any:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __contains__(self, name: object) -> bool:
        return name in self._all()

    def __repr__(self) -> str:
        return repr(self._all())
