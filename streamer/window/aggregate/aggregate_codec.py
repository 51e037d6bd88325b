"""Pre-aggregated groups as a pack, with the header of other packs, so that it is kept like them."""

from __future__ import annotations

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


def encode_aggregates(groups: PartialAggregates) -> tuple[bytes, int]:
    """Write a pack; return it with the bytes of its content before they are compressed."""
    metas, meta_ids = _number_metadata(groups.metas)
    first = groups.first_arrival
    sections = [
        groups.text.encode(errors="surrogatepass"),
        pack_strings(groups.keys),
        pack_ints(groups.counts),
        pack_ints(groups.arrivals - first),
        pack_strings(groups.payloads),
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
    return encode_aggregated(header, content), len(content)


def decode_aggregates(body: PackBytes, shift: int = 0) -> PartialAggregates:
    """Read a pack.

    Args:
        body: what `encode_aggregates` wrote.
        shift: what is added to every arrival number.

    Raises:
        PackError: the pack is damaged or of an unknown version.
    """
    header, content = read_aggregated(body)
    text, keys, counts, arrivals, payloads, metas, meta_ids, *states = unpack_strings(content)
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
        unpack_strings(keys),
        unpack_ints(counts),
        unpack_ints(arrivals) + (header.first + shift),
        unpack_strings(payloads),
        [known[i] for i in unpack_ints(meta_ids).tolist()],
        header.last + shift,
        [
            accumulator.decode_state(state, shift)
            for accumulator, state in zip(parts, states, strict=True)
        ],
        None if times is None else unpack_times(times),
    )


def _number_metadata(metas: list[bytes]) -> tuple[list[bytes], Ints]:
    number: dict[bytes, int] = {}
    ids = [number.setdefault(meta, len(number)) for meta in metas]
    return list(number), np.array(ids, np.int64)
