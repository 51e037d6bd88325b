"""An opened Kafka input: what the engine asks of its brokers. Workers read it (`range_source`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.deadline import Deadline
from streamer.connectors.kafka.cluster.errors import KafkaError
from streamer.connectors.kafka.cluster.partition_ref import PartitionRef
from streamer.connectors.kafka.cluster.topic_selection import EARLIEST, TopicSelection
from streamer.connectors.kafka.input.cluster_view import ClusterView, count_behind
from streamer.connectors.kafka.input.data_loss import (
    DataLostError,
    SkippedMessages,
    lost_messages_text,
    recreated_topics_text,
    skipped_messages,
)
from streamer.connectors.kafka.input.input_preflight import (
    ClusterState,
    check_same_cluster,
    places_of,
    preflight_input,
)
from streamer.connectors.kafka.input.opened_input import (
    Backlog,
    MetadataSettings,
    Offsets,
    OpenKafkaInput,
)
from streamer.connectors.kafka.input.start_offsets import (
    StartRule,
    choose_start_offsets,
    flatten_offsets,
    nest_offsets,
)
from streamer.core.errors import StreamerError
from streamer.sdk.input.input_context import InputContext

MAX_BATCH_MESSAGES: Final = 1_000_000
"""What one micro-batch takes at most when nobody says otherwise."""

_REACHABILITY_TIMEOUT_S: Final = 3.0
_PING_TIMEOUT_S: Final = 3.0
"""So that an outage shows within five seconds, the pause before and after it included."""


@dataclass(frozen=True)
class KafkaSource(OpenKafkaInput):
    """A Kafka input; `open` makes it ready. It can be pickled: each process opens its own clients.

    What asks a broker takes `request_timeout_overhead` (10 s where there is no such field) at most.

    Attributes:
        name: of the component, which what is wrong begins with.
        connection: how the cluster is reached.
        selection: what is read.
        start: where it is begun without a checkpoint.
        group: the consumer group that is told what is safe; empty for none.
        metadata: how messages are described.
        lag_metric: the gauge of the lag, with the labels topic and partition; empty for none.
        lag_period: how often it is set, ns.
        commit_period: how often offsets are committed to the group, ns.
        bound: the most messages of a micro-batch as the config says; None when it does not.
        min_partitions: into how many parts a micro-batch is cut at least, or None.
        fail_on_data_loss: whether messages that are gone before they were read end the stream.
        read_committed: whether only messages of committed transactions are read.
        consumer: further properties of Java's consumer.
        starting: where each partition is begun, once it is opened.
        identities: what tells the topics that were begun from others of the same name.
        cluster_view: knows how far the topics go.
    """

    name: str
    connection: Connection
    selection: TopicSelection
    start: StartRule = StartRule("earliest")
    group: str = ""
    metadata: MetadataSettings = MetadataSettings()
    lag_metric: str = ""
    lag_period: int = 5_000_000_000
    commit_period: int = 1_000_000_000
    bound: int | None = None
    min_partitions: int | None = None
    fail_on_data_loss: bool = True
    read_committed: bool = False
    consumer: Mapping[str, str] = field(default_factory=dict)
    starting: Mapping[PartitionRef, int] = field(default_factory=dict)
    identities: Mapping[str, str] = field(default_factory=dict)
    cluster_view: ClusterView = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        watch = ClusterView(self.connection, self.selection, self.read_committed, self.identities)
        object.__setattr__(self, "cluster_view", watch)

    @property
    def lost_metric(self) -> str:
        """The counter of messages that were gone before they were read, with the same labels."""
        return f"{self.lag_metric.removesuffix('lag')}lost"

    @property
    def bootstrap(self) -> str:
        """The brokers that are tried first, for error texts and the log."""
        return ",".join(self.connection.brokers)

    def open(self, context: InputContext) -> KafkaSource:
        """Check that the topics can be read, and choose where to begin; see `OpenableInput`."""
        deadline = Deadline()
        try:
            state = self._preflight(deadline)
            known = context.load_state()
            if known:
                every = self.selection.is_by_pattern if self.fail_on_data_loss else None
                check_same_cluster(self.name, self.connection, known, state, every)
                starting = self._continue_offsets(known, state)
            else:
                starting = choose_start_offsets(
                    self.cluster_view.cluster,
                    _partitions_of(state, self.selection),
                    self.selection,
                    self.start,
                    state.committed,
                    deadline.remaining_s,
                )
        except KafkaError as error:
            raise StreamerError(f"input {self.name}: {error}") from None
        # What has been made anew since the last start is so until a micro-batch takes it over.
        before = known["topics"] if known else {}
        topics = {name: before.get(name) or now.identity for name, now in state.topics.items()}
        remembered = {
            "cluster": state.cluster,
            "topics": topics,
            "starting": nest_offsets(starting),
        }
        context.save_state(remembered)
        self.close()
        source = replace(self, starting=starting, identities=topics)
        source.cluster_view.on_identities = lambda now: context.save_state(
            {**remembered, "topics": now}
        )
        return source

    def probe(self) -> str:
        """Check that the topics could be read; see `SupportsProbe`."""
        deadline = Deadline()
        try:
            state = self._preflight(deadline)
            places = list(_partitions_of(state, self.selection))
            ends = self.cluster_view.cluster.end_offsets(
                places, deadline.remaining_s, self.read_committed
            )
            behind_ = count_behind(self.cluster_view, state.committed, ends, {})
        except KafkaError as error:
            raise StreamerError(str(error)) from None
        finally:
            self.close()
        topics, partitions = (
            _count_text(len(state.topics), "topic"),
            _count_text(len(places), "partition"),
        )
        of_group = f" for the group {self.group!r}" if self.group else ""
        return f"{topics}, {partitions}, {_count_text(behind_, 'message')}{of_group}"

    def backlog(self, known: Offsets) -> Backlog:
        """Return how much waits beyond the newest micro-batch; made to be called often.

        Args:
            known: where the newest micro-batch that was planned ends; what is not in it stands
                where the stream begins to read it. Empty before there is any.

        Raises:
            DataLostError: a partition ends before what is known of it, begins behind it, is gone,
                or is one of another topic of the same name; not when `fail_on_data_loss` is off.
            StreamerError: no broker answers in time, or it refuses.
        """
        at = flatten_offsets(known)
        try:
            ends = self.cluster_view.end_offsets(at)
            waiting = count_behind(self.cluster_view, at, ends, dict(self.starting))
            if self.fail_on_data_loss:
                self._check_not_lost(self._current_offsets(known), bool(waiting))
        except KafkaError as error:
            raise StreamerError(f"input {self.name}: {error}") from None
        lost = self.cluster_view.lost_partitions(at, ends)
        if lost and self.fail_on_data_loss:
            raise DataLostError(lost_messages_text(self.name, lost, at, ends, "ends at"))
        if lost and not waiting:
            waiting = 1  # what is gone is left behind by a micro-batch
        return Backlog(waiting, waiting > (self.bound or MAX_BATCH_MESSAGES), nest_offsets(ends))

    def first_offsets(self, places: list[PartitionRef]) -> dict[PartitionRef, int]:
        """Return where partitions begin now that were never read.

        Raises:
            StreamerError: no broker answers in time, or it refuses.
        """
        if not places:
            return {}
        cluster, timeout_s = self.cluster_view.cluster, self.connection.answer_timeout_s
        try:
            begins = cluster.begin_offsets(places, timeout_s)
        except KafkaError as error:
            raise StreamerError(f"input {self.name}: {error}") from None
        return {place: begins.get(place, 0) for place in places}

    def lost_text(self, known: Offsets) -> str | None:
        """Return which messages were deleted before they were read, in one line; None for none.

        For when Spark fails and names no reason of use. It names topic, partition, offsets and the
        setting that goes on all the same.
        """
        at = self._current_offsets(known)
        try:
            ends = self.cluster_view.cluster.end_offsets(at, self.connection.answer_timeout_s)
            begins = self.cluster_view.cluster.begin_offsets(at, self.connection.answer_timeout_s)
        except KafkaError:
            return None
        missing_places = [place for place, offset in at.items() if ends.get(place, -1) < offset]
        if missing_places:
            return lost_messages_text(self.name, sorted(missing_places), at, ends, "ends at")
        cut = [place for place, offset in at.items() if begins.get(place, 0) > offset]
        return lost_messages_text(self.name, sorted(cut), at, begins, "begins at") if cut else None

    def find_skipped(self, since: Offsets, ends: Offsets) -> list[SkippedMessages]:
        """Return what is gone of the micro-batch that is about to run, partition by partition.

        Nothing while `fail_on_data_loss` is on, since the stream ends then, nor when no broker
        answers.

        Args:
            since: where the micro-batch before it ends; empty for the first.
            ends: where it ends.
        """
        if self.fail_on_data_loss:
            return []
        stood = self._current_offsets(since)
        try:
            begins = self.cluster_view.cluster.begin_offsets(
                stood, self.connection.answer_timeout_s
            )
            recreated = self.cluster_view.find_recreated({topic for topic, _ in stood})
        except KafkaError:
            return []
        self.cluster_view.accept_recreated(recreated)
        return skipped_messages(stood, flatten_offsets(ends), begins, recreated)

    def commit(self, ends: Offsets) -> str | None:
        """Commit to the group that everything before these offsets is safe. Call it in a thread.

        Returns:
            None, or one line to be logged why the group did not take it. Nothing depends on it;
            the next call says it again.
        """
        if not self.group:
            return None
        try:
            return self.cluster_view.cluster.commit(
                self.group, flatten_offsets(ends), self.connection.answer_timeout_s
            )
        except KafkaError as error:
            return f"the group {self.group!r} could not commit offsets: {error}"

    def reachability_problem(self) -> str | None:
        """Return None when brokers answer and all is well, else why not, in one line."""
        try:
            # The group is left out: nothing depends on it, and its broker comes back last.
            cluster, timeout_s = (
                self.cluster_view.cluster,
                min(self.connection.answer_timeout_s, _REACHABILITY_TIMEOUT_S),
            )
            state = preflight_input(
                cluster, self.connection, self.selection, "", Deadline(timeout_s)
            )
            # A broker may know its topics again before anybody leads them.
            cluster.end_offsets(
                _partitions_of(state, self.selection), timeout_s, self.read_committed
            )
        except KafkaError as error:
            return f"input {self.name}: {error}"
        return None

    def connection_problem(self) -> str | None:
        """Return None while brokers answer, else why they do not, in one line.

        Cheap enough to be asked each second; it takes three seconds at most, and has a client of
        its own, which nothing else holds up.
        """
        named = self.selection.required_topics
        try:
            self.cluster_view.monitor.ping(named[0] if len(named) == 1 else None, _PING_TIMEOUT_S)
        except KafkaError as error:
            return f"input {self.name}: {error}"
        return None

    def mean_message_size(self) -> int | None:
        """Return the mean size of recent messages in bytes, keys and headers with it.

        None when there are none, or when it cannot be told.
        """
        # Imported here: what decodes records is not needed to look at a config.
        from streamer.connectors.kafka.input.message_size import mean_message_size

        try:
            state = self._preflight(Deadline())
            places = list(_partitions_of(state, self.selection))
            cluster, timeout_s = self.cluster_view.cluster, self.connection.answer_timeout_s
            ends = cluster.end_offsets(places, timeout_s, self.read_committed)
            return mean_message_size(
                self.connection, cluster.begin_offsets(places, timeout_s), ends
            )
        except KafkaError:
            return None

    def close(self) -> None:
        """Let the clients of this process go; what is asked next opens them again."""
        self.cluster_view.close()

    def _preflight(self, deadline: Deadline) -> ClusterState:
        return preflight_input(
            self.cluster_view.cluster, self.connection, self.selection, self.group, deadline
        )

    def _continue_offsets(self, known: Any, state: ClusterState) -> dict[PartitionRef, int]:
        """Return where an earlier start began; partitions that came since begin at their oldest."""
        earlier = flatten_offsets(known["starting"])
        return {
            place: earlier.get(place, EARLIEST) for place in _partitions_of(state, self.selection)
        }

    def _current_offsets(self, known: Offsets) -> dict[PartitionRef, int]:
        """Return where partitions stand, which before the first micro-batch is where they begin."""
        begun = {} if known else {place: at for place, at in self.starting.items() if at >= 0}
        return begun | flatten_offsets(known)

    def _check_not_lost(self, at: dict[PartitionRef, int], has_waiting: bool) -> None:
        """Check that what is to be read next is still there, and of the topics that were begun.

        Args:
            at: where the partitions stand.
            has_waiting: whether messages wait: none may be read that are others than they seem.

        Raises:
            DataLostError: it is not.
            KafkaError: no broker answers.
        """
        due, timeout_s = self.cluster_view.is_check_due(), self.connection.answer_timeout_s
        recreated = (
            self.cluster_view.find_recreated({topic for topic, _ in at})
            if has_waiting or due
            else {}
        )
        if not recreated and not due:
            return
        begins = self.cluster_view.cluster.begin_offsets(at, timeout_s)
        if recreated:
            raise DataLostError(recreated_topics_text(self.name, recreated, at, begins))
        cut = [place for place, offset in at.items() if begins.get(place, 0) > offset]
        if cut:
            raise DataLostError(lost_messages_text(self.name, sorted(cut), at, begins, "begins at"))


def _partitions_of(state: ClusterState, selection: TopicSelection) -> Iterable[PartitionRef]:
    return places_of({name: topic.partitions for name, topic in state.topics.items()}, selection)


def _count_text(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
