"""Groups of keys: small numbers that stand for the results of a key's expression, cached."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, Final

import orjson

from streamer.core.json.dump import dump_json, dump_json_texts
from streamer.core.value import DELETED, NOTHING

MAX_CACHED_RESULTS: Final = 65_536
"""How many results are kept at most; the memory is emptied when it is full."""

SLOT_BITS: Final = 32
"""A message's code is its slot, so many bits to the left, plus its group."""

GROUP_MASK: Final = (1 << SLOT_BITS) - 1
"""The bits of a code that are its group."""


class KeyGroups(dict[str, int]):
    """Keys that are texts by group: `groups[text]` is a small number; others raise TypeError.

    Attributes:
        key_of: by group, its key as bytes.
        shard_of: by group, its shard.
        other_spellings: how keys were spelt for which equal ones are written otherwise (1.0 is 1),
            in their order; the user of the groups empties it.
    """

    def __init__(self, shards: int, as_json: bool) -> None:
        """Make an empty memory.

        Args:
            shards: how many there are.
            as_json: a key is a JSON value, and a text is one with its quotes.
        """
        super().__init__()
        self._as_json = as_json
        self.key_of: list[bytes] = []
        self.shard_of: list[int] = []
        self.other_spellings: list[bytes] = []
        self._group_of: dict[bytes, int] = {}
        self._shard_count = shards

    def __missing__(self, text: str) -> int:
        if type(text) is not str:
            raise TypeError(text)
        if self._as_json:
            key = dump_json(text)
        elif not (key := text.encode(errors="surrogatepass")):
            return self.group_of_bytes(key)
        group = self[text] = len(self.key_of)
        self._add_keys([key])
        return group

    def groups_of_texts(self, texts: Sequence[Any]) -> list[int]:
        """Return the group of each key: many that are new cost less together.

        Raises:
            TypeError: one is not a text.
        """
        groups: list[int | None] = list(map(self.get, texts))
        if None not in groups:
            return groups  # type: ignore[return-value]
        both = zip(texts, groups, strict=True)
        unknown = list(dict.fromkeys([text for text, group in both if group is None]))
        if self._as_json and set(map(type, unknown)) == {str}:
            keys = dump_json_texts(unknown)
            first = len(self.key_of)
            self._add_keys(keys)
            self.update(zip(unknown, range(first, first + len(keys)), strict=True))
        return list(map(self.__getitem__, texts))

    def group_of_result(self, value: Any) -> int:
        """Return the group of what a key's expression gave for a message."""
        if value is DELETED or value is NOTHING:
            return self.group_of_bytes(b"")
        if type(value) is str:
            return self[value]
        if not self._as_json:
            return self[str(value)]
        canonical = _normalise_numbers(value)
        key = dump_json(canonical)
        if canonical is not value and (spelling := dump_json(value)) != key:
            self.other_spellings.append(spelling)
        if key[:1] == b'"':  # bytes, times and their like are the keys that their texts are
            return self[orjson.loads(key)]
        return self.group_of_bytes(key)

    @property
    def keyless_group(self) -> int | None:
        """Group of messages whose key is unknown; None when there is none."""
        return self._group_of.get(b"")

    def group_of_bytes(self, key: bytes) -> int:
        """Return the group of a key that is no text, or of an unknown one, which is empty."""
        group = self._group_of.get(key)
        if group is None:
            group = self._group_of[key] = len(self.key_of)
            self._add_keys([key])
        return group

    def reset_if_full(self) -> None:
        """Forget all groups when they are many; only between packs."""
        if len(self.key_of) >= MAX_CACHED_RESULTS:
            self.clear()
            self.key_of.clear()
            self.shard_of.clear()
            self._group_of.clear()

    def _add_keys(self, keys: list[bytes]) -> None:
        self.key_of += keys
        count = self._shard_count
        self.shard_of += [zlib.crc32(key) % count for key in keys]


def _normalise_numbers(value: Any) -> Any:
    """Make numbers that are equal look equal: 1.0 and 1 are one key."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else float(value)
    if isinstance(value, list):
        return [_normalise_numbers(item) for item in value]
    if isinstance(value, dict):
        return {key: _normalise_numbers(item) for key, item in value.items()}
    return value
