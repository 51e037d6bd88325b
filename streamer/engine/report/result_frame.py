"""Frames from tasks to the driver: their format, and the report of a task that makes them."""

from __future__ import annotations

import sys
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import accumulate, groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import uuid4

import orjson

from streamer.core.execution import Execution
from streamer.core.json.dump import dump_json
from streamer.core.limits import DEFAULT_LIMITS, Limits, set_limits
from streamer.core.message import Batch
from streamer.core.portions import cut_portions
from streamer.engine.report.batch_times import task_times
from streamer.engine.report.failed_messages import FailureSampler
from streamer.engine.report.message_sampler import SAMPLES_PER_COMPONENT, Sampler
from streamer.engine.report.reading_reporter import REPORTER
from streamer.engine.report.rejected_messages import (
    RejectedMessages,
    ReplayRules,
    collect_rejected,
    encode_rejected,
)
from streamer.engine.report.repeated_lines import REPEATED, RepeatCounter, may_repeat
from streamer.engine.report.reply_codec import encode_replies
from streamer.engine.report.spans import TaskTrace
from streamer.engine.report.task_log_channel import TaskLogSender
from streamer.engine.report.undelivered import (
    CHUNK_MESSAGES,
    UndeliveredBatches,
    encode_undelivered,
)
from streamer.plan import Plan
from streamer.sdk.output.rejection import origin_number_of
from streamer.sdk.output.wait_budget import UnsentBatches, WaitBudget

MAX_JOINED_BYTES = 1 << 20
"""Bytes up to which neighbouring payloads of one route become one frame."""

RESULTS_OUTPUT = -1
"""Stands for the output of payloads that are results to be kept."""

_INT_BYTES = 8

MAX_LOG_LINES = 100
"""Log lines that one task may send to the driver; the others are counted."""

MAX_CONFIG_LOG_LINES = 10_000
"""The same for lines that the config asks for with a `log` processor."""

GAUGE_MARK = "set"
"""Stands behind a figure that is set, and does not grow."""

PEAK_MARK = "peak"
"""Stands behind a figure of which the largest of a micro-batch counts."""

DEFAULT_REPLAY_RULES = ReplayRules()

LOG_LEVELS = {"FATAL": 0, "ERROR": 1, "WARN": 2, "INFO": 3, "DEBUG": 4, "TRACE": 5}


class FrameKind(IntEnum):
    """The content of a frame."""

    DATA = 0
    """Bytes for an output."""
    STATUS = 1
    """The status of a shard, as JSON."""
    LOG = 2
    """Log lines, as a JSON list of [level, text, fields]."""
    COUNT = 3
    """Counts of this micro-batch, as a JSON list of [name, number, labels]."""
    TIMING = 4
    """Times of this micro-batch, as a JSON list of [name, ns in all, {bucket: number}, labels]."""
    REJECTED = 5
    """Messages that must not be delivered, as a JSON list of [number, text, labels, source]."""
    ANSWER = 6
    """Requests that have been dealt with, and what answers them: see `reply_codec`."""
    MULTI_PART = 7
    """Bytes for an output that have orders of their own: the number of parts, for each its order
    and its size, and the bytes. A frame costs some hundred times what a part does: each is a row of
    Spark's. Sessions end each at a time of its own."""
    RESULT = 8
    """Results of windows that are to be kept, as `results.rows.encode_rows` makes them."""
    SAMPLE = 9
    """Samples of messages, as a JSON list of [label, path, samples]: see `message_sampler`."""
    SPAN = 10
    """What a task did and when, for a trace, as JSON: see `spans.TaskSpan`."""
    UNDELIVERED = 11
    """Batches that an output did not take in time: see `undelivered.UndeliveredBatches`."""
    WORK = 12
    """How long a task's own processors and outputs took, as JSON: see `batch_work.TaskWork`."""
    TASK_TIME = 13
    """How long a task took, and its components in it, as JSON: see `batch_times.TaskTimes`."""
    FAILED = 14
    """Samples of messages that have failed, as a JSON list: see `failed_messages`."""


class Frame(NamedTuple):
    """One row that comes back to the driver; frames are written in their natural order.

    Attributes:
        kind: a `FrameKind`.
        order: the window's end in ns, or the number of the source's piece.
        shard: the shard, or 0.
        seq: number of the frame within its shard and micro-batch.
        output: number of the output that it is for, in `Plan.written`.
        route: what the output says about the destination: a file's path, or nothing.
        body: the bytes.
    """

    kind: int
    order: int
    shard: int
    seq: int
    output: int
    route: str
    body: bytes


class Payload(NamedTuple):
    """Bytes on their way into a frame."""

    order: int
    output: int
    route: str
    body: bytes
    joins: bool


def make_frames(payloads: Iterable[Payload], shard: int) -> Iterator[Frame]:
    """Number payloads and join neighbours of one output and route, whatever their order."""
    seq = size = 0
    pending: list[Payload] = []
    joins, of, to = False, 0, ""
    for payload in payloads:
        _, output, route, body, more = payload
        if pending and (
            not more or not joins or size >= MAX_JOINED_BYTES or output != of or route != to
        ):
            yield _join_payloads(pending, shard, seq)
            seq, pending, size = seq + 1, [], 0
        pending.append(payload)
        joins, of, to = more, output, route
        size += len(body)
    if pending:
        yield _join_payloads(pending, shard, seq)


def _join_payloads(payloads: list[Payload], shard: int, seq: int) -> Frame:
    first = payloads[0]
    bodies = [payload.body for payload in payloads]
    orders = [payload.order for payload in payloads]
    kind, whole = FrameKind.RESULT if first.output == RESULTS_OUTPUT else FrameKind.DATA, bodies
    if len(payloads) > 1 and orders.count(first.order) < len(orders):
        kind = FrameKind.MULTI_PART
        numbers = array("q", [len(payloads), *orders, *map(len, bodies)])
        whole = [numbers.tobytes(), *bodies]
    body = whole[0] if len(whole) == 1 else b"".join(whole)
    return Frame(kind, first.order, shard, seq, first.output, first.route, body)


def split_parts(frames: Iterable[Frame]) -> Iterator[Frame]:
    """Give frames of which none is in parts; the parts of one keep its number."""
    for frame in frames:
        if frame.kind != FrameKind.MULTI_PART:
            yield frame
            continue
        _, _, shard, seq, output, route, body = frame
        orders, cuts = _part_bounds(body)
        for order, (start, end) in zip(orders, pairwise(cuts), strict=True):
            part = body[start:end]
            yield Frame(FrameKind.DATA, order, shard, seq, output, route, part)


def sort_frames(frames: Iterable[Frame]) -> list[Frame]:
    """Return frames as they are delivered, none of which is in parts.

    Parts that no other frame of their output comes between are one frame: there may be a hundred
    thousand of them.
    """
    others: list[Frame] = []
    parts: dict[int, list[Frame]] = {}
    for frame in frames:
        if frame.kind == FrameKind.MULTI_PART:
            parts.setdefault(frame.output, []).append(frame)
        else:
            others.append(frame)
    between = {frame.output for frame in others if frame.kind == FrameKind.DATA}
    for output, some in parts.items():
        if output in between or len({frame.route for frame in some}) > 1:
            others += split_parts(some)
        else:
            others.append(_merge_parts(some))
    return sorted(others, key=itemgetter(slice(4)))


def _merge_parts(frames: list[Frame]) -> Frame:
    """Return the parts of frames of one output and route, in their order."""
    orders = array("q")
    bodies: list[bytes] = []
    for frame in sorted(frames, key=itemgetter(2, 3)):
        numbers, cuts = _part_bounds(frame.body)
        orders += numbers
        bodies += [frame.body[start:end] for start, end in pairwise(cuts)]
    # It is stable: parts of one order stay by the shard and the number of their frames.
    places = sorted(range(len(bodies)), key=orders.__getitem__)
    body = b"".join([bodies[place] for place in places])
    first = frames[0]
    return Frame(
        FrameKind.DATA, orders[places[0]], first.shard, first.seq, first.output, first.route, body
    )


def _part_bounds(body: bytes) -> tuple[array[int], Iterator[int]]:
    """Return the orders of the parts of a frame, and where they are cut."""
    count = int.from_bytes(body[:_INT_BYTES], sys.byteorder)
    numbers = array("q", body[_INT_BYTES : _INT_BYTES * (1 + 2 * count)])
    return numbers[:count], accumulate(numbers[count:], initial=_INT_BYTES * (1 + 2 * count))


class TaskReport:
    """Collects what the components of one task log and count.

    Attributes:
        execution: what the components are given.
        replay_rules: how its messages are given again.
        replay_rules_by_number: the same of those messages that others have taken in; by their
            numbers in `Execution.origins`.
        log_sender: says lines that are not to wait for the task's end.
        tracing: notes what the task does; None where nobody wants to know.
        owner: the path of the component that the task begins with; where it is empty, the task's
            time is not reported.
    """

    def __init__(
        self,
        level: str,
        now: Callable[[], int] = time.time_ns,
        *,
        strict: bool = False,
        log_address: str = "",
        tracing: TaskTrace | None = None,
        limits: Limits = DEFAULT_LIMITS,
        wait_budget: int = 0,
        replay_rules: ReplayRules = DEFAULT_REPLAY_RULES,
    ) -> None:
        """Begin; lines less severe than `level` are left out.

        `live` is a `TaskLogReceiver`'s address.
        `tracing` notes what the task does, where somebody wants to know. `limits` hold in this
        process from now on. `wait_budget` is how long it waits for outputs in all, ns; 0 for ever.
        `origins` says how the task's messages are given again.
        """
        set_limits(limits)
        self.replay_rules = replay_rules
        self.replay_rules_by_number: dict[int, ReplayRules] = {}
        self.owner = ""
        self._began = time.perf_counter_ns()
        self._name = uuid4().hex
        self._undelivered: list[bytes] = []
        self.tracing = tracing
        self._limit = LOG_LEVELS.get(level, 5 if level == "ALL" else -1)
        self._lines: list[tuple[str, str, Mapping[str, Any]]] = []
        self._left_out = 0
        self._repeats = RepeatCounter()
        self._counts: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
        self.log_sender = TaskLogSender(log_address, time.monotonic)
        self.execution = Execution(
            now, self._log, self._count, strict=strict, report_wait=self.log_sender.send
        )
        samples = SAMPLES_PER_COMPONENT.get()
        self.execution.sampler = Sampler(samples) if samples else None
        self.execution.failures = self._failures = FailureSampler()
        self.execution.read_counter = REPORTER.get()
        if wait_budget:
            self.execution.wait_budget = WaitBudget(wait_budget, self._hand_over)

    @classmethod
    def of(
        cls,
        plan: Plan,
        now: Callable[[], int] = time.time_ns,
        tracing: TaskTrace | None = None,
        replay_rules: ReplayRules = DEFAULT_REPLAY_RULES,
    ) -> TaskReport:
        """Begin as a plan says."""
        return cls(
            plan.level,
            now,
            strict=plan.strict,
            log_address=plan.task_log_address,
            tracing=tracing,
            limits=plan.limits,
            wait_budget=plan.wait_budget,
            replay_rules=replay_rules,
        )

    def _log(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        if LOG_LEVELS.get(level, 5) > self._limit:
            return
        if may_repeat(level, fields) and not self._repeats.count(level, text, fields):
            return
        if len(self._lines) < (
            MAX_CONFIG_LOG_LINES if "custom_source" in fields else MAX_LOG_LINES
        ):
            self._lines.append((level, text, fields))
        else:
            self._left_out += 1

    def _count(self, name: str, by: int = 1, **labels: str) -> None:
        self._counts[name, tuple(sorted(labels.items()))] += by

    def _hand_over(self, unsent: UnsentBatches) -> None:
        output, order, part = self.execution.wait_budget.place
        for some in cut_portions(unsent.batches, CHUNK_MESSAGES):
            for origins, batches in self._group_by_replay_rules(some):
                whole = UndeliveredBatches(
                    *(output, order, batches, unsent.text, unsent.place),
                    *(unsent.path, unsent.start, part),
                )
                given = self.execution.origins
                if given:
                    # What the config rejects of them later is made of the input's messages anew.
                    whole = whole._replace(task=self._name, origins=given, **origins._asdict())
                self._undelivered.append(encode_undelivered(whole))

    def _group_by_replay_rules(
        self, batches: Sequence[Batch]
    ) -> Iterator[tuple[ReplayRules, list[Batch]]]:
        """Cut batches, in order, where those begin that are given again in another way."""

        def origins(batch: Batch) -> ReplayRules:
            number = origin_number_of(batch[0], self.execution.origins) if batch else None
            return self.replay_rules_by_number.get(
                -1 if number is None else number, self.replay_rules
            )

        for rules, some in groupby(batches, key=origins):
            yield rules, [*some]

    def log_body(self) -> bytes | None:
        """Return the lines as JSON, or None when there are none."""
        if self._left_out:
            text = f"{self._left_out} more log lines of this micro-batch are left out"
            self._lines.append(("WARN", text, {}))
            self._left_out = 0
        # Fields may hold any value of a mapping, such as an integer beyond 64 bits.
        lines = [[*line[:2], self._add_repeats(*line)] for line in self._lines]
        return dump_json(lines) if lines else None

    def _add_repeats(self, level: str, text: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        number = self._repeats.repeats(level, text, fields) if may_repeat(level, fields) else 0
        return {**fields, REPEATED: number} if number > 0 else dict(fields)

    def count_body(self) -> bytes | None:
        """Return the counts as JSON, or None when there are none."""
        counts = [[name, by, dict(labels)] for (name, labels), by in self._counts.items()]
        for (begins, label, path), tally in self.execution.component_stats.items():
            labels = {"label": label, "path": path}
            counts += [[f"{begins}_{name}", by, labels] for name, by in tally.iter_counts()]
        figures = self.execution.custom_metrics
        counts += [[name, by, dict(labels)] for (name, labels), by in figures.counts.items()]
        gauges = figures.gauges.items()
        counts += [[name, value, dict(labels), GAUGE_MARK] for (name, labels), value in gauges]
        peaks = figures.peaks.items()
        counts += [[name, value, dict(labels), PEAK_MARK] for (name, labels), value in peaks]
        return orjson.dumps(counts) if counts else None

    def timing_body(self) -> bytes | None:
        """Return how long components took as JSON, or None when none was timed."""
        timings = [
            [f"{begins}_latency_ns", tally.elapsed, tally.buckets, {"label": label, "path": path}]
            for (begins, label, path), tally in self.execution.component_stats.items()
            if tally.buckets
        ]
        timings += [
            [name, tally.elapsed, tally.buckets, dict(labels)]
            for (name, labels), tally in self.execution.custom_metrics.times.items()
        ]
        return orjson.dumps(timings, option=orjson.OPT_NON_STR_KEYS) if timings else None

    def time_body(self) -> bytes | None:
        """Return how long the task took, as JSON; None where nobody wants to know."""
        if not self.owner:
            return None
        took = time.perf_counter_ns() - self._began
        return task_times(self.owner, took, self.execution).to_json()

    def span_body(self) -> bytes | None:
        """Return what the task did and when as JSON, or None when nobody wants to know."""
        if self.tracing is None:
            return None
        return dump_json(self.tracing.to_json(self.execution, time.time_ns()))

    def take_rejected(self) -> list[RejectedMessages]:
        """Return the messages that outputs have rejected; answer requests that wait for them."""
        return list(
            collect_rejected(self.execution, self.replay_rules, self.replay_rules_by_number)
        )

    def sample_body(self) -> bytes | None:
        """Return the samples of messages as JSON, or None when there are none."""
        sampler = self.execution.sampler
        if sampler is None or not sampler.samples:
            return None
        components = sampler.samples.items()
        return dump_json([[label, path, samples] for (_, label, path), samples in components])

    def frames(self) -> Iterator[tuple[FrameKind, bytes]]:
        """Return the bodies that there are, each with the kind of frame that it is for."""
        ex = self.execution
        for rejected in encode_rejected(self.take_rejected()):
            yield FrameKind.REJECTED, rejected
        for kind, body in (
            (FrameKind.LOG, self.log_body()),
            (FrameKind.COUNT, self.count_body()),
            (FrameKind.TIMING, self.timing_body()),
            (FrameKind.TASK_TIME, self.time_body()),
            (FrameKind.ANSWER, encode_replies(ex.answers, ex.refusals)),
            (FrameKind.SPAN, self.span_body()),
            (FrameKind.SAMPLE, self.sample_body()),
            (FrameKind.FAILED, self._failures.encode_samples()),
        ):
            if body is not None:
                yield kind, body
        for undelivered in self._undelivered:
            yield FrameKind.UNDELIVERED, undelivered
