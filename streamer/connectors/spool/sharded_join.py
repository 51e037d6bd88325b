"""Joining messages by an identifier: what `sharded_join` of the input `sequence` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from streamer.bloblang.runtime.paths import find_or_null, split_path
from streamer.core.errors import MessageError
from streamer.core.message import Batch, Message

Merge = Callable[[Any, Any], Any]
"""Makes one value of an old and a new one."""


def _merge_arrays(old: Any, new: Any) -> Any:
    left = old if isinstance(old, list) else [old]
    return left + (new if isinstance(new, list) else [new])


MERGES: Final[Mapping[str, Merge]] = {
    "array": _merge_arrays,
    "replace": lambda old, new: new,
    "keep": lambda old, new: old,
}


@dataclass
class ShardedJoiner:
    """Joins the messages of one iteration.

    Attributes:
        path: where the identifier is.
        merge: makes one value of two that stand in one place.
        iterations: how many parts identifiers fall into.
        on_last: whether messages go out as those of the last input come, or all at the end.
    """

    path: str
    merge: Merge
    iterations: int
    on_last: bool
    _joined: dict[str, tuple[dict[str, Any], dict[str, Any]]] = field(default_factory=dict)

    def add(self, batch: Batch, iteration: int, last: bool) -> Iterator[Batch]:
        """Add a batch.

        Args:
            batch: its messages; those without an identifier, or with one of another iteration, are
                left out.
            iteration: from 0.
            last: whether they are from the last input.

        Returns:
            What goes out at once.
        """
        for message in batch:
            try:
                doc = message.doc
            except MessageError:
                continue
            key = find_or_null(doc, split_path(self.path)) if isinstance(doc, dict) else None
            if not isinstance(key, str) or not key or self._iteration_of(key) != iteration:
                continue
            self._add_document(key, doc, message.meta)
            if last and self.on_last:
                yield [Message.from_value(*self._joined[key])]

    def end(self) -> Iterator[Batch]:
        """End an iteration; return what goes out now."""
        joined, self._joined = self._joined, {}
        if not self.on_last:
            for doc, meta in joined.values():
                yield [Message.from_value(doc, meta)]

    def _iteration_of(self, key: str) -> int:
        if self.iterations == 1:
            return 0
        from xxhash import xxh64_intdigest

        return xxh64_intdigest(key.encode(errors="surrogateescape")) % self.iterations

    def _add_document(self, key: str, doc: dict[str, Any], meta: Mapping[str, Any]) -> None:
        joined = self._joined.get(key)
        if joined is None:
            self._joined[key] = doc, dict(meta)
            return
        # As in Benthos, the path is taken for the name of a field here: one deeper inside stays.
        new = {name: value for name, value in doc.items() if name != self.path}
        self._joined[key] = _merge_documents(joined[0], new, self.merge), {**joined[1], **meta}


def _merge_documents(old: dict[str, Any], new: dict[str, Any], merge: Merge) -> dict[str, Any]:
    """Merge documents, which are never changed in place."""
    merged = dict(old)
    for name, value in new.items():
        if name not in merged:
            merged[name] = value
        elif isinstance(merged[name], dict) and isinstance(value, dict):
            merged[name] = _merge_documents(merged[name], value, merge)
        else:
            merged[name] = merge(merged[name], value)
    return merged
