"""Group commit and receivers: one sync for many senders, errors to those whom they concern."""

import asyncio

import pytest

from streamer.connectors.spool.async_receiver import ReceiverContext, start_receiver
from streamer.connectors.spool.blocks import pack_each
from streamer.connectors.spool.group_commit import GroupCommit
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.store import SpoolStore
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import raws_of
from tests.components.inputs.rooms import lodging


def test_many_senders_share_a_sync_and_their_order_is_kept(tmp_path, monkeypatch):
    store = SpoolStore(tmp_path)
    groups = []
    append = store.append

    def counted(records, mark=None):
        groups.append(len(records))
        append(records, mark)

    monkeypatch.setattr(store, "append", counted)

    async def main() -> None:
        commit = GroupCommit(store)
        await asyncio.gather(*(commit.put(pack_each([b"%d" % n], {})) for n in range(500)))

    asyncio.run(main())
    assert sum(groups) == 500 and len(groups) <= 3
    source = SpoolSource(tmp_path)
    end = source.latest_offset(source.initial_offset(), 0, Limit()).offset
    assert raws_of(source, source.initial_offset(), end) == [b"%d" % n for n in range(500)]


def test_a_refusal_reaches_all_who_wait_and_the_next_are_taken(tmp_path, monkeypatch):
    store = SpoolStore(tmp_path)
    append = store.append
    refusals = [OSError(28, "No space left on device")] * 3

    def refused(records, mark=None):
        if refusals:
            raise refusals.pop()
        append(records, mark)

    monkeypatch.setattr(store, "append", refused)
    monkeypatch.setattr("streamer.connectors.spool.group_commit.BROKEN_RETRY_S", 0.001)
    told = []

    async def main() -> None:
        commit = GroupCommit(store)
        results = await asyncio.gather(
            *(commit.put(pack_each([b"x"], {})) for _ in range(3)), return_exceptions=True
        )
        assert all(isinstance(result, OSError) for result in results)
        await commit.put_with_retry(pack_each([b"kept"], {}), told.append)

    asyncio.run(main())
    assert told == ["cannot write to the spool: No space left on device; trying again"]
    source = SpoolSource(tmp_path)
    end = source.latest_offset(source.initial_offset(), 0, Limit()).offset
    assert raws_of(source, source.initial_offset(), end) == [b"kept"]


def test_a_receiver_is_ready_before_it_is_left_alone_and_ends_with_the_stream(tmp_path):
    heard = []

    async def run(reception: ReceiverContext) -> None:
        heard.append("begun")
        reception.set_ready()
        await reception.stop.wait()
        heard.append("stopped")

    with lodging(tmp_path) as lodged:
        start_receiver(lodged.room, "test", run)
        assert heard == ["begun"]
        (thread,) = lodged.house.threads
    thread.join(30)
    assert heard == ["begun", "stopped"]


def test_what_a_receiver_cannot_begin_with_is_raised_where_it_is_started(tmp_path):
    async def run(reception: ReceiverContext) -> None:
        raise OSError("the port is taken")

    with lodging(tmp_path) as lodged, pytest.raises(OSError, match="the port is taken"):
        start_receiver(lodged.room, "test", run)
