"""The execution of a run's components: the time, a log, counters, and the micro-batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from streamer.core.component_stats import ComponentStats
from streamer.core.custom_metrics import CustomMetrics
from streamer.core.keyed_state import KeyedState
from streamer.core.message import Batch


class MicroBatch(NamedTuple):
    """The part of a micro-batch that a run is of: the same when it comes again after a failure.

    Attributes:
        stream: names the checkpoint, and so the stream for as long as it goes on.
        number: the micro-batch's, which grows.
        part: names the shard, or the piece of the input, among those of the micro-batch.
    """

    stream: str
    number: int
    part: str


class Execution:
    """The execution that a component runs in: the time, a log and counters.

    A worker makes one for every task of a micro-batch; a test makes one with a scripted clock.

    Attributes:
        now: the clock, nanoseconds since the Unix epoch.
        log: called with level (`ERROR`, `WARN`, `INFO`, `DEBUG`, `TRACE`), text and fields.
        count: adds to a counter, by its name and labels: `count("window_dropped", 3, reason="x")`.
        strict: whether a message that has failed skips the processors that follow, as
            `error_handling.strict` wants it.
        elapsed: a clock for how long something takes, nanoseconds.
        sleep: returns after so many nanoseconds.
        report_wait: called like `log` with what a task waits for; a line reaches the log at once.
        counters: the state of Bloblang's `count()` and `counter()` functions.
        counter_bounds: min and max of each call of `counter()`, as its first message had them.
        component_stats: what components have done, by what their metrics' names begin with, and by
            label and path.
        custom_metrics: what the config itself counts, sets and times.
        rejected: what was taken out of the run, since an output has refused it for what it is: see
            `sdk.output.rejection.RejectedBatch`.
        origins: what the input gave, by the places of the messages that it has become; None where
            nobody asks.
        answers: the requests that wait for the messages of this run, and what answers each.
        refusals: why a request that waits has been refused, by its name.
        micro_batch: which part of which micro-batch it is; None outside of a stream.
        sampler: takes samples of messages; None where nobody watches.
        failures: takes samples of messages that fail, see `engine.report.failed_messages`; None
            outside of a stream.
        read_counter: counts what the task reads of its input, see `engine.report`; None where
            nobody asks.
        column_mode: when fields of lines may be read as columns; empty for never.
        reads_columns: whether what reads the input may give lines uncut, see `LineMessages`.
        wait_budget: how long outputs wait before they hand over what is unsent, see
            `sdk.output.wait_budget`; None where they wait for ever.
        calls: counts the calls of processors, see `sdk.processing.crashes`; None unless a worker
            has died.
        crashes: knows messages of the piece that end a worker; None unless one has died.
        keyed_state: the state of the key that a pipeline is at; None where there is none.
        send_times: how long outputs took to send, by path, ns.
    """

    __slots__ = (
        *("now", "log", "count", "strict", "elapsed", "sleep", "report_wait"),
        *("counters", "counter_bounds", "component_stats", "custom_metrics", "rejected", "answers"),
        *("origins", "refusals", "micro_batch", "sampler", "read_counter", "wait_budget"),
        *("column_mode", "reads_columns"),
        *("calls", "crashes", "keyed_state", "send_times", "failures"),
    )

    def __init__(
        self,
        now: Callable[[], int],
        log: Callable[[str, str, Mapping[str, Any]], None] = lambda level, text, fields: None,
        count: Callable[..., None] = lambda name, by=1, **labels: None,
        *,
        strict: bool = False,
        elapsed: Callable[[], int] = time.perf_counter_ns,
        sleep: Callable[[int], None] = lambda ns: time.sleep(ns / 1e9),
        report_wait: Callable[[str, str, Mapping[str, Any]], None] = lambda level, text, fields: (
            None
        ),
    ) -> None:
        self.now = now
        self.log = log
        self.count = count
        self.strict = strict
        self.elapsed = elapsed
        self.sleep = sleep
        self.report_wait = report_wait
        self.counters: dict[str, int] = {}
        self.counter_bounds: dict[str, tuple[int, int]] = {}
        self.component_stats: dict[tuple[str, str, str], ComponentStats] = {}
        self.custom_metrics = CustomMetrics()
        self.rejected: list[Any] = []
        self.origins: dict[int, Batch] | None = None
        self.answers: dict[str, Batch] = {}
        self.refusals: dict[str, str] = {}
        self.micro_batch: MicroBatch | None = None
        self.sampler: Any = None
        self.failures: Any = None
        self.read_counter: Any = None
        self.column_mode = ""
        self.reads_columns = False
        self.wait_budget: Any = None
        self.calls: Any = None
        self.crashes: Any = None
        self.keyed_state: KeyedState | None = None
        self.send_times: dict[str, int] = {}

    def stats_of(self, key: tuple[str, str, str]) -> ComponentStats:
        """Return what a component has done in this run so far, to be added to."""
        stats = self.component_stats.get(key)
        if stats is None:
            stats = self.component_stats[key] = ComponentStats()
        return stats
