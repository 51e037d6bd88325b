"""Questions of Kafka's protocol: metadata, offsets, groups, new topics.

Each is a coroutine in the thread of a `BrokerSession`. It asks again, of another broker where that
is the leader or the coordinator by then, for as long as there is time.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

import kafka.errors as kafka_errors
from kafka.protocol.admin import CreateTopicsRequest
from kafka.protocol.consumer import ListOffsetsRequest, OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest, MetadataRequest

from streamer.connectors.kafka.cluster.broker_session import Requests
from streamer.connectors.kafka.cluster.errors import (
    COORDINATOR_MOVES,
    NO_LEADER,
    NOT_CONTROLLER,
    NOT_LEADER,
    TOPIC_EXISTS,
    TOPIC_REFUSED,
    UNKNOWN_TOPIC,
    NoLeaderError,
    OutOfTimeError,
    RefusedError,
)
from streamer.connectors.kafka.cluster.partition_ref import PartitionRef

_READ: Final = 3
_WRITE: Final = 4
_NO_MEMBER: Final = -1
_MOVED: Final = frozenset({UNKNOWN_TOPIC, NO_LEADER, *NOT_LEADER})
_OFFSET_NOT_AVAILABLE: Final = 78
_NO_ANSWER: Final = -1
_COMMIT_ANSWER_S: Final = 60.0
"""Seconds for which a commit that is under way holds back the next."""


class TopicMetadata(NamedTuple):
    """A topic as a broker describes it.

    Attributes:
        code: Kafka's number of an error, 0 for none.
        leaders: the node that leads each partition, -1 for none.
        identity: tells it from one of the same name that was deleted; empty when it has none.
        readable: whether the client may read it; None when the broker does not say.
        writable: the same of writing.
    """

    code: int
    leaders: dict[int, int]
    identity: str
    readable: bool | None
    writable: bool | None


class Metadata(NamedTuple):
    """A cluster as a broker describes it.

    Attributes:
        cluster: the cluster's id; may be empty.
        brokers: addresses.
        topics: those of the request, by name.
    """

    cluster: str
    brokers: list[str]
    topics: dict[str, TopicMetadata]


async def fetch_metadata(requests: Requests, topics: Collection[str] | None) -> Metadata:
    """Return the cluster's metadata, with some topics; None for all that the client may see."""
    kind = MetadataRequest.MetadataRequestTopic
    response = await requests.send(
        lambda: MetadataRequest(
            topics=None if topics is None else [kind(name=name) for name in topics],
            # Who asks for a topic makes it where brokers let it: a deleted one would come back.
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=topics is not None,
        )
    )
    described = {topic.name: _parse_topic(topic) for topic in response.topics}
    for name, topic in described.items():
        for number, leader in topic.leaders.items():
            requests.session.leaders[name, number] = leader
    return Metadata(
        response.cluster_id or "",
        sorted(f"{broker.host}:{broker.port}" for broker in response.brokers),
        described,
    )


def _parse_topic(topic: Any) -> TopicMetadata:
    rights = topic.authorized_operations or None
    return TopicMetadata(
        topic.error_code,
        {one.partition_index: one.leader_id for one in topic.partitions},
        _topic_identity(topic.topic_id),
        None if rights is None else _READ in rights,
        None if rights is None else _WRITE in rights,
    )


def _topic_identity(topic_id: uuid.UUID | None) -> str:
    """Return a topic's id as Kafka's tools write it; empty where the cluster has zeros for all."""
    if not topic_id or not topic_id.int:
        return ""
    return base64.b64encode(topic_id.bytes).decode().rstrip("=")


async def list_offsets(
    requests: Requests, times: Mapping[PartitionRef, int], committed: bool
) -> dict[PartitionRef, int]:
    """Return offsets of partitions; those that are gone are left out.

    Args:
        requests: sends.
        times: Unix milliseconds, or -1 for the end and -2 for the beginning.
        committed: whether the end is where transactions are committed.

    Raises:
        RefusedError: a topic is refused.
        NoLeaderError: a partition has no leader until the time is over.
    """
    offsets: dict[PartitionRef, int] = {}
    left, leaders, tries = dict(times), requests.session.leaders, 0
    while left:
        waiting: PartitionRef | None = None
        unknown = [place for place in left if leaders.get(place, _NO_ANSWER) < 0]
        if unknown:
            waiting = await _find_leaders(requests, unknown, left)
        by_node: dict[int, list[PartitionRef]] = {}
        for place in left:
            if (node := leaders.get(place, _NO_ANSWER)) >= 0:
                by_node.setdefault(node, []).append(place)
        answers = [
            (places, requests.begin(node, _offsets_request(places, left, committed)))
            for node, places in by_node.items()
        ]
        for places, answer in answers:
            for place, offset in (await _read_offsets(requests, answer, places)).items():
                offsets[place] = offset
                del left[place]
        if left:
            try:
                await requests.pause(min(0.02 * 2**tries, 0.5))
            except OutOfTimeError:
                if waiting is not None:
                    raise NoLeaderError(waiting) from None
                raise
            tries += 1
    return offsets


async def _find_leaders(
    requests: Requests, places: Iterable[PartitionRef], left: dict[PartitionRef, int]
) -> PartitionRef | None:
    """Find the leaders of partitions; returns one that has none now.

    Partitions that the cluster does not know are taken out of `left`.
    """
    waiting, names = None, sorted({topic for topic, _ in places})
    metadata = await fetch_metadata(requests, names)
    for name, number in places:
        topic = metadata.topics.get(name)
        if topic is not None and topic.code == TOPIC_REFUSED:
            raise _refused(TOPIC_REFUSED)
        if topic is not None and topic.code == NO_LEADER:
            waiting = name, number
        elif topic is None or number not in topic.leaders:
            left.pop((name, number), None)
        elif topic.leaders[number] < 0:
            waiting = name, number
    return waiting


def _offsets_request(
    places: Iterable[PartitionRef], times: Mapping[PartitionRef, int], committed: bool
) -> Any:
    topic, partition = (
        ListOffsetsRequest.ListOffsetsTopic,
        ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition,
    )
    by_topic: dict[str, list[Any]] = {}
    for name, number in places:
        entry = partition(partition_index=number, timestamp=times[name, number])
        by_topic.setdefault(name, []).append(entry)
    return ListOffsetsRequest(
        isolation_level=int(committed),
        topics=[topic(name=name, partitions=entries) for name, entries in by_topic.items()],
        min_version=2 if committed else 1,
    )


async def _read_offsets(
    requests: Requests, answer: Any, places: Iterable[PartitionRef]
) -> dict[PartitionRef, int]:
    """Return the offsets that a broker tells; forgets the leaders of those that it does not."""
    offsets: dict[PartitionRef, int] = {}
    try:
        response = await answer
    except kafka_errors.IncompatibleBrokerVersion:
        raise
    except kafka_errors.KafkaError:
        for place in places:
            requests.session.leaders.pop(place, None)
        return offsets
    for topic in response.topics:
        for one in topic.partitions:
            place = topic.name, one.partition_index
            if not one.error_code:
                offsets[place] = one.offset
            elif one.error_code in _MOVED:
                requests.session.leaders.pop(place, None)
            elif one.error_code == _OFFSET_NOT_AVAILABLE:
                continue  # a new leader does not know yet how far the others are
            else:
                raise _refused(one.error_code)
    return offsets


async def find_coordinator(requests: Requests, group: str) -> int:
    """Return the node that keeps the offsets of a group.

    Raises:
        RefusedError: the group is refused, or its broker is still being found.
    """
    known = requests.session.coordinators.get(group)
    if known is not None:
        return known
    kind = CoordinatorType.GROUP
    response = await requests.send(
        lambda: FindCoordinatorRequest(key=group, key_type=kind.value, max_version=3)
    )
    if response.error_code:
        raise _refused(response.error_code)
    node: int = requests.session.manager.cluster.add_coordinator(
        response, kind, group, synthesize_node_id=False
    )
    requests.session.coordinators[group] = node
    return node


async def fetch_group_offsets(
    requests: Requests, group: str, places: Collection[PartitionRef] | None
) -> dict[PartitionRef, int]:
    """Return what a group has committed; partitions of which it has not are left out.

    Args:
        requests: sends.
        group: its id.
        places: the partitions; None for all of the group.

    Raises:
        RefusedError: it is refused, or its broker is changing until the time is over.
    """
    kind = OffsetFetchRequest.OffsetFetchRequestTopic
    topics = None
    if places is not None:
        by_topic = _numbers_by_topic(places)
        topics = [kind(name=name, partition_indexes=n) for name, n in by_topic.items()]
    moved = COORDINATOR_MOVES[1]
    while True:
        try:
            node = await find_coordinator(requests, group)
            response = await requests.begin(
                node,
                OffsetFetchRequest(group_id=group, topics=topics, min_version=2, max_version=7),
            )
            codes = {response.error_code}
            codes |= {one.error_code for topic in response.topics for one in topic.partitions}
            codes -= {0, UNKNOWN_TOPIC}
            if not codes:
                return {
                    (topic.name, one.partition_index): one.committed_offset
                    for topic in response.topics
                    for one in topic.partitions
                    if one.committed_offset >= 0
                }
            raise _refused(min(codes))
        except RefusedError as error:
            if error.code not in COORDINATOR_MOVES:
                raise
            moved = error.code
        except kafka_errors.IncompatibleBrokerVersion:
            raise
        except kafka_errors.KafkaError:
            moved = _NO_ANSWER
        requests.session.coordinators.pop(group, None)
        try:
            await requests.pause(0.25)
        except OutOfTimeError:
            if moved == _NO_ANSWER:
                raise
            raise _refused(moved) from None


async def begin_commit(requests: Requests, group: str, offsets: Mapping[PartitionRef, int]) -> Any:
    """Send offsets to a group's coordinator as no member of the group; returns the future answer.

    Raises:
        RefusedError: the group is refused, or its broker is still being found.
    """
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    partition = topic.OffsetCommitRequestPartition
    by_topic: dict[str, list[Any]] = {}
    for (name, number), at in sorted(offsets.items()):
        committed = partition(
            partition_index=number,
            committed_offset=at,
            committed_leader_epoch=-1,
            committed_metadata="",
        )
        by_topic.setdefault(name, []).append(committed)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=_NO_MEMBER,
        member_id="",
        group_instance_id=None,
        retention_time_ms=-1,
        topics=[topic(name=name, partitions=ones) for name, ones in by_topic.items()],
        max_version=8,
    )
    node = await find_coordinator(requests, group)
    return requests.begin(node, request, max(requests.remaining_s, _COMMIT_ANSWER_S))


def commit_codes(response: Any) -> set[int]:
    """Return Kafka's numbers of the errors of a commit; none when all is well."""
    return {one.error_code for topic in response.topics for one in topic.partitions} - {0}


async def create_topic(requests: Requests, name: str, partitions: int, replication: int) -> None:
    """Create a topic; one that is there is well.

    Args:
        requests: sends.
        name: its name.
        partitions: how many; -1 for what the brokers say.
        replication: how often it is kept; -1 for what the brokers say.

    Raises:
        RefusedError: it is refused.
    """
    new = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication,
        assignments=[],
        configs=[],
    )

    def make() -> Any:
        within = int(requests.remaining_s * 1000)
        return CreateTopicsRequest(topics=[new], timeout_ms=within, validate_only=False)

    (result,) = (await requests.send(make)).topics
    while result.error_code == NOT_CONTROLLER:
        # Brokers pass it on to the controller, but for those that still have ZooKeeper.
        metadata = await requests.send(lambda: MetadataRequest(topics=[]))
        try:
            (result,) = (await requests.begin(metadata.controller_id, make())).topics
        except kafka_errors.KafkaError:
            await requests.pause()
    if result.error_code not in (0, TOPIC_EXISTS):
        raise _refused(result.error_code, result.error_message)


def _refused(code: int, text: str | None = None) -> RefusedError:
    kind = kafka_errors.for_code(code)
    return RefusedError(code, text or kind.description or kind.__name__)


def _numbers_by_topic(places: Iterable[PartitionRef]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for name, number in places:
        by_topic.setdefault(name, []).append(number)
    return by_topic
