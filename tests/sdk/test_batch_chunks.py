"""Messages of a piece are put into batches, and the same ones whatever the chunks are."""

from __future__ import annotations

import pytest

from streamer.core.execution import Execution
from streamer.core.message import NO_META, Message
from streamer.sdk.input.batch_chunks import batch_chunks
from streamer.sdk.input.replayable import RawMessages
from streamer.sdk.processing.batching import BatchPolicy

EX = Execution(lambda: 0)
RAWS = [b"%d" % number for number in range(1000)]


@pytest.mark.parametrize("cut", [1, 3, 256, 1000])
@pytest.mark.parametrize("singly", [True, False])
@pytest.mark.parametrize(
    ("policy", "sizes"),
    [
        (BatchPolicy(count=7), [7] * 142 + [6]),
        (BatchPolicy(count=2), [2] * 500),
        (BatchPolicy(count=5000), [1000]),
        (BatchPolicy(byte_size=5), []),
    ],
)
def test_batches_do_not_depend_on_the_chunks(policy, sizes, cut, singly):
    parts = [RAWS[start : start + cut] for start in range(0, len(RAWS), cut)]
    chunks = [
        [[Message(raw)] for raw in part] if singly else RawMessages(part, NO_META) for part in parts
    ]
    batches = [batch for chunk in batch_chunks(chunks, policy, EX) for batch in chunk]
    assert [message.raw for batch in batches for message in batch] == RAWS
    if policy.byte_size:
        assert all(len(b"".join(m.raw for m in batch)) >= 5 for batch in batches[:-1])
        assert all(len(b"".join(m.raw for m in batch[:-1])) < 5 for batch in batches)
    else:
        assert [len(batch) for batch in batches] == sizes


def test_small_batches_are_passed_on_together_and_a_batch_is_never_divided():
    chunks = list(batch_chunks([RawMessages(RAWS, NO_META)], BatchPolicy(count=1), EX))
    assert [len(chunk) for chunk in chunks] == [256, 256, 256, 232]
    pair = [Message(b"a"), Message(b"b")]
    (chunk,) = batch_chunks([[pair, pair]], BatchPolicy(count=3), EX)
    assert [len(batch) for batch in chunk] == [4]
