"""The head of a keyed shard's state: clocks, counters, and what key buckets and packs there are."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

import orjson

from streamer.core.errors import StreamerError
from streamer.core.value import dump_json
from streamer.window.contract.format_version import check_format
from streamer.window.contract.state_store import StateStore
from streamer.window.contract.status import Counters
from streamer.window.keyed.clocks import ShardClocks
from streamer.window.state import layout
from streamer.window.state.layout import HEAD_KEY

_UNKNOWN_USE_COUNT: Final = 1 << 40
"""Number of windows of a mapping whose number is not known, so that the mapping is kept."""


@dataclass(slots=True)
class KeyedHead:
    """The head of the state of a shard of kind `keys` or `join`.

    Its JSON has the names of these attributes.

    Attributes:
        fingerprint: fingerprint of the window's settings, which the state is bound to.
        clocks: the shard's clocks.
        next_arrival: the number of the next arrival.
        counters: since the checkpoint began.
        open: number of open windows.
        drawers: number of key buckets.
        keys: number of keys in them.
        least: by key bucket, `KeyBucket.earliest_dues`.
        packs: the stored packs, see `PackStore.head_entries`.
        next_pack: the seq of the next pack.
        texts: the mappings that windows aggregate by; an empty text is a number to be reused.
        uses: by mapping, the number of open windows that aggregate by it.
        sizes: by key bucket, the bytes of its records; empty if no window was ever aggregated.
        folded: number of messages that are held in aggregates only.
        columns: whether there are sessions kept as columns.
    """

    fingerprint: str
    clocks: ShardClocks = field(default_factory=ShardClocks)
    next_arrival: int = 0
    counters: Counters = field(default_factory=Counters)
    open: int = 0
    drawers: int = 1
    keys: int = 0
    least: dict[int, list[int]] = field(default_factory=dict)
    packs: list[list[int]] = field(default_factory=list)
    next_pack: int = 0
    texts: list[str] = field(default_factory=list)
    folded: int = 0
    uses: list[int] = field(default_factory=list)
    sizes: dict[int, int] = field(default_factory=dict)
    columns: bool = False

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
        version = fields.pop("version")
        check_format("the window's state", version, layout.KEYED_HEAD_VERSIONS)
        if fields["fingerprint"] != fingerprint:
            raise StreamerError(
                f"the checkpoint holds windows of {fields['fingerprint']}, but the config says "
                f"{fingerprint}: restore the buffer's settings, or start from another checkpoint"
            )
        fields["clocks"] = ShardClocks.from_fields(fields["clocks"])
        fields["counters"] = Counters(**fields["counters"])
        fields["least"] = {number: least for number, *least in fields["least"]}
        fields["sizes"] = dict(fields.get("sizes", ()))
        if version == layout.KEYED_HEAD_VERSION_WITHOUT_USES:
            fields["uses"] = [_UNKNOWN_USE_COUNT] * len(fields["texts"])
        return cls(**fields, columns=version == layout.KEYED_HEAD_VERSION)

    def write(self, store: StateStore) -> None:
        """Write the head to a store."""
        version = layout.KEYED_HEAD_VERSION_WITHOUT_AGGREGATES
        if self.columns:
            version = layout.KEYED_HEAD_VERSION
        elif self.texts:
            version = layout.KEYED_HEAD_VERSION_WITHOUT_COLUMNS
        fields: dict[str, Any] = {
            "version": version,
            "fingerprint": self.fingerprint,
            "clocks": self.clocks.to_fields(),
            "next_arrival": self.next_arrival,
            "counters": asdict(self.counters),
            "open": self.open,
            "drawers": self.drawers,
            "keys": self.keys,
            "least": [[number, *least] for number, least in self.least.items()],
            "packs": self.packs,
            "next_pack": self.next_pack,
        }
        if self.texts:
            fields.update(texts=self.texts, uses=self.uses, folded=self.folded)
            fields["sizes"] = list(self.sizes.items())
        store.put(*HEAD_KEY, dump_json(fields))
