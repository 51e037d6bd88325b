"""The index of a shard's state, as earlier versions of the program wrote it."""

from __future__ import annotations

import orjson

from streamer.core.durations import SECOND
from streamer.window import MicroBatchInfo, Shard, SystemWindow
from streamer.window.state.layout import HEAD_KEY, PANE_BUCKET_SEQ
from tests.window.oracle.system import MicroBatch, Rules, Said
from tests.window.stream import Stream

T = 1628330400 * SECOND


def test_state_without_what_was_added_later_is_read() -> None:
    stream = Stream(Rules(10 * SECOND))
    stream.step(MicroBatch(T + 5 * SECOND, (Said("a", T + 5 * SECOND),)))
    (store,) = stream.stores
    head = orjson.loads(store.values[HEAD_KEY])
    for name in ("stream",):
        del head[name]
    for name in ("filtered", "suppressed", "passed_over"):
        del head["counters"][name]
    store.values[HEAD_KEY] = orjson.dumps(head)
    for place, value in list(store.values.items()):
        if place[1] == PANE_BUCKET_SEQ:
            found = orjson.loads(value)
            found["panes"] = [pane[:7] for pane in found["panes"]]
            store.values[place] = orjson.dumps(found)
    step = Shard(SystemWindow(10 * SECOND), store).step(
        [MicroBatchInfo(T + 10 * SECOND, "second").to_row(0)]
    )
    assert [[m.doc["name"] for m in emission.messages] for emission in step] == [["a"]]
    assert step.status.counters.emitted_messages == 1
    assert step.status.counters.filtered == 0
