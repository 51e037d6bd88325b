"""Deliver a micro-batch's frames on the driver: write, log, count, remember the shards' status."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

import orjson

from streamer.core.durations import SECOND
from streamer.core.log_format import LogLine
from streamer.engine.driver.commit_counts import CountingWriter
from streamer.engine.driver.delivery_description import describe_delivery
from streamer.engine.driver.delivery_setup import (
    DeliveredStream,
    DeliveryClocks,
    DeliveryListeners,
    DeliveryRecord,
    DeliverySinks,
)
from streamer.engine.driver.file_routes import RefusedRoutesError
from streamer.engine.driver.redelivery_queue import RedeliveryQueue
from streamer.engine.driver.rejected_frames import (
    collect_answers,
    collect_rejections,
    make_rejected_error,
    make_unwritten,
)
from streamer.engine.driver.rejections import Rejections
from streamer.engine.driver.writers import Writer
from streamer.engine.report.batch_times import BatchTimes, TaskTimes
from streamer.engine.report.batch_work import BatchWork, TaskWork, combine_tasks
from streamer.engine.report.metric_labels import Labels
from streamer.engine.report.rejected_messages import RejectedMessages
from streamer.engine.report.repeated_lines import RepeatedLines
from streamer.engine.report.result_frame import Frame, FrameKind, sort_frames
from streamer.engine.report.spans import BatchTrace, Span, TaskSpan
from streamer.engine.report.stream_metrics import EVENT_TIME, Snapshot, StreamMetrics, series_key
from streamer.engine.report.trouble import take_sample
from streamer.engine.report.window_metrics import count_closed_windows
from streamer.engine.report.window_tap import WindowTap
from streamer.sdk.backoff import REDELIVER
from streamer.window.settings.window import Window

FIRST_WAIT_S, MAX_WAIT_S, MAX_SILENCE_S = 0.5, 30.0, 60.0

DURATION_METRIC: Final = "batch_duration_seconds"
WAITING_METRIC: Final = "output_rejected_waiting"
LAG_METRIC: Final = "event_time_lag_seconds"
_NO_STREAM: Final = DeliveredStream()
_NO_SINKS: Final = DeliverySinks()
_NO_LISTENERS: Final = DeliveryListeners()
_EVENT_TIME: Final = series_key(EVENT_TIME, {})


class DeliveryStoppedError(Exception):
    """The output kept failing until a stop was requested; the micro-batch replays."""


class Delivery:
    """Takes micro-batches one after another.

    Attributes:
        statuses: the newest status of each shard, as stage 2 gave it.
        metrics: what was counted and timed since the start.
        trace: called with each micro-batch that was delivered; None where nobody traces them.
        window_tap: receives the results of windows too; None for nobody.
        rejected_batches: micro-batches of which messages were rejected, while nothing was sent
            since this was made.
        rejected_reason: why, as of the newest of them.
        times: of the newest micro-batch.
    """

    def __init__(
        self,
        writers: Sequence[Writer],
        log: LogLine,
        stopping: Callable[[], bool],
        *,
        stream: DeliveredStream = _NO_STREAM,
        sinks: DeliverySinks = _NO_SINKS,
        listeners: DeliveryListeners = _NO_LISTENERS,
        clocks: DeliveryClocks | None = None,
        record: DeliveryRecord | None = None,
    ) -> None:
        """Set up.

        Args:
            writers: by the number of the output.
            log: takes log lines.
            stopping: whether to give up on an output that fails.
            stream: whose micro-batches these are.
            sinks: where all goes that the writers do not take.
            listeners: hear of each micro-batch.
            clocks: the clocks; those of the machine when None.
            record: of the deliveries before, which this one continues; None for a new one.
        """
        self._writers = writers
        self._log = log
        self._stopping = stopping
        self._stream = stream
        delays = [one.expire_delay for one in (stream.window, *stream.windows.values()) if one]
        self._expire_delay = min((one for one in delays if one is not None), default=None)
        self._sinks = sinks
        self._listeners = listeners
        self._clocks = clocks = clocks or DeliveryClocks()
        self._record = record or DeliveryRecord(StreamMetrics(clocks.now))
        self._task_lines = RepeatedLines(log, clocks.now)
        self.metrics, self.statuses = self._record.metrics, self._record.statuses
        self.trace: Callable[[BatchTrace], None] | None = None
        self.window_tap: WindowTap | None = None
        self.rejected_batches, self.rejected_reason = 0, ""
        self.times = BatchTimes()
        self._waited = 0
        self._has_sent = False
        self._connected: set[int] = set()
        self._refused_writes: list[RejectedMessages] = []
        self._written: list[Span] = []
        if sinks.rejections is not None:
            sinks.rejections.attach(
                lambda name, labels, by=1: self.metrics.count(name, labels, by),
                lambda messages: self.metrics.set(WAITING_METRIC, {}, messages),
                self.absorb_frames,
            )

    @property
    def batch(self) -> int:
        """The newest micro-batch that was delivered; -1 before the first."""
        return self._record.batch

    def deliver(self, batch: int, frames: Sequence[Frame], began: float | None = None) -> None:
        """Deliver one micro-batch.

        Args:
            batch: its number.
            frames: what its tasks made.
            began: when its messages were begun to be read, by the clock; now when it is None.

        A failing output is tried again, with growing pauses, for as long as the program runs: that
        is the back pressure which everything upstream feels.

        Raises:
            DeliveryStoppedError: the program is to stop, and the output still fails.
            RejectedError: a message must not be delivered, and nobody takes it; nothing is written.
        """
        if self._sinks.rejections is not None:
            self._wait_for_capacity(self._sinks.rejections)
            frames = [*frames, *self._sinks.rejections.take_writes(batch)]
        ordered = sort_frames(frames)
        self._log_frames(ordered, {"micro_batch": batch})
        self._written, self._refused_writes, self._waited = [], [], 0
        self.times = BatchTimes(
            [TaskTimes.from_json(one.body) for one in ordered if one.kind == FrameKind.TASK_TIME]
        )
        # Only windows that may expire need to know how long it takes.
        expires = self._expire_delay is not None
        clocks, running = self._clocks, self._clocks.running
        with running.measure() if expires else nullcontext():
            writing, mark, began_at = clocks.now(), running.mark(), time.monotonic_ns()
            if any(frame.kind == FrameKind.UNDELIVERED for frame in ordered):
                ordered = sort_frames(self._redeliver(batch, ordered))
            answers, refusals = collect_answers(ordered)
            rejected = [*collect_rejections(ordered, answers, refusals)]
            self._report_failures(batch, ordered, rejected)
            if rejected and self._sinks.rejections is None:
                raise make_rejected_error(rejected)
            self._write_outputs(batch, ordered)
            self._keep_results(batch, ordered)
            self._take_rejected(batch, [*rejected, *self._refused_writes])
            delivery = max(running.since(mark) - self._waited, 0)
        took = clocks.now() - writing
        began = writing if began is None else began
        statuses = _read_statuses(ordered)
        # A micro-batch whose commit failed after its delivery comes again, and counts once.
        if batch != self.batch:
            sent = self._add_metrics(ordered, began)
            self._count_rejected_batches(sent, [*rejected, *self._refused_writes])
            self._count_closed_windows(statuses.values())
        if answers:
            self._listeners.on_answers(answers, refusals)
        self._pass_samples(ordered)
        self.statuses.update(statuses)
        self._report_trace(batch, ordered, clocks.now() - began)
        self._record.batch = batch
        self._report_work(ordered, statuses, began_at, delivery)
        self._listeners.on_status(self.statuses)
        now = Snapshot.of(self.statuses.values(), self.metrics.counts, self.batch)
        fields = describe_delivery(now, self.statuses, ordered, took)
        self._log("DEBUG", "Delivered a micro-batch", fields)

    def _report_failures(
        self, batch: int, frames: Sequence[Frame], rejected: Sequence[RejectedMessages]
    ) -> None:
        """Report failed messages at once: the micro-batch may never be committed."""
        samples = [frame.body for frame in frames if frame.kind == FrameKind.FAILED]
        if samples or rejected:
            self._listeners.on_failures(batch, self._clocks.wall_clock(), samples, rejected)

    def _pass_samples(self, frames: Sequence[Frame]) -> None:
        for frame in frames:
            if frame.kind == FrameKind.SAMPLE:
                self._listeners.on_samples(frame.body, self._clocks.wall_clock())

    def _count_closed_windows(self, statuses: Iterable[Mapping[str, Any]]) -> None:
        """Count the windows that have closed, by the buffer that they are of."""
        windows: Mapping[str, Window | None] = self._stream.windows or {"": self._stream.window}
        for label, window in windows.items():
            mine = [one for one in statuses if one.get("buffer", "") == label]
            labels = self._stream.endpoint_labels.buffers.get(label, {})
            count_closed_windows(self.metrics, window, mine, self._clocks.wall_clock, labels)

    def absorb_frames(self, frames: Sequence[Frame]) -> None:
        """Log, count and time what was done beside the micro-batches."""
        self._log_frames(frames, {})
        for frame in frames:
            if frame.kind == FrameKind.COUNT:
                self.metrics.add_counts(frame.body)
            elif frame.kind == FrameKind.TIMING:
                self.metrics.add_timings(frame.body)

    def _log_frames(self, frames: Sequence[Frame], more: Mapping[str, Any]) -> None:
        for frame in frames:
            if frame.kind == FrameKind.LOG:
                for level, text, fields in orjson.loads(frame.body):
                    # What a config says itself is said as it wants it.
                    extra = {} if "custom_source" in fields else more
                    self._task_lines.write(level, text, {**extra, **fields})
        self._task_lines.flush()

    def _redeliver(self, batch: int, frames: Sequence[Frame]) -> list[Frame]:
        """Send what tasks could not deliver until all of it is sent; return frames without it.

        Raises:
            DeliveryStoppedError: the program is to stop before it is.
        """
        if self._sinks.resend is None:
            raise RuntimeError("frames of kind UNDELIVERED, and nothing that sends them again")
        backlog = RedeliveryQueue(frames)
        made = [frame for frame in frames if frame.kind != FrameKind.UNDELIVERED]
        pauses = REDELIVER.pauses()
        logged_at, silence = -MAX_SILENCE_S, FIRST_WAIT_S
        progress, tries = False, 1
        while (first := backlog.first) is not None:
            text, began = f"Output blocked: {first.text}", self._clocks.now()
            pause = 0.0 if progress else next(pauses) / SECOND
            self._listeners.on_trouble(text, first.place)
            sample = take_sample(first.batches[0][0].raw) if any(first.batches[:1]) else ""
            self._listeners.on_wait(tries, pause, backlog.count_messages(), sample)
            if self._clocks.now() >= logged_at + silence:
                self._log("ERROR", text, {**first.place, "micro_batch": batch})
                logged_at, silence = self._clocks.now(), min(silence * 2, MAX_SILENCE_S)
            self._pause(pause)
            if self._stopping():
                raise DeliveryStoppedError(first.text)
            portion = backlog.take()
            mark = self._clocks.running.mark()
            resent = sort_frames(self._sinks.resend(portion, batch))
            # What it waits for beside the try is a core, or other streams that are blocked.
            self._waited += self._clocks.running.since(mark) - _resend_time_ns(resent)
            self._log_frames(resent, {"micro_batch": batch})
            for frame in resent:
                if frame.kind == FrameKind.COUNT:
                    # Who looks at the figures meanwhile is to see that the output fails.
                    self.metrics.add_counts(frame.body)
                elif frame.kind not in (FrameKind.UNDELIVERED, FrameKind.WORK):
                    made.append(frame)
            waited = self._clocks.now() - began
            self.times.add_seconds(first.place.get("path", ""), 0.0, waited)
            progress = backlog.put_back(portion, resent)
            tries = 1 if progress else tries + 1
            if progress:
                pauses = REDELIVER.pauses()
        return made

    def _pause(self, seconds: float) -> None:
        """Sleep, no longer than until the program is to stop."""
        while seconds > 0 and not self._stopping():
            self._clocks.sleep(min(seconds, 0.25))
            seconds -= 0.25

    def _report_work(
        self,
        frames: Sequence[Frame],
        statuses: Mapping[int, Mapping[str, Any]],
        began: int,
        delivery: int,
    ) -> None:
        """Report how long the micro-batch was in hand, where windows may expire for it."""
        if (expire_delay := self._expire_delay) is None or not statuses:
            return
        tasks = [TaskWork.from_json(frame.body) for frame in frames if frame.kind == FrameKind.WORK]
        took = combine_tasks(tasks, max(self._stream.parallel_tasks(), 1))
        at = max(status["now"] for status in statuses.values())
        work = BatchWork(at, began, *took, delivery)
        if work.total > expire_delay:
            self._listeners.on_work(work)

    def _wait_for_capacity(self, rejections: Rejections) -> None:
        """Take no further messages while as many rejected ones wait as can be kept."""
        is_logged = False
        while rejections.is_full:
            oldest = rejections.oldest()
            fields = {} if oldest is None else oldest.labels
            text = (
                f"{rejections.messages} rejected messages wait, and no more can be kept: fix the "
                f"cause of the rejections, put the output into a fallback, or set "
                f"auto_replay_nacks to false"
            )
            if not is_logged:
                self._log("ERROR", text, fields)
                is_logged = True
            self._listeners.on_trouble(text, fields)
            if self._stopping():
                raise DeliveryStoppedError(text)
            rejections.tick()
            self._clocks.sleep(0.25)

    def _take_rejected(self, batch: int, rejected: Sequence[RejectedMessages]) -> None:
        rejections = self._sinks.rejections
        if rejections is None:
            return
        counts = batch != self.batch
        self._retry_until_done(
            lambda: rejections.keep_rejected(batch, rejected, counts=counts),
            "keep rejected messages in the checkpoint",
            {**self._stream.endpoint_labels.state, "micro_batch": batch},
        )

    def _count_rejected_batches(self, sent: int, rejected: Sequence[RejectedMessages]) -> None:
        """Count the micro-batches that were rejected for as long as nothing was sent."""
        self._has_sent = self._has_sent or sent > 0
        if self._has_sent:
            self.rejected_batches = 0
        elif rejected:
            self.rejected_batches += 1
            self.rejected_reason = " ".join(rejected[0].text.split())

    def _add_metrics(self, frames: Sequence[Frame], began: float) -> int:
        """Add what the tasks have counted and timed; their messages are dealt with now.

        Returns:
            How many messages outputs have taken.
        """
        metrics = self.metrics
        named: Counter[str] = Counter()
        buffers = self._stream.endpoint_labels.buffers.values()
        keys = [series_key("buffer_sent", labels) for labels in buffers]
        before = [metrics.counts[key] for key in keys]
        for frame in frames:
            if frame.kind == FrameKind.COUNT:
                named.update(metrics.add_counts(frame.body))
            elif frame.kind == FrameKind.TIMING:
                metrics.add_timings(frame.body)
        took = round((self._clocks.now() - began) * 1e9)
        metrics.time(DURATION_METRIC, {}, took)
        event_time = metrics.peaks.pop(_EVENT_TIME, None)
        if event_time is not None:
            lag = max(self._clocks.wall_clock() - event_time, 0)
            metrics.set(LAG_METRIC, {}, round(lag / SECOND, 3))
        if named["input_received"] or named["buffer_received"]:
            metrics.time("input_latency_ns", self._stream.endpoint_labels.input, took)
        for labels, key, count in zip(buffers, keys, before, strict=True):
            if metrics.counts[key] > count:
                metrics.time("buffer_latency_ns", labels, took)
        if named["buffer_sent"] and not keys and self._stream.endpoint_labels.buffer is not None:
            metrics.time("buffer_latency_ns", self._stream.endpoint_labels.buffer, took)
        return named["output_sent"]

    def _keep_results(self, batch: int, frames: Sequence[Frame]) -> None:
        """Keep the results of windows, once the outputs have them."""
        if self.window_tap is not None:
            self.window_tap.take_results(batch, frames)
        keeper = self._sinks.results
        if keeper is None:
            return
        portions = [frame.body for frame in frames if frame.kind == FrameKind.RESULT]
        statuses = [orjson.loads(f.body) for f in frames if f.kind == FrameKind.STATUS]
        now = max((status["now"] for status in statuses), default=0)
        if now:
            self._retry_until_done(
                lambda: keeper.write(batch, portions, now),
                "keep the results of windows",
                {**self._stream.endpoint_labels.state, "micro_batch": batch},
            )

    def _write_outputs(self, batch: int, frames: Sequence[Frame]) -> None:
        for number, writer in enumerate(self._writers):
            mine = [f for f in frames if f.kind == FrameKind.DATA and f.output == number]
            self._write_output(number, writer, batch, mine)

    def _write_output(
        self, number: int, writer: Writer, batch: int, frames: Sequence[Frame]
    ) -> None:
        count = self.metrics.count
        place = (
            self._stream.endpoint_labels.outputs[number]
            if number < len(self._stream.endpoint_labels.outputs)
            else {}
        )

        def count_failure() -> None:
            count("output_error", place)
            lost = number in self._connected
            count("output_connection_lost" if lost else "output_connection_failed", place)
            self._connected.discard(number)

        def write() -> None:
            try:
                writer.write(batch, frames)
            except RefusedRoutesError as error:
                # All others are written.
                self._refused_writes += [make_unwritten(place, *one) for one in error.refused]

        first_try = self._clocks.now()
        began = self._retry_until_done(
            write, "write to the output", {**place, "micro_batch": batch}, count_failure
        )
        if frames and isinstance(writer, CountingWriter):
            for name, by in writer.take_counts(batch).items():
                count(name, place, by)
        writing = self._clocks.now() - began
        self.times.add_seconds(place.get("path", ""), writing, began - first_try)
        if number not in self._connected:
            self._connected.add(number)
            count("output_connection_up", place)
        if frames:
            took = round(writing * 1e9)
            self.metrics.time("output_latency_ns", place, took)
            self._note_span(place, took, frames)

    def _note_span(self, place: Labels, took: int, frames: Sequence[Frame]) -> None:
        """Note what was written, for whoever traces micro-batches."""
        if self.trace is not None:
            now = self._clocks.wall_clock()
            attributes = {"bytes": sum(len(frame.body) for frame in frames)}
            label, path = place.get("label", ""), place.get("path", "")
            self._written.append(Span("output", label, path, now - took, now, attributes))

    def _report_trace(self, batch: int, frames: Sequence[Frame], took: float) -> None:
        """Report a micro-batch, if there is a listener."""
        if self.trace is None:
            return
        now = self._clocks.wall_clock()
        tasks = [
            TaskSpan.from_json(orjson.loads(frame.body))
            for frame in frames
            if frame.kind == FrameKind.SPAN
        ]
        began = min([now - round(took * 1e9), *(task.span.began for task in tasks)])
        self.trace(BatchTrace(batch, began, now, tasks, self._written, {}))

    def _retry_until_done(
        self,
        work: Callable[[], None],
        what: str,
        fields: Mapping[str, Any],
        on_failure: Callable[[], None] = lambda: None,
    ) -> float:
        """Do something until it succeeds, with growing pauses; return when that was begun.

        Args:
            work: what is done.
            what: what that is, in words.
            fields: which component it is of, and in which micro-batch.
            on_failure: called each time that it has failed.
        """
        wait = FIRST_WAIT_S
        while True:
            began = self._clocks.now()
            try:
                work()
                return began
            except BrokenPipeError:
                raise
            except OSError as e:
                on_failure()
                if self._stopping():
                    raise DeliveryStoppedError(str(e)) from e
                text = f"Failed to {what}: {e}"
                self._listeners.on_trouble(
                    text, {k: v for k, v in fields.items() if k != "micro_batch"}
                )
                self._log("ERROR", f"{text}; trying again", fields)
            self._pause(wait)
            wait = min(wait * 2, MAX_WAIT_S)


def _resend_time_ns(frames: Iterable[Frame]) -> int:
    """Return how long tries to send again have taken by themselves, ns."""
    tasks = (TaskWork.from_json(frame.body) for frame in frames if frame.kind == FrameKind.WORK)
    return sum(task.outputs for task in tasks)


def _read_statuses(frames: Iterable[Frame]) -> dict[int, Any]:
    """Return the statuses that shards have reported, by shard."""
    statuses = (frame for frame in frames if frame.kind == FrameKind.STATUS)
    return {frame.shard: orjson.loads(frame.body) for frame in statuses}
