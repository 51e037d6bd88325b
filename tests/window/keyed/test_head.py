"""Heads of all formats are read, and written again with the same fields."""

from __future__ import annotations

import orjson
import pytest

from streamer.core.errors import StreamerError
from streamer.window import DictStore
from streamer.window.keyed.head import KeyedHead
from streamer.window.state.layout import HEAD_KEY

PLAIN = (
    b'"fingerprint":"f","clocks":[5,"start",false,7,null,40],"next_arrival":9,"counters":{'
    b'"taken":9,"failed":0,"dropped":{"late":1},"released":2,"emitted_windows":3,'
    b'"emitted_messages":4,"expired_windows":0,"filtered":0,"suppressed":0,"passed_over":0},'
    b'"open":6,"drawers":2,"keys":5,"least":[[1,10,20,30]],"packs":[[3,1,2,4,1,99]],"next_pack":4'
)
AGGREGATED = b',"texts":["root = 1",""],"uses":[2,0],"folded":8,"sizes":[[1,77]]'


def _read(version: int, more: bytes = b"") -> tuple[KeyedHead, DictStore]:
    store = DictStore()
    store.put(*HEAD_KEY, b'{"version":%d,%b%b}' % (version, PLAIN, more))
    return KeyedHead.read(store, "f"), store


@pytest.mark.parametrize(("version", "more"), [(1, b""), (3, AGGREGATED), (4, AGGREGATED)])
def test_a_head_is_written_as_it_was_read(version: int, more: bytes) -> None:
    head, store = _read(version, more)
    assert (head.open_count, head.bucket_count, head.key_count) == (6, 2, 5)
    assert head.earliest_dues == {1: [10, 20, 30]}
    assert head.aggregated_count == (8 if more else 0)
    assert head.has_columns == (version == 4)
    before = orjson.loads(store.values[HEAD_KEY])
    head.write(store)
    assert orjson.loads(store.values[HEAD_KEY]) == before


def test_a_head_that_lacks_the_uses_of_mappings_keeps_them_all() -> None:
    head, store = _read(
        2, AGGREGATED.replace(b'"uses":[2,0],', b"").replace(b',""', b',"root = 2"')
    )
    assert head.mappings == ["root = 1", "root = 2"]
    assert min(head.use_counts) > 1_000_000
    head.write(store)
    assert orjson.loads(store.values[HEAD_KEY])["version"] == 3


def test_a_head_of_a_later_program_or_of_another_window_is_refused() -> None:
    with pytest.raises(StreamerError, match="state has format 5, which a newer streamer wrote"):
        _read(5)
    _, store = _read(1)
    with pytest.raises(StreamerError, match="holds windows of f, but the config says g"):
        KeyedHead.read(store, "g")
