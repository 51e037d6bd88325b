"""Folded groups as a pack: the same header as other packs, so that it is kept like them."""

from __future__ import annotations

import numpy as np

from streamer.window.folds.accumulators import accumulator_of
from streamer.window.folds.groups import Groups, fold_for
from streamer.window.ints import (
    Ints,
    pack_ints,
    pack_strings,
    pack_times,
    unpack_ints,
    unpack_strings,
    unpack_times,
)
from streamer.window.pack import Body, Header, PackError, close, open_folded


def encode(groups: Groups) -> tuple[bytes, int]:
    """Write a pack; return it with the bytes of its content before they are compressed."""
    parts = fold_for(groups.text).parts
    metas, meta_ids = _numbered(groups.metas)
    first = groups.first
    sections = [
        groups.text.encode(errors="surrogatepass"),
        pack_strings(groups.keys),
        pack_ints(groups.counts),
        pack_ints(groups.arrivals - first),
        pack_strings(groups.payloads),
        pack_strings(metas),
        pack_ints(meta_ids),
        *(
            accumulator_of(part).write(state)
            for part, state in zip(parts, groups.states, strict=True)
        ),
    ]
    if groups.newest is not None:
        sections.append(pack_times(groups.newest))
    content = pack_strings(sections)
    header = Header(
        int(groups.counts.sum()), len(content), first, groups.last, groups.key_id, folded=True
    )
    return close(header, content), len(content)


def decode(body: Body, shift: int = 0) -> Groups:
    """Read a pack.

    Args:
        body: what `encode` wrote.
        shift: what is added to every arrival number.

    Raises:
        PackError: the pack is damaged or of an unknown version.
    """
    header, content = open_folded(body)
    text, keys, counts, arrivals, payloads, metas, meta_ids, *states = unpack_strings(content)
    mapping = text.decode(errors="surrogatepass")
    known = unpack_strings(metas)
    parts = fold_for(mapping).parts
    times = states.pop() if len(states) > len(parts) else None
    if len(states) != len(parts):
        raise PackError(
            f"a window's pack holds {len(states)} things that a mapping asks of its messages, and "
            f"this program finds {len(parts)} in the mapping: run the version of streamer that "
            "wrote the checkpoint, or start from another one"
        )
    return Groups(
        mapping,
        header.key_id,
        unpack_strings(keys),
        unpack_ints(counts),
        unpack_ints(arrivals) + (header.first + shift),
        unpack_strings(payloads),
        [known[i] for i in unpack_ints(meta_ids).tolist()],
        header.last + shift,
        [
            accumulator_of(part).read(state, shift)
            for part, state in zip(parts, states, strict=True)
        ],
        None if times is None else unpack_times(times),
    )


def _numbered(metas: list[bytes]) -> tuple[list[bytes], Ints]:
    number: dict[bytes, int] = {}
    ids = [number.setdefault(meta, len(number)) for meta in metas]
    return list(number), np.array(ids, np.int64)
