"""A watch for messages that come: a fetch that brokers answer when there is one.

It asks at the ends that the planner has seen, so it wakes it once for what comes beyond them, and
asks again when the planner has looked. An idle topic costs a request to each broker in five
seconds.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.partition_ref import PartitionRef
from streamer.connectors.kafka.input.fetch_requests import (
    BrokerAnswer,
    find_leaders,
    make_fetch_request,
)

_WAIT_MS: Final = 5_000
_RETRY_PAUSE_S: Final = 1.0


class ArrivalWatch:
    """Wakes the planner when messages come to what an input reads, from a thread of its own.

    Attributes:
        is_working: whether brokers have answered the newest question.
    """

    def __init__(self, connection: Connection, is_committed: bool) -> None:
        """Take what is watched; `start` begins.

        Args:
            connection: how the cluster is reached.
            is_committed: whether messages of open transactions do not count.
        """
        self._connection = connection
        self._is_committed = is_committed
        self._seen = threading.Condition()
        self._ends: dict[PartitionRef, int] = {}
        self._polls = 0
        self.is_working = False

    def start(self, wake: Callable[[], None]) -> None:
        """Begin to watch; `wake` is called for what comes."""
        run = threading.Thread(target=self._run, args=(wake,), daemon=True, name="kafka-arrivals")
        run.start()

    def note_poll(self, ends: Mapping[PartitionRef, int]) -> None:
        """Note where partitions end, as the planner has just been part_answer."""
        with self._seen:
            self._ends, self._polls = dict(ends), self._polls + 1
            self._seen.notify_all()

    def _run(self, wake: Callable[[], None]) -> None:
        session: Any = None
        ends = self._next_ends(0)
        while True:
            try:
                session = session or self._connect()
                newer_ends = self._query(session, ends)
                self.is_working = True
            except Exception:
                # What is wrong is newer_ends by who has to read; until then the planner polls.
                self.is_working = False
                if session is not None:
                    session.close()
                session = None
                time.sleep(_RETRY_PAUSE_S)
                newer_ends = {}
            with self._seen:
                ends, polls = self._ends, self._polls
            if any(end > ends.get(place, end) for place, end in newer_ends.items()):
                wake()
                ends = self._next_ends(polls)

    def _next_ends(self, polls: int) -> dict[PartitionRef, int]:
        """Return the ends of the next poll after so many; without one, those of the newest."""
        with self._seen:
            self._seen.wait_for(lambda: self._polls > polls, None if not polls else _WAIT_MS / 1000)
            return self._ends

    def _connect(self) -> Any:
        # kafka-python takes a quarter of a second to import.
        from streamer.connectors.kafka.cluster.broker_session import BrokerSession

        return BrokerSession(self._connection)

    def _query(self, session: Any, ends: Mapping[PartitionRef, int]) -> dict[PartitionRef, int]:
        """Wait up to `_WAIT_MS` for something beyond the ends; return where partitions end then.

        Raises:
            ValueError: a broker does not lead a partition any more.
            TimeoutError: one does not answer.
        """
        manager, timeout_s = session.manager, self._connection.answer_timeout_s
        leaders_future = manager.call_soon(
            find_leaders, manager, {topic for topic, _ in ends}, timeout_s
        )
        leaders: Mapping[PartitionRef, int] = _wait(leaders_future, 2 * timeout_s)
        by_leader: dict[int, dict[PartitionRef, int]] = defaultdict(dict)
        for place, end in ends.items():
            by_leader[leaders[place]][place] = end
        if not by_leader:
            time.sleep(_RETRY_PAUSE_S)
        done = threading.Event()
        pending = []
        for node, offsets in by_leader.items():
            request = make_fetch_request(offsets, 1, _WAIT_MS, self._is_committed)
            limit_ms = _WAIT_MS + 1000 * timeout_s
            one = manager.call_soon(_send, manager, request, node, limit_ms)
            one.add_both(lambda _: done.set())
            pending.append(one)
        done.wait(_WAIT_MS / 1000 + timeout_s)
        newer_ends: dict[PartitionRef, int] = {}
        for one in pending:
            if one.is_done:
                newer_ends |= _list_ends(_wait(one, 0), self._is_committed)
        return newer_ends


async def _send(manager: Any, request: Any, node: int, limit_ms: float) -> Any:
    return await manager.send(request, node, request_timeout_ms=limit_ms)


def _wait(future: Any, seconds: float) -> Any:
    done = threading.Event()
    future.add_both(lambda _: done.set())
    if not done.wait(seconds) and not future.is_done:
        raise TimeoutError
    if future.exception is not None:
        raise future.exception
    return future.value


def _list_ends(answer: Any, is_committed: bool) -> dict[PartitionRef, int]:
    """Return where the partitions of an answer end.

    Raises:
        ValueError: one has moved.
    """
    ends: dict[PartitionRef, int] = {}
    for topic in answer.responses:
        for part in topic.partitions:
            if part.error_code:
                raise ValueError("a partition has moved")
            part_answer = BrokerAnswer.parse(answer, part, is_committed)
            ends[topic.topic, part.partition_index] = part_answer.stable_end
    return ends
