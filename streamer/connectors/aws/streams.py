"""Sharded streams: their names, their shards, and how far each shard has been read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

ENDED: Final = "-"
"""The position of a shard that has been read to its end."""
BEGINNING: Final = ""
"""The position before the oldest record of a shard."""
_TIME: Final = "@"
"""Precedes a time, ms since 1970: the position before the first record from then on."""
_NUMBER: Final = re.compile(r"[0-9]{1,12}")


def stream_argument(stream: str) -> dict[str, str]:
    """Return the argument of requests that names a stream, by its name or its ARN."""
    return {"StreamARN" if stream.startswith("arn:") else "StreamName": stream}


def parse_streams(texts: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the streams of a list, and by each the shards that it names; none for all.

    Args:
        texts: names or ARNs, several of them separated by commas, each with a shard behind a colon
            or without: `foo`, `foo:0`, `arn:aws:kinesis:eu-west-1:123456789012:stream/foo:0`.

    Raises:
        ValueError: one of them is none.
    """
    streams: dict[str, set[str]] = {}
    for text in (one.strip() for item in texts for one in item.split(",")):
        folder, slash, name = text.rpartition("/")
        stream, colon, shard = (part.strip() for part in name.partition(":"))
        if not stream or (colon and not shard) or ":" in shard:
            raise ValueError(f"{text!r}; expected a name or an ARN, such as foo, or foo:0")
        shards = streams.setdefault(f"{folder}{slash}{stream}", set())
        if shard:
            shards.add(f"shardId-{int(shard):012}" if _NUMBER.fullmatch(shard) else shard)
    return {stream: frozenset(shards) for stream, shards in streams.items()}


class Shard(NamedTuple):
    """A shard of a stream.

    Attributes:
        name: its ID.
        parents: the shards whose records come before its own: one where it was split off, two
            where they were merged.
        is_closed: whether it is known that no record will come into it.
    """

    name: str
    parents: tuple[str, ...] = ()
    is_closed: bool = False


def start_position(time_ms: int | None) -> str:
    """Return the position at which a new shard is begun, ms since 1970; None for its beginning."""
    return BEGINNING if time_ms is None else f"{_TIME}{time_ms}"


def start_time(position: str) -> float | None:
    """Return the time of a position, s since 1970; None where it is none."""
    return int(position[1:]) / 1000 if position.startswith(_TIME) else None


class ShardPositions:
    """The positions of the shards of a stream, and which of them may be read.

    A shard that was split off or merged is read when all before it has been.

    Attributes:
        positions: by the name of the shard; see `ENDED`, `BEGINNING` and `start_position`, else
            the sequence number of the last record.
    """

    def __init__(self, positions: Mapping[str, str], selected: Collection[str] = ()) -> None:
        """Take the positions that are known, and the only shards that are read; none for all."""
        self.positions = dict(positions)
        self._selected = frozenset(selected)
        self._shards: dict[str, Shard] = {}

    def update(self, shards: Iterable[Shard], time_ms: int | None) -> list[str]:
        """Take the shards that there are now.

        Args:
            shards: all of the stream, the closed ones among them.
            time_ms: when the stream is read for the first time, where it is read from now on.

        Returns:
            Shards that are gone although they were not read to their end.
        """
        is_new = not self.positions
        self._shards = {
            one.name: one for one in shards if not self._selected or one.name in self._selected
        }
        for name, shard in self._shards.items():
            # Shards that appear later have the records since they were split off.
            first = start_position(time_ms) if is_new else BEGINNING
            if is_new and shard.is_closed and time_ms is not None:
                first = ENDED
            self.positions.setdefault(name, first)
        gone = [name for name in self.positions if name not in self._shards]
        lost = [name for name in gone if self.positions[name] != ENDED]
        for name in gone:
            del self.positions[name]
        return lost

    def list_readable(self) -> list[str]:
        """Return the shards that are not at their end, and whose parents are."""
        return [
            shard.name
            for shard in self._shards.values()
            if self.positions[shard.name] != ENDED
            and all(self.positions.get(parent, ENDED) == ENDED for parent in shard.parents)
        ]
