"""Packs of messages, parted by the shards that their keys go to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from streamer.errors import StreamerError
from streamer.window.folds import pack as folded
from streamer.window.folds.selection import groups_of
from streamer.window.ints import Ints
from streamer.window.keep import Arrived
from streamer.window.merge import subset
from streamer.window.pack import Pack, Stored, encode, peek

ShardOf = Callable[[bytes], int]


def parts_of(stored: Stored, shard_of: ShardOf) -> Iterator[tuple[int, Arrived]]:
    """Part a pack; give shards and what goes to each.

    Raises:
        StreamerError: its messages are not grouped by their keys.
    """
    body, shift = stored
    header = peek(body)
    if header.folded:
        groups = folded.decode(body, shift)
        shards = shards_of(groups.keys, shard_of, header.key_id)
        for shard in np.unique(shards).tolist():
            written, _ = folded.encode(groups_of(groups, np.flatnonzero(shards == shard)))
            yield shard, Arrived(written, 0, peek(written))
        return
    pack = Pack(body, shift)
    shards = shards_of(pack.keys, shard_of, header.key_id)
    found = np.unique(shards).tolist()
    if len(found) == 1:
        yield found[0], Arrived(bytes(body), shift, header)
        return
    of_message = np.repeat(shards, np.diff(pack.starts))
    for shard in found:
        columns = subset(pack, np.flatnonzero(of_message == shard))
        # Of messages that are kept by panes only the newest time of each group may be known.
        columns.newest = None if pack.newest is None else pack.newest[shards == shard]
        written = encode(columns)
        yield shard, Arrived(written, 0, peek(written))


def shards_of(keys: Sequence[bytes], shard_of: ShardOf, key_id: int | None) -> Ints:
    """Return the shard of each group of a pack; one that is not grouped is one group.

    Raises:
        StreamerError: it is not grouped, and not all messages go to the first shard.
    """
    if key_id is not None:
        return np.fromiter(map(shard_of, keys), np.int64, len(keys))
    if shard_of(b"a") or shard_of(b"b") or shard_of(b"c"):
        raise StreamerError(
            "the state holds messages that were not grouped by the key by which shards are chosen "
            "now, so they cannot be parted; let their windows close, and try again"
        )
    return np.zeros(1, np.int64)
