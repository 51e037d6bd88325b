"""Landing from threads: order, back pressure, connections that come and go."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from streamer.connectors.spool.blocks import pack_each
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.spool_writer import (
    SpoolWriter,
    StreamStoppedError,
    connect_with_retry,
)
from streamer.connectors.spool.store import SpoolStore
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import raws_of
from tests.components.inputs.rooms import lodging


def landed(directory) -> list[bytes]:
    source = SpoolSource(directory)
    start = source.initial_offset()
    return raws_of(source, start, source.latest_offset(start, 0, Limit()).offset)


def test_many_threads_share_syncs_and_each_keeps_its_order(tmp_path, monkeypatch):
    store = SpoolStore(tmp_path)
    groups: list[int] = []
    append, turn = store.append, threading.Event()

    def counted(records, mark=None):
        turn.wait(30)
        groups.append(len(records))
        append(records, mark)

    monkeypatch.setattr(store, "append", counted)
    with lodging(tmp_path / "other") as lodged:
        lander = SpoolWriter(lodged.room, store)

        def run(who: int) -> None:
            for number in range(20):
                lander.put(pack_each([b"%d.%02d" % (who, number)], {}))

        threads = [threading.Thread(target=run, args=(who,)) for who in range(8)]
        for thread in threads:
            thread.start()
        turn.set()
        for thread in threads:
            thread.join(60)
    found = landed(tmp_path)
    assert sum(groups) == 160 and len(groups) < 160
    for who in range(8):
        mine = [raw for raw in found if raw.startswith(b"%d." % who)]
        assert mine == [b"%d.%02d" % (who, number) for number in range(20)]


def test_a_full_store_is_waited_for_until_the_stream_stops(tmp_path, monkeypatch):
    monkeypatch.setattr("streamer.connectors.spool.spool_writer.FULL_RETRY_S", 0.01)
    store = SpoolStore(tmp_path, capacity=100, segment_bytes=100)
    with lodging(tmp_path / "other") as lodged:
        lander = SpoolWriter(lodged.room, store)
        lander.put(pack_each([b"x" * 200], {}))
        over: list[str] = []

        def run() -> None:
            try:
                lander.put(pack_each([b"waits"], {}))
                over.append("landed")
            except StreamStoppedError:
                over.append("stopped")

        thread = threading.Thread(target=run)
        thread.start()
        lodged.house.stop()
        thread.join(60)
    assert over == ["stopped"] and landed(tmp_path) == [b"x" * 200]


def test_a_disk_that_is_broken_is_said_once_and_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr("streamer.connectors.spool.spool_writer.BROKEN_RETRY_S", 0.001)
    store = SpoolStore(tmp_path)
    append, troubles = store.append, [OSError(5, "Input/output error")] * 3

    def broken(records, mark=None):
        if troubles:
            raise troubles.pop()
        append(records, mark)

    monkeypatch.setattr(store, "append", broken)
    with lodging(tmp_path / "other") as lodged:
        SpoolWriter(lodged.room, store).put(pack_each([b"kept"], {}))
        text = "Cannot write to the spool: Input/output error; trying again"
        assert lodged.log == [("ERROR", text)]
    assert landed(tmp_path) == [b"kept"]


@pytest.mark.parametrize(("retries", "attempts"), [(0, 1), (2, 3)])
def test_connections_that_fail_too_often_are_given_up(tmp_path, monkeypatch, retries, attempts):
    monkeypatch.setattr("streamer.connectors.spool.spool_writer.FIRST_BACKOFF_S", 0.001)
    tried: list[int] = []

    def attempt(up: Callable[[], None]) -> None:
        tried.append(1)
        raise OSError("nobody is there")

    with lodging(tmp_path) as lodged:
        connect_with_retry(lodged.room, "test", attempt, retries)
        assert lodged.counts == {"input_connection_failed": attempts}
    assert len(tried) == attempts


def test_one_that_was_made_begins_the_count_anew(tmp_path, monkeypatch):
    monkeypatch.setattr("streamer.connectors.spool.spool_writer.FIRST_BACKOFF_S", 0.001)
    made = [False, True, False, True, False, False]

    def attempt(up: Callable[[], None]) -> None:
        if made.pop(0):
            up()
        raise OSError("it is over")

    with lodging(tmp_path) as lodged:
        connect_with_retry(lodged.room, "test", attempt, 1)
        assert lodged.counts == {"input_connection_failed": 4, "input_connection_lost": 2}
    assert made == []
