"""Records the figures of a run after each micro-batch, and while there is none."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from streamer.core.durations import SECOND
from streamer.engine.report.batch_times import BatchTimes
from streamer.engine.report.figure_history import PARTITION_PREFIX, BatchFigures
from streamer.engine.report.flow_rates import WINDOW_S
from streamer.engine.report.stream_metrics import Snapshot
from streamer.engine.report.window_history import LAG_METRIC_KEY
from streamer.plan import Plan
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import ParsedComponent
from streamer.service.monitoring.outage import list_lags
from streamer.service.monitoring.stream_figures import StreamFigures

MAX_PARTITIONS: Final = 16
MAX_NODES: Final = 32

_LATENCY_WINDOW_S: Final = 60.0
_MAX_LATENCIES: Final = 400
_TICK_S: Final = 1.0

_MAX_SILENCE_S: Final = 60.0
"""Seconds that a micro-batch may take, and three times as long as usual, until nobody can tell how
much flows."""

Counts = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]
_NO_COUNTS: Final[Counts] = {}


@dataclass(frozen=True, slots=True)
class DeliveredBatch:
    """A micro-batch that was delivered.

    Attributes:
        planned: when it was decided which messages it takes, Unix s; 0 where nobody knows.
        began: when its tasks began, Unix s.
        computed: when they had ended.
        delivered: when all was delivered.
        snapshot: the stream as of then.
        counts: the counters of the run as of then.
        times: of its stages and components.
        parallel_tasks: how many tasks run at once.
        backlog: messages that wait at the input; None when nobody knows.
    """

    planned: float
    began: float
    computed: float
    delivered: float
    snapshot: Snapshot
    counts: Counts
    times: BatchTimes = field(default_factory=BatchTimes)
    parallel_tasks: int = 1
    backlog: int | None = None


@dataclass(slots=True)
class _Totals:
    """Counters of which the growth is recorded."""

    counts: Counter[str] = field(default_factory=Counter)
    dropped: Mapping[str, int] | None = None


class FigureRecorder:
    """Feeds the figures of one stream from its micro-batches; `tick` comes from another thread.

    A micro-batch takes what has come since the one before was planned; after a rest, what has come
    in the seconds before it. So that is the span over which its counts are spread.
    """

    def __init__(self, figures: StreamFigures, plan: Plan) -> None:
        """Begin before the first micro-batch of a run.

        Args:
            figures: what is fed.
            plan: what runs.
        """
        self._figures = figures
        self._clock = figures.clock
        self._meters: object = None
        self._totals = _Totals()
        self._planned = self._delivered = 0.0
        self._longest_cycle_s = 0.0
        self._ticked_at = 0.0
        self._lag_names: frozenset[str] = frozenset()
        self._latencies: deque[tuple[float, float, int]] = deque(maxlen=_MAX_LATENCIES)
        self.use_plan(plan)

    def use_plan(self, plan: Plan) -> None:
        """Have the components of another plan."""
        inputs = (plan.input, *plan.input.processors)
        order = {_path_of(one): number for number, one in enumerate(inputs)}
        number = len(order)
        order |= {_path_of(one): number for one in plan.all_buffers if one.name != "none"}
        order |= {_path_of(one): n for n, one in enumerate(plan.all_processors, number + 1)}
        last = number + 1 + len(plan.all_processors)
        order |= {_path_of(one): last for one in plan.outputs}
        self._figures.node_order = dict([*order.items()][:MAX_NODES])
        self._takers = tuple(_path_of(one) for one in plan.all_buffers)

    def begin(self, meters: object) -> None:
        """Begin to record a run: its counters are at zero, unless they are those of before.

        Args:
            meters: the counters, by which those of another run are told.
        """
        if meters is self._meters:
            return
        now = self._clock()
        self._meters, self._totals = meters, _Totals()
        self._planned = self._delivered = now
        self._figures.rates.reset(now)
        self._figures.history.interrupt(now)
        self._figures.counted_since, self._figures.received = now, 0

    def record(self, batch: DeliveredBatch) -> None:
        """Record a micro-batch."""
        since, until = self._span_of(batch)
        counts = _sum_counts(batch.counts, self._takers)
        amounts = self._take_growth(counts) | self._take_drops(batch.snapshot)
        self._note_latency(batch, int(amounts["in"]))
        for path, time in batch.times.node_times(
            self._figures.node_order, batch.parallel_tasks
        ).items():
            if path in self._figures.node_order:
                amounts[f"busy:{path}"] = time.busy
                amounts[f"waiting:{path}"] = time.waiting
        values = {**_durations_of(batch), **_gauges_of(batch), **self._latency_values()}
        at = max(batch.delivered, until)
        self._figures.history.record(BatchFigures(since, until, at, amounts, values))
        self._figures.received = int(counts["in"])
        totals: dict[str, float] = {**counts, **_component_totals(batch.counts)}
        self._figures.rates.add(since, until, totals)
        # The longest of late: it is forgotten slowly.
        self._longest_cycle_s = max(until - self._planned, self._longest_cycle_s * 0.9)
        self._planned, self._delivered = until, batch.delivered

    def _span_of(self, batch: DeliveredBatch) -> tuple[float, float]:
        """Return the time in which the messages of a micro-batch have come."""
        until = batch.planned
        if not self._planned < until <= batch.delivered:
            until = batch.began
        known = self._figures.history.known_until
        if until <= known:
            # It was waited for so long that time has passed by itself.
            until = max(batch.delivered, known)
        rested = until - self._delivered > WINDOW_S
        return max(known, until - WINDOW_S if rested else self._planned), until

    def _take_growth(self, counts: Counter[str]) -> dict[str, float]:
        """Return by how much counters have grown."""
        former, self._totals.counts = self._totals.counts, counts
        return {
            "in": max(counts["in"] - former["in"], 0),
            "out": max(counts["out"] - former["out"], 0),
            "errors": max(counts["error"] - former["error"], 0),
        }

    def _take_drops(self, snapshot: Snapshot) -> dict[str, float]:
        """Return how many messages were dropped since the micro-batch before."""
        # These are counted since the checkpoint began: the first are of another time.
        dropped, self._totals.dropped = self._totals.dropped, snapshot.dropped
        if dropped is None:
            return {}
        total = sum(snapshot.dropped.values()) - sum(dropped.values())
        late = snapshot.dropped.get("late", 0) - dropped.get("late", 0)
        return {"dropped": max(total, 0), "late": max(late, 0)}

    def _note_latency(self, batch: DeliveredBatch, messages: int) -> None:
        if messages:
            took = batch.delivered - batch.began
            self._latencies.append((batch.delivered, took, messages))
        oldest = batch.delivered - _LATENCY_WINDOW_S
        while self._latencies and self._latencies[0][0] < oldest:
            self._latencies.popleft()

    def _latency_values(self) -> dict[str, float]:
        """Return the quantiles of the last minute, by messages."""
        ordered = sorted((took, messages) for _, took, messages in self._latencies)
        total = sum(messages for _, messages in ordered)
        values = {}
        for name, share in (("latency_p50", 0.5), ("latency_p99", 0.99)):
            rank = share * total
            for took, messages in ordered:
                rank -= messages
                if rank <= 0:
                    values[name] = took
                    break
        return values

    def tick(
        self,
        is_in_hand: bool,
        blocked_by: str = "",
        counts: Counts = _NO_COUNTS,
        gauges: Counts = _NO_COUNTS,
    ) -> None:
        """Note that time has passed, when nothing has flowed for longer than usual.

        Args:
            is_in_hand: whether there is a micro-batch in hand, or about to be: messages wait.
            blocked_by: the path of the component that holds it; an empty text for none.
            counts: the counters of the run: errors are counted while a micro-batch is blocked.
            gauges: of the run, as of now: how far Kafka is ahead is measured all the time.
        """
        now = self._clock()
        if not self._planned or 0 <= now - self._ticked_at < _TICK_S:
            return
        self._ticked_at = now
        self._note_lags(now, _lag_values(gauges))
        waited = now - self._planned
        # A start takes its time.
        is_in_hand = is_in_hand or (not self._totals.counts and waited < _MAX_SILENCE_S)
        if is_in_hand and not blocked_by:
            # What has come meanwhile may well be in it.
            if waited > max(_MAX_SILENCE_S, 3 * self._longest_cycle_s):
                self._figures.rates.is_known = False
            return
        until = now - WINDOW_S
        if until > self._figures.history.known_until:
            node = self._node_of(blocked_by)
            shares = {f"waiting:{node}": 1.0} if node else {}
            if not counts:
                self._figures.history.pass_time(until, shares)
                self._figures.rates.pass_time(until)
                return
            totals = _sum_counts(counts, self._takers)
            amounts = self._take_growth(totals)
            self._figures.history.pass_time(until, shares, amounts)
            self._figures.rates.pass_time(until, totals)

    def _note_lags(self, now: float, lags: dict[str, float]) -> None:
        gone = dict.fromkeys(self._lag_names - lags.keys())
        if lags or gone:
            self._figures.history.note_gauges(now, {**lags, **gone})
        self._lag_names = frozenset(lags)

    def _node_of(self, path: str) -> str:
        while path and path not in self._figures.node_order:
            path = path.rpartition(".")[0]
        return path


def _path_of(component: ParsedComponent) -> str:
    return ComponentRef(component).fields["path"]


def _sum_counts(counts: Counts, takers: tuple[str, ...]) -> Counter[str]:
    """Return what the stream has taken in, sent and failed on since its counters began."""
    total: Counter[str] = Counter()
    taken: dict[str, float] = {}
    sent: dict[str, float] = {}
    for (name, labels), number in counts.items():
        if name == "input_received" and not labels:
            taken[""] = taken.get("", 0) + number
        elif name == "buffer_received":
            path = dict(labels).get("path", "")
            taken[path] = taken.get(path, 0) + number
        elif name == "output_sent":
            path = dict(labels).get("path", "")
            sent[path] = sent.get(path, 0) + number
        elif name.endswith("_error"):
            total["error"] += int(number)
    # Behind the input there may be several buffers, each of which takes all of its messages.
    total["in"] = int(taken.get("") or max((taken.get(path, 0) for path in takers), default=0))
    for path, number in sent.items():
        # An output that has others inside counts what they send.
        if not any(path.startswith(f"{other}.") and sent[other] for other in sent):
            total["out"] += int(number)
    return total


def _component_totals(counts: Counts) -> dict[str, float]:
    """Return what components have received and sent, by path and by `received` or `sent`."""
    totals: dict[str, float] = {}
    for (name, labels), number in counts.items():
        kind, _, what = name.rpartition("_")
        if what in ("received", "sent") and kind in ("input", "buffer", "processor", "output"):
            path = dict(labels).get("path", "root.input")
            key = f"{path} {what}"
            totals[key] = totals.get(key, 0) + number
    return totals


def _durations_of(batch: DeliveredBatch) -> dict[str, float]:
    """Return the durations of a micro-batch, s."""
    first, second = batch.times.stage_seconds(batch.parallel_tasks)
    whole = batch.delivered - batch.began
    delivery = batch.delivered - batch.computed
    return {
        "batch_seconds": whole,
        "stage_1_seconds": first,
        "stage_2_seconds": second,
        "delivery_seconds": delivery,
        "overhead_seconds": max(whole - first - second - delivery, 0.0),
    }


def _gauges_of(batch: DeliveredBatch) -> dict[str, float]:
    """Return what is so after a micro-batch."""
    snapshot = batch.snapshot
    values: dict[str, float] = {
        "open_windows": snapshot.open_windows,
        "held_messages": snapshot.held,
        "state_bytes": snapshot.size,
    }
    if batch.backlog is not None:
        values["backlog"] = batch.backlog
    lag = batch.counts.get(LAG_METRIC_KEY)
    if lag is not None:
        values["event_time_lag"] = lag
    return values | _lag_values(batch.counts)


def _lag_values(counts: Counts) -> dict[str, float]:
    """Return the lag of Kafka: in all, and of the partitions with the largest ones."""
    lags = list_lags(counts)
    if not lags:
        return {}
    values = {"kafka_lag": sum(one.lag for one in lags)}
    for topic, partition, lag in lags[:MAX_PARTITIONS]:
        values[f"{PARTITION_PREFIX}{topic}/{partition}"] = lag
    return values


def planned_at(statuses: Mapping[int, Mapping[str, object]]) -> float:
    """Return when the newest micro-batch was planned, by the statuses of its shards, Unix s."""
    times = (status.get("now") for status in statuses.values())
    return max((one for one in times if isinstance(one, int)), default=0) / SECOND
