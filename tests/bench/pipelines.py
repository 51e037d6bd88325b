"""A pipeline of ten processors against the sum of its parts, in CPU time of this process.

The pipeline is built and fed as a stream does it: counted, timed, with an execution of its own. A
part is one processor alone, without anything around it, on the very messages that reach it in the
pipeline; reading payloads into messages and writing them out are parts as well. Turn and turn about
on the same messages, so that a loaded machine takes from both.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any, TypeVar

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.engine.stage.task_input import run_chunk
from streamer.sdk.input.replayable import RawMessages
from streamer.sdk.processing import BulkProcessor, InstrumentedProcessor, Processor, run
from tests.bench import report
from tests.bench.mapping_cases import CASES

Made = TypeVar("Made")

TEN = """
pipeline:
  processors:
    - mapping: |
        root = this
        root.seen = true
    - metric: { type: counter, name: Seen, labels: { kind: '${! this.kind.or("none") }' } }
    - mutation: root.name = this.name.uppercase()
    - catch: [ log: { level: ERROR, message: '${! error() }' } ]
    - bounds_check: { max_part_size: 1000000 }
    - try: [ mutation: 'root.enough = this.stock > 200' ]
    - for_each: [ mutation: 'meta kind = this.kind.or("none")' ]
    - processors: [ mutation: 'root.stock = deleted()', noop: {} ]
    - log: { level: TRACE, message: 'one more' }
    - mapping: 'root = if this.id == -1 { deleted() }'
"""
WHOLE = 100
"""Messages of a batch, where batches are measured."""

_PIECE = 64  # as a stream has it


def ten(observed: bool) -> list[Any]:
    """Build the ten processors as a stream has them, or bare."""
    built: list[Any] = build_context().build_all(parse_config(TEN, env={}).processors)
    return built if observed else [_bare(one) for one in built]


def _bare(processor: Any) -> Any:
    return processor.processor if isinstance(processor, InstrumentedProcessor) else processor


def _execution() -> Execution:
    return Execution(time.time_ns)


class _Clock:
    """Adds up the CPU time of what it is given to do."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def run(self, work: Callable[..., Made], *given: Any) -> Made:
        began = time.process_time()
        made = work(*given)
        self.seconds += time.process_time() - began
        return made


def _payloads(messages: Iterable[Message]) -> list[bytes]:
    return [message.raw for message in messages]


def _fed(processors: Sequence[Any], raws: list[bytes], ex: Execution) -> list[bytes]:
    made = run_chunk(processors, RawMessages(raws, {}), ex, written=True)
    return [message.raw for batch in made for message in batch]


def _processed(processor: Processor, batches: list[Batch], ex: Execution) -> list[Batch]:
    return [made for batch in batches for made in processor.process(batch, ex)]


def _alone(processor: Any, messages: list[Message], ex: Execution) -> list[Message]:
    """Run a processor on messages that are batches by themselves, and nothing else."""
    made: list[Message] = []
    for start in range(0, len(messages), _PIECE):
        piece = messages[start : start + _PIECE]
        if isinstance(processor, BulkProcessor):
            made += processor.process_each(piece, ex)
        else:
            made += [m for one in piece for batch in processor.process([one], ex) for m in batch]
    return made


def _sum_alone(raws: list[bytes], parts: Sequence[Any]) -> float:
    """Return the time of each part by itself, added up."""
    clock, ex = _Clock(), _execution()
    messages = clock.run(lambda: [Message(raw) for raw in raws])
    # A message remembers its document; each part gets what the one before has left it.
    for part in parts:
        messages = clock.run(_alone, part, messages, ex)
    clock.run(_payloads, messages)
    return clock.seconds


def _sum_of_batches(batches: list[Batch], parts: Sequence[Processor]) -> float:
    clock, ex = _Clock(), _execution()
    for part in parts:
        batches = clock.run(_processed, part, batches, ex)
    return clock.seconds


def _ratios(rounds: int, pair: Callable[[int], tuple[float, float]]) -> list[float]:
    ratios = []
    for turn in range(rounds):
        whole, parts = pair(turn)
        ratios.append(whole / parts)
    return ratios


def pipelines(rounds: int = 15, count: int = 6_400) -> None:
    """Measure and print what a pipeline costs beyond its processors.

    Raises:
        RuntimeError: the pipeline gives something else than its parts one after the other.
    """
    report.heading("Ten processors against the sum of their parts")
    gc.collect()
    gc.set_threshold(200_000, 50, 100)  # as the workers do
    raws = CASES[1].documents(count)
    check(raws)

    def each(turn: int) -> tuple[float, float]:
        def whole() -> float:
            clock = _Clock()
            clock.run(_fed, ten(True), raws, _execution())
            return clock.seconds

        return _both(turn, whole, lambda: _sum_alone(raws, ten(False)))

    def batched(turn: int) -> tuple[float, float]:
        def batches() -> list[Batch]:
            messages = [Message(raw) for raw in raws]
            return [messages[at : at + WHOLE] for at in range(0, count, WHOLE)]

        def whole() -> float:
            clock = _Clock()
            given, processors, ex = batches(), ten(True), _execution()
            clock.run(lambda: list(run(processors, given, ex)))
            return clock.seconds

        return _both(turn, whole, lambda: _sum_of_batches(batches(), ten(False)))

    for name, pair in (("messages one by one", each), (f"batches of {WHOLE}", batched)):
        ratios = _ratios(rounds, pair)
        report.figure(name, median(ratios), "× the sum", most=1.3)
        report.note(f"smallest {min(ratios):.2f}, largest {max(ratios):.2f}; {count:,} messages")


def _both(turn: int, whole: Callable[[], float], parts: Callable[[], float]) -> tuple[float, float]:
    """Measure both, each first in every other turn."""
    if turn % 2:
        first = parts()
        return whole(), first
    return whole(), parts()


def check(raws: list[bytes]) -> None:
    """Raise a RuntimeError when the pipeline gives something else than its parts."""
    ex = _execution()
    found = _fed(ten(True), raws, ex)
    messages = [Message(raw) for raw in raws]
    for part in ten(False):
        messages = _alone(part, messages, ex)
    if found != [message.raw for message in messages] or len(found) != len(raws):
        raise RuntimeError("the pipeline gives something else than its parts")
