"""Pre-aggregated groups as a pack, with the header of other packs, so that it is kept like them."""

from __future__ import annotations

from itertools import chain
from typing import Final

import numpy as np

from streamer.window.aggregate.partial_aggregates import PartialAggregates, make_accumulators
from streamer.window.pack.pack_codec import (
    Header,
    PackBytes,
    PackError,
    encode_aggregated,
    read_aggregated,
)
from streamer.window.settings.int_codec import (
    Ints,
    pack_ints,
    pack_strings,
    pack_times,
    unpack_ints,
    unpack_strings,
    unpack_times,
)

_MIN_PAIRED_GROUPS: Final = 200
"""From so many groups on, the compressor does not find a key in its payload if all keys stand
together: it remembers some ten thousand places. A UUID then takes 20 bytes twice."""


def encode_aggregates(groups: PartialAggregates) -> tuple[bytes, int]:
    """Write a pack; return it with the bytes of its content before they are compressed."""
    metas, meta_ids = _number_metadata(groups.metas)
    first = groups.first_arrival
    paired = len(groups.keys) >= _MIN_PAIRED_GROUPS
    keys, payloads = groups.keys, groups.payloads
    if paired:
        keys = [*chain.from_iterable(zip(keys, payloads, strict=True))]
    sections = [
        groups.text.encode(errors="surrogatepass"),
        pack_strings(keys),
        pack_ints(groups.counts),
        pack_ints(groups.arrivals - first),
        b"" if paired else pack_strings(payloads),
        pack_strings(metas),
        pack_ints(meta_ids),
        *(
            accumulator.encode_state(state)
            for accumulator, state in zip(
                make_accumulators(groups.text), groups.states, strict=True
            )
        ),
    ]
    if groups.max_times is not None:
        sections.append(pack_times(groups.max_times))
    content = pack_strings(sections)
    header = Header(
        int(groups.counts.sum()),
        len(content),
        first,
        groups.last_arrival,
        groups.key_id,
        is_aggregated=True,
    )
    return encode_aggregated(header, content, paired), len(content)


def decode_aggregates(body: PackBytes, shift: int = 0) -> PartialAggregates:
    """Read a pack.

    Args:
        body: what `encode_aggregates` wrote.
        shift: what is added to every arrival number.

    Raises:
        PackError: the pack is damaged or of an unknown version.
    """
    header, content = read_aggregated(body)
    text, names, counts, arrivals, firsts, metas, meta_ids, *states = unpack_strings(content)
    keys, payloads = unpack_strings(names), unpack_strings(firsts) if firsts else []
    if not firsts:
        keys, payloads = keys[::2], keys[1::2]
    mapping = text.decode(errors="surrogatepass")
    known = unpack_strings(metas)
    parts = make_accumulators(mapping)
    times = states.pop() if len(states) > len(parts) else None
    if len(states) != len(parts):
        raise PackError(
            f"a window's pack holds {len(states)} things that a mapping asks of its messages, and "
            f"this program finds {len(parts)} in the mapping: run the version of streamer that "
            "wrote the checkpoint, or start from another one"
        )
    return PartialAggregates(
        mapping,
        header.key_id,
        keys,
        unpack_ints(counts),
        unpack_ints(arrivals) + (header.first + shift),
        payloads,
        known * len(keys)
        if len(known) == 1
        else [known[i] for i in unpack_ints(meta_ids).tolist()],
        header.last + shift,
        [
            accumulator.decode_state(state, shift)
            for accumulator, state in zip(parts, states, strict=True)
        ],
        None if times is None else unpack_times(times),
    )


def _number_metadata(metas: list[bytes]) -> tuple[list[bytes], Ints]:
    if len(set(metas)) == 1:
        return metas[:1], np.zeros(len(metas), np.int64)
    number: dict[bytes, int] = {}
    ids = [number.setdefault(meta, len(number)) for meta in metas]
    return list(number), np.array(ids, np.int64)
