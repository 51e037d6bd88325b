"""The open input of a stream, and what was counted of it: both outlive a redeploy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from streamer.core.log_format import LogLine
from streamer.engine.driver.delivery_setup import DeliveryRecord
from streamer.engine.driver.input_host import InputHost
from streamer.engine.driver.writers import Overlay
from streamer.engine.planner.checkpoint_path import Location
from streamer.engine.planner.followed_stream import FollowedStream
from streamer.engine.planner.kafka_inputs import StreamKafkaInput, split_kafka_inputs
from streamer.engine.report.failed_messages import FailedMessages
from streamer.engine.report.message_samples import MessageSamples
from streamer.engine.report.metric_labels import EndpointLabels
from streamer.engine.report.stream_metrics import StreamMetrics
from streamer.engine.report.window_history import WindowHistory
from streamer.engine.report.window_questions import WindowQuestions
from streamer.plan import Plan
from streamer.plan.used_plugins import describe_plugin_changes
from streamer.plan.uses_sync_response import gives_replies, is_answered
from streamer.sdk.input.replayable import ReplayableSource
from streamer.sdk.sync_response import PendingRequests
from streamer.spark.checkpoint.checkpoint import Checkpoint
from streamer.spark.checkpoint.local_state_check import check_local_state
from streamer.spark.checkpoint.spool_check import open_checked_input


@dataclass(frozen=True, slots=True)
class ProcessEnds:
    """Objects of the process that a stream shares.

    Attributes:
        read_stdin: reads up to so many bytes of the standard input, b"" at its end; None for the
            process's own.
        overlay: what shares a terminal with the standard output.
        endpoints: the stream's HTTP server, for components that are served there.
        failed_messages: takes samples of failed messages.
    """

    read_stdin: Callable[[int], bytes] | None = None
    overlay: Overlay | None = None
    endpoints: Any = None
    failed_messages: FailedMessages = field(default_factory=FailedMessages)


class InputSession:
    """An input from its start to its end; streams of one checkpoint take it over from each other.

    Attributes:
        host: what the input runs in.
        pending_requests: requests that wait for their answer.
        meters: the counters and timings since the input was opened.
        tap: samples of messages.
        failed_messages: samples of those that have failed.
        recent: what is remembered of windows.
        window_questions: what is asked about open windows.
        last_delivery: when the newest micro-batch was delivered, Unix s; None before the first.
        source: the input without what Spark reads with sources of its own, once it is open.
        kafka_inputs: the Kafka inputs, whoever reads them.
        follows: the stream whose micro-batches are repeated; None for a stream of its own.
        follower: Spark's checkpoint of a stream that repeats these micro-batches, for which the
            input keeps its messages; empty for none.
    """

    source: ReplayableSource
    kafka_inputs: list[StreamKafkaInput]
    follows: FollowedStream | None = None
    follower: str = ""

    def __init__(self, plan: Plan, checkpoint: Checkpoint, log: LogLine, ends: ProcessEnds) -> None:
        """Make ready for an input, which is not opened yet.

        Args:
            plan: the plan of the stream that opens it.
            checkpoint: keeps what the input has received, and what it remembers.
            log: takes log lines.
            ends: of the process.
        """
        self._checkpoint = checkpoint
        self._log = log
        self._labels = EndpointLabels.of(plan).input
        self.pending_requests = PendingRequests()
        self.pending_requests.needs_replies = gives_replies(plan)
        self.meters = StreamMetrics()
        self.tap = MessageSamples()
        self.failed_messages = ends.failed_messages
        self.recent = WindowHistory()
        self.window_questions = WindowQuestions()
        self.last_delivery: float | None = None
        self._records: dict[str, DeliveryRecord] = {}
        self._is_open = False
        known = checkpoint.read_record().get("inputs", {})
        self.host = host = InputHost(
            checkpoint.spool, known, log, self.count, threading.Event(), ends.read_stdin
        )
        host.spool_limit, host.limits = plan.spool_limit, plan.limits
        host.local = plan.master.startswith("local")
        host.answers = self.pending_requests if is_answered(plan) else None
        host.endpoints = ends.endpoints

    @property
    def holds_requests(self) -> bool:
        """Whether the input holds requests open until they are answered."""
        return self.host.answers is not None

    def open(self, plan: Plan) -> None:
        """Open the input.

        Raises:
            StreamerError: it cannot be opened.
        """
        source: Any = plan.context().build(plan.input)
        opened = open_checked_input(self._checkpoint, source, self.host.root_context(), self._log)
        check_local_state(self._checkpoint, plan, self._log)
        self._source, self._is_open = opened, True
        self._split(plan)

    def follow(self, source: ReplayableSource, stream: FollowedStream) -> None:
        """Take the open input of another stream in place of one's own, and its micro-batches.

        Nothing is received, committed or answered here: that is done by the other stream alone.

        Args:
            source: the input as that stream reads it, with its Kafka inputs in it.
            stream: that one.
        """
        self.source, self.kafka_inputs, self.follows = source, [], stream
        self.host.answers = None

    def _split(self, plan: Plan) -> None:
        self.source, self.kafka_inputs = split_kafka_inputs(self._source)

    def bind(self, plan: Plan) -> None:
        """Serve the stream of a plan: the checkpoint keeps what the input remembers by it.

        Raises:
            CheckpointError: it cannot.
        """
        self._labels = EndpointLabels.of(plan).input
        if self._is_open:
            self._split(plan)
        plugins = dict(plan.plugins)
        before = self._checkpoint.read_record().get("plugins", {})
        for change in describe_plugin_changes(before, plugins):
            self._log("INFO", f"A plugin has changed: {change}", {})
        save: Callable[[Mapping[str, Any]], None] = partial(
            self._checkpoint.bind, plan.fingerprint, plugins=plugins
        )
        save(self.host.remembered)
        self.host.save = save

    def record_of(self, state: Location) -> DeliveryRecord:
        """Return the record of what was delivered of windows' state in a checkpoint of Spark's."""
        return self._records.setdefault(str(state), DeliveryRecord(self.meters))

    def count(self, name: str, by: int = 1, **labels: str) -> None:
        """Add to a counter of the input."""
        self.meters.count(name, {**self._labels, **labels}, by)

    def set_gauge(self, name: str, labels: Mapping[str, str], value: float | None) -> None:
        """Set a gauge of the input."""
        self.meters.set(name, {**self._labels, **labels}, value)

    def finish(self) -> None:
        """After the end of a bounded input, when all is written: the next start begins anew."""
        self.host.stop()
        self._source.on_finished()
