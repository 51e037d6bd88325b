"""Packs of messages, parted by the shards that their keys go to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from streamer.core.errors import StreamerError
from streamer.window.aggregate import aggregate_codec
from streamer.window.aggregate.partial_aggregates import select_groups
from streamer.window.pack.merge_packs import select_rows
from streamer.window.pack.pack_codec import Pack, StoredPack, encode_pack, read_header
from streamer.window.settings.int_codec import Ints
from streamer.window.state.pane_store import IncomingPack

ShardOf = Callable[[bytes], int]


def split_pack(stored: StoredPack, shard_of: ShardOf) -> Iterator[tuple[int, IncomingPack]]:
    """Part a pack; give shards and what goes to each.

    Raises:
        StreamerError: its messages are not grouped by their keys.
    """
    body, shift = stored
    header = read_header(body)
    if header.is_aggregated:
        groups = aggregate_codec.decode_aggregates(body, shift)
        shards = find_shards(groups.keys, shard_of, header.key_id)
        for shard in np.unique(shards).tolist():
            written, _ = aggregate_codec.encode_aggregates(
                select_groups(groups, np.flatnonzero(shards == shard))
            )
            yield shard, IncomingPack(written, 0, read_header(written))
        return
    pack = Pack(body, shift)
    shards = find_shards(pack.keys, shard_of, header.key_id)
    target_shards = np.unique(shards).tolist()
    if len(target_shards) == 1:
        yield target_shards[0], IncomingPack(bytes(body), shift, header)
        return
    of_message = np.repeat(shards, np.diff(pack.starts))
    for shard in target_shards:
        columns = select_rows(pack, np.flatnonzero(of_message == shard))
        # Of messages that are kept by panes only the newest time of each group may be known.
        columns.max_times = None if pack.max_times is None else pack.max_times[shards == shard]
        written = encode_pack(columns)
        yield shard, IncomingPack(written, 0, read_header(written))


def find_shards(keys: Sequence[bytes], shard_of: ShardOf, key_id: int | None) -> Ints:
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
