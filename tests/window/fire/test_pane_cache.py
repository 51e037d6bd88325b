"""Windows that close together share what was unpacked and parsed, and nobody can tell."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from streamer.bloblang import compile_interpolation, compile_mapping
from streamer.core.durations import SECOND
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.window import DictStore, MicroBatchInfo, Packer, Shard, SystemWindow
from streamer.window.evaluate.queries import BufferMappings
from streamer.window.pack.pack_codec import Pack

WINDOW = SystemWindow(size=10 * SECOND, slide=SECOND)
START = 1_800_000_000


KEY = compile_interpolation("${! this.key }")


def emitted(
    consume: Callable[[Batch], object], cuts: int, key=KEY, closes: range = range(60, 61)
) -> list[tuple]:
    """Run a sliding stream whose windows all close in the last step, or in several."""
    store, ex = DictStore(), Execution(lambda: 0)
    events = [
        json.dumps({"at": START + n % 23, "key": f"k{n % 3}", "n": n, "big": 1.50}).encode()
        for n in range(300)
    ]
    out = []
    for cut in range(cuts):
        t = (START - 1) * SECOND
        packer = Packer(WINDOW, 1, BufferMappings(compile_mapping("root = this.at"), key))
        # Messages of two files: their metadata differs.
        half = events[cut::cuts]
        packer.add_raws(half[:20], {"from": "a"}, 0, t, ex)
        packer.add_raws(half[20:], {"from": "b"}, 20, t, ex)
        rows = [*packer.flush_rows(), MicroBatchInfo(t, "a").to_row(0)]
        list(Shard(WINDOW, store).step(rows))
    for second in closes:
        for emission in Shard(WINDOW, store).step(
            [MicroBatchInfo((START + second) * SECOND, "b").to_row(0)]
        ):
            consume(emission.messages)
            messages = [(m.raw, dict(m.meta)) for m in emission.messages]
            out.append((emission.end, emission.key, messages))
    return out


def parse(batch: Batch) -> None:
    for message in batch:
        assert json.dumps(message.doc["n"]) == json.dumps(json.loads(message.raw)["n"])
        assert message.doc["big"] == 1.5


def parse_some(batch: Batch) -> None:
    parse(batch[:1])


@pytest.mark.parametrize("cuts", [1, 4], ids=["one pack a pane", "panes whose packs interleave"])
def test_what_is_emitted_does_not_depend_on_what_was_parsed(cuts):
    untouched = emitted(lambda batch: None, cuts)
    assert len({end for end, _, _ in untouched}) == 32
    assert emitted(parse, cuts) == untouched
    assert emitted(parse_some, cuts) == untouched


def test_a_document_is_parsed_once_for_all_its_windows():
    seen: dict[bytes, set[int]] = {}

    def parse_and_note(batch: Batch) -> None:
        for message in batch:
            seen.setdefault(message.raw, set()).add(id(message.doc))
        kept.append(batch)

    kept: list[Batch] = []  # ids are those of living documents only
    emitted(parse_and_note, 1)
    assert len(seen) == 300
    assert all(len(documents) == 1 for documents in seen.values())


@pytest.mark.parametrize("cuts", [1, 4], ids=["one pack a pane", "panes whose packs interleave"])
@pytest.mark.parametrize("key", [KEY, None], ids=["groups", "whole windows"])
def test_windows_that_close_together_are_what_they_are_alone(cuts, key):
    together = emitted(lambda batch: None, cuts, key)
    assert together == emitted(lambda batch: None, cuts, key, range(60))
    assert len(together) == 32 * (1 if key is None else 3)


def test_whole_windows_that_close_together_unpack_what_they_share_once(monkeypatch):
    unpacked = []
    plain = Pack.__init__
    monkeypatch.setattr(Pack, "__init__", lambda *given: unpacked.append(plain(*given)))
    assert len(emitted(lambda batch: None, 1, None)) == 32
    together = len(unpacked)
    assert len(emitted(lambda batch: None, 1, None, range(60))) == 32
    assert together == 23  # panes, each in one pack
    assert len(unpacked) - together == 23 * 10
