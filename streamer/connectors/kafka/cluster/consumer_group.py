"""Committed offsets of a consumer group: read, and commit without being a member."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from streamer.connectors.kafka.cluster.errors import (
    COORDINATOR_MOVES,
    TIMED_OUT,
    UNKNOWN_TOPIC,
    OutOfTimeError,
    RefusedError,
)
from streamer.connectors.kafka.cluster.partition_ref import PartitionRef

if TYPE_CHECKING:
    from streamer.connectors.kafka.cluster.broker_client import BrokerClient
    from streamer.connectors.kafka.cluster.broker_session import Requests

_RETRY_PAUSE_S: Final = 0.25


class GroupClient:
    """Reads and commits the offsets of one group. Threads may share it."""

    def __init__(self, group: str, client: BrokerClient) -> None:
        """Take the group.

        Args:
            group: its id.
            client: asks; nobody else uses it, so that its connection ends for no other question.
        """
        self._group = group
        self._client = client
        self._lock = threading.Lock()
        self._unanswered: Any = None

    def close(self) -> None:
        """Let the client go; it is made again when it is asked again."""
        self._unanswered = None
        self._client.close()

    def committed_offsets(
        self, places: Collection[PartitionRef] | None, timeout_s: float
    ) -> dict[PartitionRef, int]:
        """Return what the group has committed; None for all partitions of which it has.

        Raises:
            RefusedError: it is refused, or its broker is changing until the time is over.
            KafkaError: there is no answer in time.
        """
        from streamer.connectors.kafka.cluster.requests import fetch_group_offsets

        return self._client.query(
            lambda requests: fetch_group_offsets(requests, self._group, places),
            timeout_s,
            keep=lambda: self._unanswered is not None,
        )

    def commit(self, offsets: Mapping[PartitionRef, int], timeout_s: float) -> set[int]:
        """Commit offsets; returns Kafka's numbers of errors, none when all is well.

        One that is not answered in time may still be done later. So the next is not sent before
        that is known: an older one can never come after it.

        Raises:
            KafkaError: there is no answer in time.
        """
        until = time.monotonic() + timeout_s
        with self._lock:
            return self._client.query(
                lambda requests: self._commit(requests, offsets),
                max(until - time.monotonic(), 0.0),
                keep=lambda: self._unanswered is not None,
            )

    async def _commit(self, requests: Requests, offsets: Mapping[PartitionRef, int]) -> set[int]:
        import kafka.errors as kafka_errors

        from streamer.connectors.kafka.cluster.requests import begin_commit, commit_codes

        codes = {TIMED_OUT}
        while True:
            try:
                if self._unanswered is not None:
                    await self._wait_answered(self._unanswered)
                self._unanswered = await begin_commit(requests, self._group, offsets)
                codes = commit_codes(await self._wait_answered(self._unanswered))
            except RefusedError as error:
                codes = {error.code}
            except kafka_errors.KafkaError:
                codes = {TIMED_OUT}
            # A topic that is gone has nothing to be committed.
            codes -= {UNKNOWN_TOPIC}
            if not codes & {TIMED_OUT, *COORDINATOR_MOVES}:
                return codes
            requests.session.coordinators.pop(self._group, None)
            try:
                await requests.pause(_RETRY_PAUSE_S)
            except OutOfTimeError:
                if codes == {TIMED_OUT}:
                    raise
                return codes

    async def _wait_answered(self, answer: Any) -> Any:
        try:
            return await answer
        finally:
            if self._unanswered is answer:
                self._unanswered = None
