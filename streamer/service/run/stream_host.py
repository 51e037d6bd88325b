"""Place of a run for its streams: it makes one after another, on one checkpoint and one Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamer.core.log_format import LogLine
from streamer.engine.report.start_progress import StartPhase
from streamer.plan import Plan
from streamer.service.monitoring.plugin_exports import PluginTracer
from streamer.service.monitoring.stream_view import StreamView
from streamer.service.monitoring.tracing import BatchTracer
from streamer.service.run.run_recorder import RunRecorder

if TYPE_CHECKING:
    from streamer.spark.checkpoint.checkpoint import Checkpoint
    from streamer.spark.query.input_session import InputSession
    from streamer.spark.query.stream import Stream


class StreamHost:
    """Host of the streams of a run.

    Attributes:
        checkpoint: theirs.
        session: of Spark; None before that has started.
        overlay: what shares a terminal with the standard output.
        current_stream: the stream that was made last; None before the first.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        log: LogLine,
        view: StreamView,
        tracer: BatchTracer | PluginTracer | None,
        recorder: RunRecorder,
    ) -> None:
        """Begin without a stream.

        Args:
            checkpoint: of the run.
            log: takes log lines.
            view: hears of the start.
            tracer: exports micro-batches; None for nothing.
            recorder: records the figures of micro-batches.
        """
        self.checkpoint = checkpoint
        self.session: Any = None
        self.overlay: Any = None
        self.current_stream: Stream | None = None
        self._log = log
        self._view = view
        self._tracer = tracer
        self._recorder = recorder

    @property
    def stream(self) -> Stream:
        """The stream that was made last."""
        assert self.current_stream is not None
        return self.current_stream

    def make_stream(
        self, plan: Plan, input_session: InputSession | None = None, drain_limit: Any = None
    ) -> Stream:
        """Make a stream, which is `stream` from now on; see `Stream`."""
        from streamer.spark.query.input_session import ProcessEnds
        from streamer.spark.query.stream import Stream

        self.current_stream = stream = Stream(
            plan,
            self.checkpoint,
            self._log,
            ProcessEnds(
                overlay=self.overlay,
                endpoints=self._view.endpoints,
                failed_messages=self._view.failed_messages,
            ),
            input_session,
            drain_limit,
            progress=self._view.start,
        )
        if self._tracer is not None:
            stream.run.delivery.trace = self._tracer.trace_batch
        self._recorder.attach(stream)
        return stream

    def start_query(self, stream: Stream) -> None:
        """Start the query of a stream that was made."""
        progress = self._view.start
        progress.begin(StartPhase.QUERY)
        stream.start(self.session)
        progress.begin(StartPhase.FIRST_BATCH)
