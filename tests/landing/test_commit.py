"""Group commit and receivers: one sync for many senders, errors to those whom they concern."""

import asyncio

import pytest

from streamer.landing.blocks import each
from streamer.landing.commit import GroupCommit
from streamer.landing.landed import Landed
from streamer.landing.receiver import Reception, receive
from streamer.landing.store import Store
from streamer.source.replayable import Limit
from tests.inputs.reading import raws_of
from tests.inputs.rooms import lodging


def test_many_senders_share_a_sync_and_their_order_is_kept(tmp_path, monkeypatch):
    store = Store(tmp_path)
    groups = []
    append = store.append

    def counted(records, mark=None):
        groups.append(len(records))
        append(records, mark)

    monkeypatch.setattr(store, "append", counted)

    async def main() -> None:
        commit = GroupCommit(store)
        await asyncio.gather(*(commit.put(each([b"%d" % n], {})) for n in range(500)))

    asyncio.run(main())
    assert sum(groups) == 500 and len(groups) <= 3
    source = Landed(tmp_path)
    end = source.latest(source.initial(), 0, Limit()).offset
    assert raws_of(source, source.initial(), end) == [b"%d" % n for n in range(500)]


def test_a_refusal_reaches_all_who_wait_and_the_next_are_taken(tmp_path, monkeypatch):
    store = Store(tmp_path)
    append = store.append
    refusals = [OSError(28, "No space left on device")] * 3

    def refused(records, mark=None):
        if refusals:
            raise refusals.pop()
        append(records, mark)

    monkeypatch.setattr(store, "append", refused)
    monkeypatch.setattr("streamer.landing.commit.BROKEN_WAIT", 0.001)
    told = []

    async def main() -> None:
        commit = GroupCommit(store)
        results = await asyncio.gather(
            *(commit.put(each([b"x"], {})) for _ in range(3)), return_exceptions=True
        )
        assert all(isinstance(result, OSError) for result in results)
        await commit.put_surely(each([b"kept"], {}), told.append)

    asyncio.run(main())
    assert told == ["cannot write to the spool: No space left on device; trying again"]
    source = Landed(tmp_path)
    end = source.latest(source.initial(), 0, Limit()).offset
    assert raws_of(source, source.initial(), end) == [b"kept"]


def test_a_receiver_is_ready_before_it_is_left_alone_and_ends_with_the_stream(tmp_path):
    heard = []

    async def run(reception: Reception) -> None:
        heard.append("begun")
        reception.ready()
        await reception.stop.wait()
        heard.append("stopped")

    with lodging(tmp_path) as lodged:
        receive(lodged.room, "test", run)
        assert heard == ["begun"]
        (thread,) = lodged.house.threads
    thread.join(30)
    assert heard == ["begun", "stopped"]


def test_what_a_receiver_cannot_begin_with_is_raised_where_it_is_started(tmp_path):
    async def run(reception: Reception) -> None:
        raise OSError("the port is taken")

    with lodging(tmp_path) as lodged, pytest.raises(OSError, match="the port is taken"):
        receive(lodged.room, "test", run)
