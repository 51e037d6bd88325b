"""The last step of a backfill: results go, in order, through the outputs to where they belong.

A portion of results is one micro-batch of the outputs. Its number and its content are the same
whenever it is sent, so files and tables take a portion once, though the program is killed between
the write and its note. Outputs that send messages may get the portion in hand a second time.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from streamer.core.log_format import LogLine
from streamer.engine.driver.delivery import Delivery
from streamer.engine.driver.delivery_setup import DeliveredStream
from streamer.engine.driver.input_host import InputHost
from streamer.engine.driver.writers import make_writers, open_writers
from streamer.engine.report.metric_labels import EndpointLabels
from streamer.engine.report.result_frame import Frame, TaskReport, make_frames
from streamer.engine.stage.output_stage import OutputStage
from streamer.plan import Plan
from streamer.service.backfill.capture import restore_batch
from streamer.service.backfill.work_files import (
    BatchResults,
    Result,
    WorkDirectory,
    read_items,
)

_MESSAGES_PER_PORTION: Final = 20_000
_SENT_FILE: Final = "sent.json"


class ResultSender:
    """Sends the results of tasks to the outputs of a plan.

    Attributes:
        messages: messages sent by this program.
        batches: batches sent by this program.
    """

    def __init__(
        self,
        plan: Plan,
        work: WorkDirectory,
        identity: str,
        log: LogLine,
        stdout: BinaryIO,
        should_stop: Callable[[], bool],
    ) -> None:
        """Make the outputs.

        Args:
            plan: the stream's plan.
            work: the directory, with what was sent before.
            identity: of the backfill, by which tables know it.
            log: takes log lines.
            stdout: the standard output.
            should_stop: whether to give up on an output that fails.

        Raises:
            StreamerError: an output cannot be made.
        """
        self._plan, self._work, self._log = plan, work, log
        writers = make_writers(plan, work.root, stdout, None, lambda: identity)
        self._writers = writers
        labels = EndpointLabels.of(plan)
        self._delivery = Delivery(
            writers, log, should_stop, stream=DeliveredStream(endpoint_labels=labels)
        )
        self._stages = [OutputStage(plan, *one) for one in enumerate(plan.outputs)]
        sent = work.read_json(_SENT_FILE) or {"portions": 0}
        self._sent: int = sent["portions"]
        self._number = 0
        self.messages = self.batches = 0

    def open(self, host: InputHost) -> None:
        """Let those outputs begin to listen that do.

        Raises:
            StreamerError: one of them cannot.
        """
        open_writers(self._writers, host.root_context())

    def send_tasks(self, paths: Iterable[Path]) -> None:
        """Send the results of tasks that have the same segments, merged by their order.

        Args:
            paths: the files of their results.

        Raises:
            DeliveryStoppedError: the program is to stop, and an output still fails.
            RejectedError: an output refuses a message for good.
            StreamerError: a file cannot be read.
        """
        merged = heapq.merge(*map(read_items, paths), key=lambda one: one.segment)
        for portion in cut_portions(merged):
            number, self._number = self._number, self._number + 1
            if number >= self._sent:
                self._send(number, portion)
                self._work.write_json(_SENT_FILE, {"portions": number + 1})
                self._sent = number + 1

    def _send(self, number: int, portion: list[BatchResults]) -> None:
        for one in portion:
            for level, text, fields in one.log:
                self._log(level, text, fields)
        results = [result for one in portion for result in one.results]
        self._delivery.deliver(number, [*self._frames(results)])
        self.batches += len(results)
        self.messages += sum(len(one.messages) for one in results)

    def _frames(self, results: list[Result]) -> Iterator[Frame]:
        report = TaskReport.of(self._plan, time.time_ns)

        def payloads() -> Iterator[Any]:
            for number, stage in enumerate(self._stages):
                mine = (restore_batch(one) for one in results if one.output == number)
                yield from stage.payloads(mine, 0, report.execution)
                stage.finish()

        yield from make_frames(payloads(), 0)
        for kind, body in report.frames():
            yield Frame(kind, 0, 0, 1 << 30, 0, "", body)


def cut_portions(results: Iterable[BatchResults]) -> Iterator[list[BatchResults]]:
    """Cut results into portions, whole segments each, as many as a micro-batch may have."""
    portion: list[BatchResults] = []
    messages = 0
    for one in results:
        is_new = bool(portion) and one.segment != portion[-1].segment
        if is_new and messages >= _MESSAGES_PER_PORTION:
            yield portion
            portion, messages = [], 0
        portion.append(one)
        messages += sum(len(result.messages) for result in one.results)
    if portion:
        yield portion
