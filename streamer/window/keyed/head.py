"""The head of a keyed shard's state: clocks, counters, and what key buckets and packs there are."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

import orjson

from streamer.core.errors import StreamerError
from streamer.core.json.dump import dump_json
from streamer.window.contract import Counters
from streamer.window.fire.source_clocks import SourceClocks
from streamer.window.keyed.clocks import ShardClocks
from streamer.window.keyed.columns.session_blocks import SessionBlocks
from streamer.window.keyed.key_buckets import KeyBuckets
from streamer.window.keyed.keyed_aggregation import KeyedAggregation
from streamer.window.keyed.message_store import MessageStore
from streamer.window.state import layout
from streamer.window.state.layout import HEAD_KEY
from streamer.window.state_store import StateStore, check_format

_UNKNOWN_USE_COUNT: Final = 1 << 40
"""Number of windows of a mapping whose number is not known, so that the mapping is kept."""


@dataclass(slots=True)
class KeyedHead:
    """The head of the state of a shard of kind `keys` or `join`.

    Its JSON has older names for some attributes, see `write`.

    Attributes:
        fingerprint: fingerprint of the window's settings, which the state is bound to.
        clocks: the shard's clocks.
        next_arrival: the number of the next arrival.
        counters: since the checkpoint began.
        open_count: number of open windows.
        bucket_count: number of key buckets.
        key_count: number of keys in them.
        earliest_dues: by non-empty key bucket, `KeyBucket.earliest_dues`.
        packs: the stored packs, see `PackStore.head_entries`.
        next_pack: the seq of the next pack.
        mappings: the mappings that windows aggregate by; an empty text is a number to be reused.
        use_counts: by mapping, the number of open windows that aggregate by it.
        aggregated_count: number of messages that are held in aggregates only.
        bucket_sizes: by key bucket, the bytes of its records; empty if no window was ever
            aggregated.
        has_columns: whether there are sessions kept as columns.
        arrival_times: `ArrivalTimes.to_fields` of a join with `idle_timeout`; None for others.
        listed: which keys have had their windows begun though no message came (`listed_digest`);
            empty for none.
    """

    fingerprint: str
    clocks: ShardClocks = field(default_factory=ShardClocks)
    next_arrival: int = 0
    counters: Counters = field(default_factory=Counters)
    open_count: int = 0
    bucket_count: int = 1
    key_count: int = 0
    earliest_dues: dict[int, list[int]] = field(default_factory=dict)
    packs: list[list[int]] = field(default_factory=list)
    next_pack: int = 0
    mappings: list[str] = field(default_factory=list)
    use_counts: list[int] = field(default_factory=list)
    aggregated_count: int = 0
    bucket_sizes: dict[int, int] = field(default_factory=dict)
    has_columns: bool = False
    arrival_times: list[list[int]] | None = None
    listed: str = ""

    @classmethod
    def read(cls, store: StateStore, fingerprint: str) -> KeyedHead:
        """Read the head from a store; return a new one if there is none.

        Raises:
            StreamerError: the state is of another window, or of a later version of the program.
        """
        data = store.get(*HEAD_KEY)
        if data is None:
            return cls(fingerprint)
        fields: dict[str, Any] = orjson.loads(data)
        version = fields["version"]
        check_format("the window's state", version, layout.KEYED_HEAD_VERSIONS)
        if fields["fingerprint"] != fingerprint:
            raise StreamerError(
                f"the checkpoint holds windows of {fields['fingerprint']}, but the config says "
                f"{fingerprint}: restore the buffer's settings, or start from another checkpoint"
            )
        mappings = fields.get("texts", [])
        use_counts = fields.get("uses", [])
        if version == layout.KEYED_HEAD_VERSION_WITHOUT_USES:
            use_counts = [_UNKNOWN_USE_COUNT] * len(mappings)
        clocks = ShardClocks.from_fields(fields["clocks"])
        if "sources" in fields:
            clocks.sources = SourceClocks.from_fields(fields["sources"])
        return cls(
            fingerprint,
            clocks,
            fields["next_arrival"],
            Counters(**fields["counters"]),
            fields["open"],
            fields["drawers"],
            fields["keys"],
            {number: dues for number, *dues in fields["least"]},
            fields["packs"],
            fields["next_pack"],
            mappings,
            use_counts,
            fields.get("folded", 0),
            dict(fields.get("sizes", ())),
            version == layout.KEYED_HEAD_VERSION,
            fields.get("arrival_times"),
            fields.get("listed", ""),
        )

    def write(self, store: StateStore) -> None:
        """Write the head to a store."""
        version = layout.KEYED_HEAD_VERSION_WITHOUT_AGGREGATES
        if self.has_columns:
            version = layout.KEYED_HEAD_VERSION
        elif self.mappings:
            version = layout.KEYED_HEAD_VERSION_WITHOUT_COLUMNS
        fields: dict[str, Any] = {
            "version": version,
            "fingerprint": self.fingerprint,
            "clocks": self.clocks.to_fields(),
            "next_arrival": self.next_arrival,
            "counters": asdict(self.counters),
            "open": self.open_count,
            "drawers": self.bucket_count,
            "keys": self.key_count,
            "least": [[number, *dues] for number, dues in self.earliest_dues.items()],
            "packs": self.packs,
            "next_pack": self.next_pack,
        }
        if self.mappings:
            fields["texts"] = self.mappings
            fields["uses"] = self.use_counts
            fields["folded"] = self.aggregated_count
            fields["sizes"] = list(self.bucket_sizes.items())
        if self.listed:
            fields["listed"] = self.listed
        if self.arrival_times is not None:
            fields["arrival_times"] = self.arrival_times
        if self.clocks.sources is not None:
            fields["sources"] = self.clocks.sources.to_fields()
        store.put(*HEAD_KEY, dump_json(fields))

    def save(
        self,
        store: StateStore,
        buckets: KeyBuckets,
        messages: MessageStore,
        aggregation: KeyedAggregation,
        blocks: SessionBlocks,
    ) -> None:
        """Update the head of a shard of kind `keys` from the parts of its state, and write it.

        Args:
            store: the shard's state.
            buckets: the records of keys.
            messages: the messages, committed.
            aggregation: the mappings; those that no window aggregates by are forgotten.
            blocks: the sessions kept as columns, of which the head is written, too.
        """
        aggregation.forget_unused()
        blocks.write_head()
        self.bucket_count, self.key_count = buckets.count, buckets.keys
        self.earliest_dues, self.bucket_sizes = buckets.earliest_dues, buckets.sizes
        self.packs, self.next_pack = messages.head_entries()
        self.mappings, self.use_counts = aggregation.mappings, aggregation.use_counts
        self.aggregated_count = aggregation.held_count
        self.has_columns = len(blocks) > 0
        self.write(store)
