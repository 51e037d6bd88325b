"""Batches and those who ask for them, at the moments in which one of both goes."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from aiohttp.test_utils import make_mocked_request

from streamer.connectors.http_server.http_publisher import HttpPublisher


def test_a_batch_for_one_who_goes_just_then_is_given_to_the_next():
    """It waited for good: the one had been told of it, and was gone before it could read it."""
    outlet = HttpPublisher(frozenset({"GET"}), None)

    async def ask_and_go() -> None:
        asking = asyncio.ensure_future(outlet.get(make_mocked_request("GET", "/"), {}))
        await asyncio.sleep(0)
        giving.start()
        # The loop stands still, so that the batch and the end of the request come in one turn.
        time.sleep(0.2)
        asyncio.get_running_loop().call_soon(asking.cancel)
        with pytest.raises(asyncio.CancelledError):
            await asking
        given = await outlet._wait_batch(10.0)
        assert given is not None
        given[1].set_result(True)
        await asyncio.to_thread(giving.join, 10)

    giving = threading.Thread(target=outlet.publish, args=([b"a"],), daemon=True)
    asyncio.run(asyncio.wait_for(ask_and_go(), 20))
    assert not giving.is_alive()
