"""The index of a shard's state, as earlier versions of the program wrote it."""

from __future__ import annotations

import orjson

from streamer.durations import SECOND
from streamer.window import Reading, Shard, SystemWindow
from streamer.window.index import BUCKET, HEAD
from tests.window.oracle.system import MicroBatch, Rules, Said
from tests.window.stream import Stream

T = 1628330400 * SECOND


def test_state_without_what_was_added_later_is_read() -> None:
    stream = Stream(Rules(10 * SECOND))
    stream.step(MicroBatch(T + 5 * SECOND, (Said("a", T + 5 * SECOND),)))
    (store,) = stream.stores
    head = orjson.loads(store.values[0, HEAD])
    for name in ("stream",):
        del head[name]
    for name in ("filtered", "suppressed", "passed_over"):
        del head["counters"][name]
    store.values[0, HEAD] = orjson.dumps(head)
    for place, value in list(store.values.items()):
        if place[1] == BUCKET:
            found = orjson.loads(value)
            found["panes"] = [pane[:7] for pane in found["panes"]]
            store.values[place] = orjson.dumps(found)
    step = Shard(SystemWindow(10 * SECOND), store).step([Reading(T + 10 * SECOND, "second").row(0)])
    assert [[m.doc["name"] for m in emission.messages] for emission in step] == [["a"]]
    assert step.status.counters.emitted_messages == 1
    assert step.status.counters.filtered == 0
