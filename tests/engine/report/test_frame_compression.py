"""Large frames travel compressed, and arrive as they were."""

from __future__ import annotations

import pytest

from streamer.engine.report.frame_compression import compress_frames, expand_frame
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.window import RowKind, ShuffleRow

LINES = b'{"light":"a","passengers":12}\n' * 10_000


@pytest.mark.parametrize("kind", [FrameKind.DATA, FrameKind.MULTI_PART, FrameKind.STATUS])
def test_a_large_frame_travels_in_a_quarter_of_its_size(kind: FrameKind) -> None:
    frame = Frame(kind, 5, 1, 2, 0, "out.jsonl", LINES)
    (sent,) = compress_frames([frame])
    assert len(sent.body) < len(LINES) / 4
    assert expand_frame(Frame(*sent)) == frame


def test_small_frames_and_rows_for_other_shards_travel_as_they_are() -> None:
    made = [Frame(FrameKind.DATA, 5, 1, 2, 0, "", LINES[:3_000])]
    rows = [ShuffleRow(0, RowKind.PACK, 0, 0, LINES)]
    assert list(compress_frames([*made, *rows])) == [*made, *rows]
    assert expand_frame(made[0]) == made[0]
    assert list(compress_frames([])) == []


def test_no_kind_looks_like_a_compressed_one() -> None:
    assert max(FrameKind) < 100
