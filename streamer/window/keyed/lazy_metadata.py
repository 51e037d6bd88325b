"""Metadata of a joined message, computed on first access: most pipelines never read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

MetadataFunction = Callable[[int], dict[str, Any]]
"""Computes the metadata of a pair, given the index of the pair."""


class LazyMetadata(Mapping[str, Any]):
    """The metadata of one pair, computed on first access."""

    __slots__ = ("_entries", "_place", "_metadata")

    def __init__(self, entries: MetadataFunction, place: int) -> None:
        """Keep the function that computes the metadata, and the index of the pair."""
        self._entries = entries
        self._place = place
        self._metadata: dict[str, Any] | None = None

    def _load(self) -> dict[str, Any]:
        metadata = self._metadata
        if metadata is None:
            metadata = self._metadata = self._entries(self._place)
        return metadata

    def __getitem__(self, name: str) -> Any:
        return self._load()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())

    def __contains__(self, name: object) -> bool:
        return name in self._load()

    def __repr__(self) -> str:
        return repr(self._load())
