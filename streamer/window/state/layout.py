"""Layout of a shard's state: each kind of value that a state store holds, and the keys it is under.

A shard's state is a map from (pane, seq) to bytes (`state_store`). Packs of messages have
a seq >= 0; all other values have a negative seq, which says what they hold. `LAYOUT` is the table
of all of them, and this file the only place where their numbers stand: keys and formats are what
checkpoints are made of, so none of them may change or be given to something else.

Four kinds of shards keep state, and a shard is of one kind for as long as its state lives:

- `panes`: windows that all keys share, messages kept by pane (`window.panes`);
- `keys`: windows that open and close key by key (`keyed.step`);
- `join`: two streams joined by key and time (`keyed.join_step`);
- `table_join`: a stream joined with the rows of a table (`keyed.table_join_step`).

Every shard has its head under `HEAD_KEY`. Seq -5 is used twice, by shards of different kinds.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:  # the driver reads this table, and must not wait for numpy at its start
    from streamer.window.pack.pack_codec import PackBytes, StoredPack

ShardKind = Literal["panes", "keys", "join", "table_join"]

HEAD_KEY: Final = (0, -1)
"""Key of the head of every shard's state; its presence says that the shard has a state."""

PANE_BUCKET_SEQ: Final = -2
KEY_BUCKET_SEQ: Final = -3
FREED_ROWS_SEQ: Final = -4
MATCHED_BITS_SEQ: Final = -5
SESSION_BLOCK_SEQ: Final = -5
SESSION_BLOCKS_HEAD_KEY: Final = (0, -6)
KEYED_VALUES_SEQ: Final = -7
KEYED_VALUES_HEAD_KEY: Final = (0, -8)
TABLE_BUCKET_SEQ: Final = -9
TABLE_HEAD_KEY: Final = (0, -10)

PACK_PANE: Final = 0
"""Pane of all packs of a shard of kind `keys` or `join`."""
FIRST_RIGHT_PACK_SEQ: Final = 1 << 30
"""From this seq on, packs of a join hold messages of its right side."""
MAX_SEQ: Final = (1 << 63) - 1

PANE_INDEX_VERSION: Final = 1
"""Version of the head of a shard of kind `panes`, and of its buckets."""

KEYED_HEAD_VERSION: Final = 4
KEYED_HEAD_VERSION_WITHOUT_COLUMNS: Final = 3
"""Version of a head without sessions kept as columns; still written where there are none."""
KEYED_HEAD_VERSION_WITHOUT_USES: Final = 2
"""Version of a head that lacks the number of open windows by mapping; no longer written."""
KEYED_HEAD_VERSION_WITHOUT_AGGREGATES: Final = 1
"""Version of a head without pre-aggregated windows; still written where there are none."""
KEYED_HEAD_VERSIONS: Final = (
    KEYED_HEAD_VERSION_WITHOUT_AGGREGATES,
    KEYED_HEAD_VERSION_WITHOUT_USES,
    KEYED_HEAD_VERSION_WITHOUT_COLUMNS,
    KEYED_HEAD_VERSION,
)

KEY_BUCKET_VERSION: Final = 1
MATCHED_BITS_VERSION: Final = 2
SESSION_BLOCK_VERSION: Final = 1
SESSION_BLOCKS_HEAD_VERSION: Final = 1
KEYED_VALUES_VERSION: Final = 1
KEYED_VALUES_HEAD_VERSION: Final = 1
TABLE_BUCKET_VERSION: Final = 1
TABLE_HEAD_VERSION: Final = 1

_SHIFT_STRUCT: Final = struct.Struct("<q")


class StateValue(NamedTuple):
    """A kind of value in a shard's state: a row of `LAYOUT`.

    Attributes:
        shards: the kinds of shards that have such values.
        pane: the pane of a value's key, or what its number is the number of.
        seqs: the first and the last seq of the keys, both inclusive.
        encoding: `json`: an object with a field `version`; `binary`: the first byte is the version;
            `pack`: see `encode_stored_pack`; `bits`: no version.
        versions: formats that this program reads; those of packs are `pack_codec`'s.
        module: the module below `streamer.window` that reads and writes the values.
        content: what a value holds.
    """

    shards: tuple[ShardKind, ...]
    pane: str | int
    seqs: tuple[int, int]
    encoding: Literal["json", "binary", "pack", "bits"]
    versions: tuple[int, ...]
    module: str
    content: str


def _at(seq: int) -> tuple[int, int]:
    return seq, seq


# fmt: off
LAYOUT: Final = (
    StateValue(
        ("panes",), 0, _at(HEAD_KEY[1]), "json", (PANE_INDEX_VERSION,), "state.pane_store",
        "clock, watermark, counters; by bucket of panes its first and last pane and its totals"),
    StateValue(
        ("keys", "join", "table_join"),
        0, _at(HEAD_KEY[1]), "json", KEYED_HEAD_VERSIONS, "keyed.head",
        "clocks, counters; what key buckets and packs there are; mappings of aggregated windows"),
    StateValue(
        ("panes",), "bucket", _at(PANE_BUCKET_SEQ),
        "json", (PANE_INDEX_VERSION,), "state.pane_store",
        "neighbouring panes: message counts, and the seqs of their packs"),
    StateValue(
        ("keys",), "bucket", _at(KEY_BUCKET_SEQ),
        "binary", (KEY_BUCKET_VERSION,), "keyed.key_buckets",
        "records of the keys with one hash: open windows and aggregates"),
    StateValue(
        ("keys", "join", "table_join"),
        "seq of the pack", _at(FREED_ROWS_SEQ), "bits", (), "keyed.pack_store",
        "a bit for each message of a pack: whether it was freed; absent if none was"),
    StateValue(
        ("join",), "block", _at(MATCHED_BITS_SEQ),
        "binary", (MATCHED_BITS_VERSION,), "keyed.matched_bits",
        "a bit by arrival number: whether a waiting message has found a match"),
    StateValue(
        ("keys",), "block", _at(SESSION_BLOCK_SEQ),
        "binary", (SESSION_BLOCK_VERSION,), "keyed.columns.session_blocks",
        "open sessions of the keys with one hash, as columns"),
    StateValue(
        ("keys",), 0, _at(SESSION_BLOCKS_HEAD_KEY[1]),
        "json", (SESSION_BLOCKS_HEAD_VERSION,), "keyed.columns.session_blocks",
        "by block of sessions its earliest end and its totals"),
    StateValue(
        ("panes", "keys", "join", "table_join"), "bucket", _at(KEYED_VALUES_SEQ),
        "binary", (KEYED_VALUES_VERSION,), "state.keyed_values",
        "values that the pipeline keeps of the keys with one hash, and when they expire"),
    StateValue(
        ("panes", "keys", "join", "table_join"), 0, _at(KEYED_VALUES_HEAD_KEY[1]),
        "json", (KEYED_VALUES_HEAD_VERSION,), "state.keyed_values",
        "names of these values, their clock; by bucket when the first key expires"),
    StateValue(
        ("table_join",), "bucket", _at(TABLE_BUCKET_SEQ),
        "binary", (TABLE_BUCKET_VERSION,), "keyed.table_rows",
        "rows of a table by the hash of their keys, with the versions that are still valid"),
    StateValue(
        ("table_join",), 0, _at(TABLE_HEAD_KEY[1]),
        "json", (TABLE_HEAD_VERSION,), "keyed.table_rows",
        "numbers of rows; by bucket when the first row expires or can be removed"),
    StateValue(
        ("panes",), "pane", (0, MAX_SEQ), "pack", (1, 2, 3), "state.pane_store",
        "a pack of the pane's messages, or of its pre-aggregated groups"),
    StateValue(
        ("keys", "table_join"), PACK_PANE, (0, MAX_SEQ), "pack", (1, 3), "keyed.pack_store",
        "a pack of messages"),
    StateValue(
        ("join",), PACK_PANE, (0, FIRST_RIGHT_PACK_SEQ - 1), "pack", (1, 3), "keyed.pack_store",
        "a pack of messages of the left side"),
    StateValue(
        ("join",), PACK_PANE, (FIRST_RIGHT_PACK_SEQ, MAX_SEQ), "pack", (1, 3), "keyed.pack_store",
        "a pack of messages of the right side"),
)
# fmt: on
"""All kinds of values; of one kind of shard, no two have a key in common."""


def encode_stored_pack(body: PackBytes, shift: int) -> bytes:
    """Return the value under which a pack is stored.

    Args:
        body: the pack, as `pack_codec.encode_pack` wrote it.
        shift: what is added to its arrival numbers; known only when the shard takes the pack, so
            that it stands before the body, which is not written again.
    """
    return _SHIFT_STRUCT.pack(shift) + body


def decode_stored_pack(value: bytes) -> StoredPack:
    """Return the pack in a stored value, not copied, and its shift."""
    return memoryview(value)[_SHIFT_STRUCT.size :], _SHIFT_STRUCT.unpack_from(value)[0]
