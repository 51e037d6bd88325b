"""Recorder of a run: feeds the figures from its streams, and keeps them in the checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from streamer.config import Config
from streamer.core.log_format import LogLine
from streamer.engine.report.clock_blame import ClockBlame
from streamer.plan import Plan
from streamer.plan.plan import count_cores
from streamer.service.monitoring.history_file import FILE_NAME, load_history, save_history
from streamer.service.monitoring.stream_figures import MarkerKind, StreamFigures
from streamer.service.run.decision_recorder import DecisionRecorder
from streamer.service.run.figure_recorder import DeliveredBatch, FigureRecorder, planned_at

if TYPE_CHECKING:
    from streamer.spark.checkpoint.checkpoint import Checkpoint
    from streamer.spark.query.stream import Stream

SAVE_INTERVAL_S: Final = 60.0


class RunRecorder:
    """Records what a run's streams do. A fault in here never ends a micro-batch."""

    def __init__(
        self,
        figures: StreamFigures,
        plan: Plan,
        checkpoint: Checkpoint,
        log: LogLine,
        config: Config | None = None,
    ) -> None:
        """Load what an earlier run has left.

        Args:
            figures: what is fed.
            plan: what runs.
            checkpoint: keeps them.
            log: takes log lines.
            config: of the plan, whose secrets are not recorded; None for one without any.
        """
        self._figures = figures
        self._checkpoint = checkpoint
        self._log = log
        self._recorder = FigureRecorder(figures, plan)
        self._decisions = DecisionRecorder(plan, checkpoint, log, config)
        self._file = checkpoint.directory / FILE_NAME
        self._saved_at = figures.clock()
        self._has_failed = False
        reason = load_history(self._file, checkpoint.identity, figures)
        if reason:
            text = f"The history of figures in {self._file} is left out: {reason}"
            log("WARN", f"{text}; the charts begin anew", {})

    @property
    def clock_blames(self) -> Mapping[str, ClockBlame]:
        """The source or key that holds the clock of each buffer back, by the buffer's label."""
        return dict(self._decisions.blames)

    def use_plan(self, plan: Plan, config: Config | None = None) -> None:
        """Have the components of a plan that was deployed, and the secrets of its config."""
        self._recorder.use_plan(plan)
        self._decisions.use_plan(plan, config)

    def attach(self, stream: Stream) -> None:
        """Record the micro-batches of a stream that was made."""
        run = stream.run
        self._recorder.begin(stream.meters)

        def record(began: float, computed: float, delivered: float) -> None:
            delivery = run.delivery
            hints = run.signals
            self._recorder.record(
                DeliveredBatch(
                    planned_at(delivery.statuses),
                    began,
                    computed,
                    delivered,
                    run.snapshot(),
                    dict(delivery.metrics.counts),
                    delivery.times,
                    hints.driver.read().tasks or count_cores(run.plan.master),
                    hints.planner.read().backlog,
                )
            )

        def decide(delivered: float) -> None:
            delivery = run.delivery
            self._decisions.record(delivery.batch, delivery.statuses.values(), delivered)

        def record_all(began: float, computed: float, delivered: float) -> None:
            self._guard(lambda: record(began, computed, delivered))
            self._guard(lambda: decide(delivered))

        run.on_delivered = record_all

    def tick(self, stream: Stream, backlog: int | None) -> None:
        """Note that time has passed; now and then, save what there is.

        Args:
            stream: runs now.
            backlog: messages that wait at the input; None when nobody knows.
        """
        blocked_by = stream.trouble.place.get("path", "") if stream.trouble.text else ""
        is_in_hand = bool(backlog) or stream.batch_meter.current_progress() is not None
        counts = dict(stream.meters.counts) if blocked_by else {}
        gauges = {} if stream.has_outage else stream.meters.counts
        self._guard(lambda: self._recorder.tick(is_in_hand, blocked_by, counts, gauges))
        if abs(self._figures.clock() - self._saved_at) >= SAVE_INTERVAL_S:
            self.save()

    def mark(self, kind: MarkerKind, text: str = "") -> None:
        """Note that something has happened."""
        self._figures.mark(kind, text)

    def mark_start(self) -> None:
        """Note that the stream starts, or starts again."""
        is_first = not self._figures.markers()
        self.mark(MarkerKind.START if is_first else MarkerKind.RESTART)

    def close(self) -> None:
        """End: nothing flows any more."""
        self._figures.rates.is_known = False
        self.mark(MarkerKind.STOP)
        self.save()
        self._decisions.close()

    def save(self) -> None:
        """Save what there is, if it can be."""
        self._saved_at = self._figures.clock()
        if self._figures.history.is_empty or not self._checkpoint.identity:
            return
        try:
            save_history(self._file, self._checkpoint.identity, self._figures)
        except OSError as e:
            self._log("DEBUG", f"The history of figures was not saved: {e}", {})

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as e:
            if not self._has_failed:
                text = f"The history leaves figures out: {type(e).__name__}: {e}"
                self._log("WARN", f"{text}; this is a fault of the program, please report it", {})
            self._has_failed = True
