"""An opened Kafka input: what Spark's source is told, and what is asked and told beside it.

The interface that the engine uses, with what each part promises, is `reading.KafkaReading`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from streamer.errors import StreamerError
from streamer.kafka.connection import Connection
from streamer.kafka.errors import KafkaError
from streamer.kafka.groups import Place
from streamer.kafka.losses import made_anew, missing
from streamer.kafka.opening import check_same, check_token
from streamer.kafka.patience import Patience
from streamer.kafka.preflight import Found, places_of, preflight
from streamer.kafka.reading import DataLostError, Metadata, Offsets, Skipped, Standing
from streamer.kafka.sampling import mean_size
from streamer.kafka.sasl import OAUTHBEARER
from streamer.kafka.skipping import skipped
from streamer.kafka.starting import Start, as_json, flat, nested, starting_offsets
from streamer.kafka.tokens import ALLOWED_URLS, token_url
from streamer.kafka.topics import EARLIEST, Selection
from streamer.kafka.watch import Watch, behind
from streamer.source.opening import Room

MOST: Final = 1_000_000
"""What one micro-batch takes at most when nobody says otherwise."""

_GLANCE: Final = 3.0
_PING_TIMEOUT_S: Final = 3.0
"""So that an outage shows within five seconds, the pause before and after it included."""


@dataclass(frozen=True)
class KafkaSource:
    """A Kafka input; `opened` makes it ready. It can be pickled.

    Attributes:
        name: of the component, which what is wrong begins with.
        connection: how the cluster is reached.
        selection: what is read.
        start: where it is begun without a checkpoint.
        group: the consumer group that is told what is safe; empty for none.
        metadata: how messages are described.
        lag_metric: the gauge of the lag.
        lag_period: how often it is set, ns.
        commit_period: how often offsets are committed, ns.
        bound: the most messages of a micro-batch, or None.
        min_partitions: into how many parts a micro-batch is cut at least, or None.
        fail_on_data_loss: whether messages that are gone before they were read end the stream.
        read_committed: whether only messages of committed transactions are read.
        consumer: further properties of Java's consumer.
        starting: where each partition is begun, once it is opened.
        identities: what tells the topics that were begun from others of the same name.
        watch: knows how far the topics go.
    """

    name: str
    connection: Connection
    selection: Selection
    start: Start = Start("earliest")
    group: str = ""
    metadata: Metadata = Metadata()
    lag_metric: str = ""
    lag_period: int = 5_000_000_000
    commit_period: int = 1_000_000_000
    bound: int | None = None
    min_partitions: int | None = None
    fail_on_data_loss: bool = True
    read_committed: bool = False
    consumer: Mapping[str, str] = field(default_factory=dict)
    starting: Mapping[Place, int] = field(default_factory=dict)
    identities: Mapping[str, str] = field(default_factory=dict)
    watch: Watch = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        watch = Watch(self.connection, self.selection, self.read_committed, self.identities)
        object.__setattr__(self, "watch", watch)

    @property
    def lost_metric(self) -> str:
        """The counter of what was gone before it was read; see `KafkaReading`."""
        return f"{self.lag_metric.removesuffix('lag')}lost"

    @property
    def bootstrap(self) -> str:
        """The brokers that are asked first, for what is said and logged."""
        return ",".join(self.connection.brokers)

    def opened(self, room: Room) -> KafkaSource:
        """Look whether it can be read, and choose where it begins; see `Opening`."""
        check_token(self.name, self.connection, room.local)
        patience = Patience()
        try:
            found = self._look(patience)
            known = room.known()
            if known:
                every = self.selection.by_pattern if self.fail_on_data_loss else None
                check_same(self.name, self.connection, known, found, every)
                starting = self._again(known, found)
            else:
                starting = starting_offsets(
                    self.watch.cluster,
                    _places(found, self.selection),
                    self.selection,
                    self.start,
                    found.committed,
                    patience.left,
                )
        except KafkaError as error:
            raise StreamerError(f"input {self.name}: {error}") from None
        # What has been made anew since the last start is so until a micro-batch takes it over.
        before = known["topics"] if known else {}
        topics = {name: before.get(name) or now.identity for name, now in found.topics.items()}
        told = {"cluster": found.cluster, "topics": topics, "starting": nested(starting)}
        room.remember(told)
        self.close()
        opened = replace(self, starting=starting, identities=topics)
        opened.watch.taken_over = lambda now: room.remember({**told, "topics": now})
        return opened

    def probe(self) -> str:
        """Look whether it could be read; see `Probing`."""
        patience = Patience()
        try:
            found = self._look(patience)
            places = list(_places(found, self.selection))
            ends = self.watch.cluster.ends(places, patience.left, self.read_committed)
            behind_ = behind(self.watch, found.committed, ends, {})
        except KafkaError as error:
            raise StreamerError(str(error)) from None
        finally:
            self.close()
        topics, partitions = _count(len(found.topics), "topic"), _count(len(places), "partition")
        of_group = f" for the group {self.group!r}" if self.group else ""
        return f"{topics}, {partitions}, {_count(behind_, 'message')}{of_group}"

    def options(self, most: int) -> dict[str, str]:
        """Return the options of Spark's source; see `KafkaReading`."""
        connection, more = self.connection, list[str]()
        if connection.encryption and not connection.encryption.verified:
            more = self.watch.cluster.brokers(connection.patience)
        found = {f"kafka.{name}": value for name, value in connection.java(more).items()}
        found |= {f"kafka.{name}": value for name, value in self.consumer.items()}
        # A reader must not make the topic that it misses; see `Connection.librdkafka`.
        found["kafka.allow.auto.create.topics"] = "false"
        if self.read_committed:
            found["kafka.isolation.level"] = "read_committed"
        found |= self.selection.spark_options()
        found |= {
            "includeHeaders": "true",
            "failOnDataLoss": "true" if self.fail_on_data_loss else "false",
            "maxOffsetsPerTrigger": str(min(most, self.bound or most)),
            # Without any topic yet, those that come are read from their beginning.
            "startingOffsets": as_json(self.starting) if self.starting else "earliest",
        }
        if self.min_partitions is not None:
            found["minPartitions"] = str(self.min_partitions)
        return found

    def jvm_properties(self) -> dict[str, str]:
        """Return the system properties that the JVM must have; see `KafkaReading`."""
        sasl = self.connection.sasl
        if sasl is None or sasl.mechanism != OAUTHBEARER:
            return {}
        return {ALLOWED_URLS: token_url(sasl.token)}

    def standing(self, known: Offsets) -> Standing:
        """Ask how much waits beyond the newest micro-batch; see `KafkaReading`."""
        at = flat(known)
        try:
            ends = self.watch.ends(at)
            waiting = behind(self.watch, at, ends, dict(self.starting))
            if self.fail_on_data_loss:
                self._check_kept(self._stands(known), bool(waiting))
        except KafkaError as error:
            raise StreamerError(f"input {self.name}: {error}") from None
        lost = self.watch.lost(at, ends)
        if lost and self.fail_on_data_loss:
            raise DataLostError(missing(self.name, lost, at, ends, "ends at"))
        if lost and not waiting:
            waiting = 1  # what is gone is left behind by a micro-batch
        return Standing(waiting, waiting > (self.bound or MOST), nested(ends))

    def lost(self, known: Offsets) -> str | None:
        """Return what was deleted before it was read; see `KafkaReading`."""
        at = self._stands(known)
        try:
            ends = self.watch.cluster.ends(at, self.connection.patience)
            begins = self.watch.cluster.begins(at, self.connection.patience)
        except KafkaError:
            return None
        gone = [place for place, offset in at.items() if ends.get(place, -1) < offset]
        if gone:
            return missing(self.name, sorted(gone), at, ends, "ends at")
        cut = [place for place, offset in at.items() if begins.get(place, 0) > offset]
        return missing(self.name, sorted(cut), at, begins, "begins at") if cut else None

    def skipped(self, since: Offsets, ends: Offsets) -> list[Skipped]:
        """Return what is gone of the micro-batch that is about to run; see `KafkaReading`."""
        if self.fail_on_data_loss:
            return []
        stood = self._stands(since)
        try:
            begins = self.watch.cluster.begins(stood, self.connection.patience)
            remade = self.watch.remade({topic for topic, _ in stood})
        except KafkaError:
            return []
        self.watch.take_over(remade)
        return skipped(stood, flat(ends), begins, remade)

    def commit(self, ends: Offsets) -> str | None:
        """Tell the group what is safe; see `KafkaReading`."""
        if not self.group:
            return None
        try:
            return self.watch.cluster.commit(self.group, flat(ends), self.connection.patience)
        except KafkaError as error:
            return f"the group {self.group!r} could not be told what is safe: {error}"

    def reachable(self) -> str | None:
        """Return None when all is well, else why not; see `KafkaReading`."""
        try:
            # The group is left out: nothing depends on it, and its broker comes back last.
            cluster, patience = self.watch.cluster, min(self.connection.patience, _GLANCE)
            found = preflight(cluster, self.connection, self.selection, "", Patience(patience))
            # A broker may know its topics again before anybody leads them.
            cluster.ends(_places(found, self.selection), patience, self.read_committed)
        except KafkaError as error:
            return f"input {self.name}: {error}"
        return None

    def connection_problem(self) -> str | None:
        """Return why no broker answers now, or None; see `KafkaReading`."""
        named = self.selection.named
        try:
            self.watch.monitor.ping(named[0] if len(named) == 1 else None, _PING_TIMEOUT_S)
        except KafkaError as error:
            return f"input {self.name}: {error}"
        return None

    def lag(self, ends: Offsets) -> dict[tuple[str, str], int]:
        """Return how far the newest standing is ahead; see `KafkaReading`."""
        at = flat(ends)
        return {
            (topic, str(number)): max(newest - at[topic, number], 0)
            for (topic, number), newest in self.watch.newest.items()
            if (topic, number) in at
        }

    def message_size(self) -> int | None:
        """Return the mean size of recent messages; see `KafkaReading`."""
        try:
            found = self._look(Patience())
            places = list(_places(found, self.selection))
            cluster, patience = self.watch.cluster, self.connection.patience
            ends = cluster.ends(places, patience, self.read_committed)
            return mean_size(self.connection, cluster.begins(places, patience), ends)
        except KafkaError:
            return None

    def close(self) -> None:
        """Let the clients of this process go; what is asked next opens them again."""
        self.watch.forget()

    def _look(self, patience: Patience) -> Found:
        return preflight(self.watch.cluster, self.connection, self.selection, self.group, patience)

    def _again(self, known: Any, found: Found) -> dict[Place, int]:
        """Return where an earlier start began; partitions that came since begin at their oldest."""
        earlier = flat(known["starting"])
        return {place: earlier.get(place, EARLIEST) for place in _places(found, self.selection)}

    def _stands(self, known: Offsets) -> dict[Place, int]:
        """Return where partitions stand, which before the first micro-batch is where they begin."""
        begun = {} if known else {place: at for place, at in self.starting.items() if at >= 0}
        return begun | flat(known)

    def _check_kept(self, at: dict[Place, int], waits: bool) -> None:
        """Look whether what is to be read next is still there, and of the topics that were begun.

        Args:
            at: where the partitions stand.
            waits: whether messages wait: none may be read that are others than they seem.

        Raises:
            DataLostError: it is not.
            KafkaError: no broker answers.
        """
        due, patience = self.watch.due(), self.connection.patience
        remade = self.watch.remade({topic for topic, _ in at}) if waits or due else {}
        if not remade and not due:
            return
        begins = self.watch.cluster.begins(at, patience)
        if remade:
            raise DataLostError(made_anew(self.name, remade, at, begins))
        cut = [place for place, offset in at.items() if begins.get(place, 0) > offset]
        if cut:
            raise DataLostError(missing(self.name, sorted(cut), at, begins, "begins at"))


def _places(found: Found, selection: Selection) -> Iterable[Place]:
    return places_of({name: topic.partitions for name, topic in found.topics.items()}, selection)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
