from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.core.errors import StreamerError
from streamer.window.pack.metadata_codec import encode_meta
from streamer.window.pack.pack_codec import (
    Pack,
    PackColumns,
    PackError,
    encode_pack,
    lengths_of,
    read_header,
)
from streamer.window.settings.int_codec import pack_deltas, pack_ints, unpack_deltas, unpack_ints


def pack(payloads: list[bytes], **columns: object) -> bytes:
    arrivals = np.arange(len(payloads), dtype=np.int64)
    given = {"arrivals": arrivals, "metas": [b""], "lengths": lengths_of(payloads), **columns}
    return encode_pack(PackColumns(payloads, **given))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "payloads",
    [
        [b"one"],
        [b""],
        [b"", b"", b""],
        [b"a", b"", b"b"],
        [b"\n"],
        [b"with\nnewline", b"", b"\n\n", b"end"],
        [b"\xff\xfe no utf-8", b"\x00"],
        [b"x" * 10_000_000],
        [b"x" * 10_000_000, b"small"],
        [str(i).encode() for i in range(1000)],
    ],
    ids=lambda payloads: f"{len(payloads)} of {payloads[0][:8]!r}",
)
def test_what_is_packed_is_unpacked(payloads: list[bytes]) -> None:
    body = pack(payloads)
    assert Pack(body).payloads() == payloads
    header = read_header(body)
    assert (header.messages, header.payload_bytes) == (len(payloads), sum(map(len, payloads)))
    assert header.key_id is None


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_groups_arrivals_and_metadata_come_back(data: st.DataObject) -> None:
    piece = st.binary(max_size=6) | st.sampled_from([b"", b"\n", b"a\nb"])
    groups = data.draw(st.lists(st.lists(piece, min_size=1, max_size=4), min_size=1, max_size=5))
    payloads = [payload for group in groups for payload in group]
    numbers = st.integers(0, 2**62)
    arrivals = data.draw(
        st.lists(numbers, min_size=len(payloads), max_size=len(payloads), unique=True)
    )
    metas = [encode_meta({"n": str(n)}) for n in range(3)]
    ids = data.draw(st.lists(st.integers(0, 2), min_size=len(payloads), max_size=len(payloads)))
    keys = data.draw(st.lists(piece, min_size=len(groups), max_size=len(groups)))
    counts = np.array([len(group) for group in groups], np.int64)
    body = pack(
        payloads,
        arrivals=np.array(arrivals, np.int64),
        metas=metas,
        meta_ids=np.array(ids, np.int64),
        keys=keys,
        counts=counts,
        key_id=2**32 - 1,
    )
    found = Pack(body, 5)
    assert found.payloads() == payloads
    assert [found.group_payloads(i) for i in range(len(groups))] == groups
    assert found.keys == keys
    assert found.starts == [0, *np.cumsum(counts).tolist()]
    assert found.arrivals.tolist() == [arrival + 5 for arrival in arrivals]
    assert (found.header.first, found.header.last) == (min(arrivals) + 5, max(arrivals) + 5)
    assert found.header.key_id == 2**32 - 1
    assert found.metas == metas
    assert found.meta_ids is not None
    assert found.meta_ids.tolist() == ids


@pytest.mark.parametrize("size", [0, 1, 20, 49])
def test_a_pack_that_is_cut_short_is_refused(size: int) -> None:
    body = pack([b"one", b"two"])
    with pytest.raises(PackError, match="damaged|cut short"):
        Pack(body[:size])


def test_a_flipped_bit_is_found() -> None:
    body = bytearray(pack([b"one", b"two"]))
    body[-3] ^= 4
    with pytest.raises(PackError, match=r"pack of 2 messages is damaged.*checkpoint"):
        Pack(bytes(body))


def test_a_pack_of_another_version_is_refused_by_number() -> None:
    body = bytearray(pack([b"one"]))
    body[0] = 5
    with pytest.raises(StreamerError, match="format 5, which a newer streamer wrote.* up to 4"):
        read_header(bytes(body))


def test_what_repeats_costs_little() -> None:
    payloads = [b'{"light": "a", "n": %d}' % (i % 10) for i in range(10_000)]
    assert len(pack(payloads)) < 10_000


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 300)))
def test_integers_come_back_whatever_their_width(values: list[int]) -> None:
    array = np.array(values, np.int64)
    assert unpack_ints(pack_ints(array)).tolist() == values
    assert unpack_deltas(pack_deltas(array)).tolist() == values
