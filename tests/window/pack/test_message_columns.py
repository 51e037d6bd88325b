"""Messages that are built of a pack's columns."""

from __future__ import annotations

import numpy as np

from streamer.window.pack.message_columns import DecodedMetadata, MessageBuilder
from streamer.window.pack.metadata_codec import encode_meta


def test_a_window_of_few_messages_decodes_their_metadata_alone() -> None:
    """Of a topic each message has an offset of its own, and each key a window of its own."""
    metas = [encode_meta({"offset": number}, None) for number in range(1_000)]
    payloads = [b"%d" % number for number in range(1_000)]
    decoded: DecodedMetadata = {}
    for number in (7, 8, 7):
        builder = MessageBuilder({"window": number}, decoded)
        ids = np.array([number, number - 1], np.int64)
        some = builder.build_messages([payloads[i] for i in ids], metas, ids)
        assert [(m.raw, dict(m.meta)) for m in some] == [
            (b"%d" % i, {"offset": i, "window": number}) for i in (number, number - 1)
        ]
    assert decoded.keys() == {metas[i] for i in (6, 7, 8)}
    every = MessageBuilder({}, decoded).build_messages(payloads, metas, np.arange(1_000))
    assert [m.meta["offset"] for m in every] == [*range(1_000)]
