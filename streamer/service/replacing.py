"""Put another revision in the place of a stream that runs: in place, or with windows begun anew.

The steps are such that a crash at any moment leaves the former revision or the new one, whole: the
checkpoint's record decides, and is replaced at once (`streamer.spark.generations`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

from streamer.config import Config
from streamer.dryrun.components import component_checks
from streamer.engine.delivery import LogLine
from streamer.errors import StreamerError
from streamer.lasting import new_run
from streamer.plan import Plan
from streamer.plan.answered import is_answered
from streamer.plan.judgement import Effect, Judgement, judge
from streamer.plan.judgement.raw import raw
from streamer.plan.origins import origins
from streamer.spec import Kind, Parsed, ParsedComponent
from streamer.spec.inside import inside

if TYPE_CHECKING:
    from streamer.spark.checkpoint import Checkpoint
    from streamer.spark.stream import Stream

_LINGER: Final = 0.02
_CLOSES: Final = 30.0
REASON: Final = "deploy"
"""The reason that is counted for messages of windows that a deploy has dropped."""


class DeployError(StreamerError):
    """The new revision does not run; the former one does."""


class BrokenOffError(StreamerError):
    """The stream is to stop while open windows are let out; the next start goes on with that."""


class OnReset(StrEnum):
    """What becomes of open windows that a new revision cannot go on with."""

    DRAIN = "drain"
    DISCARD = "discard"


@dataclass(frozen=True, slots=True)
class Deployed:
    """What a deploy has done.

    Attributes:
        effect: what the change came to; None when nothing has changed.
        pause: seconds for which no micro-batch could run.
        discarded: messages of open windows that were dropped.
    """

    effect: Effect | None
    pause: float = 0.0
    discarded: int = 0


class Place(Protocol):
    """Where a stream runs: what makes one, and what knows that there is another now."""

    checkpoint: Checkpoint

    @property
    def stream(self) -> Stream:
        """The stream that was made last."""

    def made(self, plan: Plan, former: Stream | None = None, drains: Any = None) -> Stream:
        """Make a stream, which is `stream` from now on."""

    def begin(self, stream: Stream) -> None:
        """Start its query."""


def check_ready(plan: Plan, running: Plan) -> None:
    """Build what is new in a plan, and connect it as far as that can be done beside the other.

    Raises:
        DeployError: something does not work; the text says what.
    """
    known = {repr(raw(one)) for one in _components(running)}
    ports = {port for one in _components(running) if (port := _port(one))}
    wrong = [
        f"{check.name}: {check.detail}"
        for check in component_checks(
            plan, lambda one: repr(raw(one)) not in known and _port(one) not in ports
        )
        if check.ok is False
    ]
    if wrong:
        raise DeployError(f"the new revision does not connect: {'; '.join(wrong)}")
    if _reads_stdin(plan) and _reads_stdin(running) and not _same_input(plan, running):
        raise DeployError(
            "the standard input cannot be opened a second time, and the new revision reads it in "
            "another way: stop the program and start it again"
        )


def _components(plan: Plan) -> Iterator[ParsedComponent]:
    waiting = [plan.input, plan.buffer, *plan.processors, *plan.outputs, *plan.resources.values()]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += [*one.processors, *inside(one)]


def _port(component: ParsedComponent) -> str:
    """Return the address of an input, which may listen there; empty for none."""
    if component.kind != Kind.INPUT or not isinstance(component.config, Parsed):
        return ""
    found = component.config.get("address")
    return found if isinstance(found, str) else ""


def _reads_stdin(plan: Plan) -> bool:
    return any(one.name == "stdin" for one in origins(plan.input, plan.resources))


def _same_input(plan: Plan, running: Plan) -> bool:
    return repr(raw(plan.input)) == repr(raw(running.input))


class Replacing:
    """One deploy on one stream."""

    def __init__(
        self,
        place: Place,
        log: LogLine,
        timeout: float,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """Set up.

        Args:
            place: where the stream runs.
            log: takes log lines.
            timeout: seconds that the micro-batch in hand may take.
            stopping: whether the stream is to stop.
        """
        self._place = place
        self._log = log
        self._timeout = timeout
        self._stopping = stopping

    def replace(
        self, plan: Plan, judgement: Judgement, on_reset: OnReset | None, revision: str = ""
    ) -> Deployed:
        """Do it.

        Args:
            plan: what is to run.
            judgement: of the change from what runs.
            on_reset: what becomes of open windows, where these must begin anew.
            revision: what the deploy is called.

        Raises:
            DeployError: it was refused, or did not start; what ran before does so again.
            BrokenOffError: the stream is to stop while windows are let out.
        """
        if judgement.effect in (None, Effect.RESTART):
            return Deployed(judgement.effect)
        if not judgement.resets:
            return self._in_place(plan, judgement)
        if on_reset is None:
            raise DeployError(
                f"the change loses {' and '.join(judgement.loses)}; deploy it with on_reset=drain "
                "to let open windows out first, or on_reset=discard to drop them"
            )
        return self._reset(plan, judgement, on_reset, revision)

    def _in_place(self, plan: Plan, judgement: Judgement) -> Deployed:
        old = self._place.stream
        began = time.monotonic()
        # Whoever waits for an answer waits at the input: who answers is known when it is opened.
        kept = is_answered(plan) == old.answers or _reads_stdin(plan)
        if kept:
            old.retire(self._timeout)
        else:
            self._end(old)
        former = old if kept else None
        with self._or_back(old.plan, former):
            self._start(plan, former)
        return Deployed(judgement.effect, time.monotonic() - began)

    def _reset(
        self, plan: Plan, judgement: Judgement, on_reset: OnReset, revision: str
    ) -> Deployed:
        from streamer.spark.generations import next_generation, return_to, sweep

        place, old = self._place, self._place.stream
        checkpoint = place.checkpoint
        began = time.monotonic()
        if judgement.keeps_input:
            old.retire(self._timeout)
        else:
            # What has come in is on the disk; nothing more is to come from there.
            self._end(old)
        former = old if judgement.keeps_input else None
        before = checkpoint.record()
        discarded = 0
        with self._or_back(old.plan, former):
            if on_reset == OnReset.DRAIN:
                drained = self._drain(old, judgement.keeps_input)
                former = drained if judgement.keeps_input else None
            else:
                discarded = self._discard(old)
            next_generation(checkpoint, plan.fingerprint, judgement.keeps_input, revision)
            try:
                self._start(plan, former)
            except BaseException:
                return_to(checkpoint, before)
                raise
        sweep(checkpoint)
        return Deployed(judgement.effect, time.monotonic() - began, discarded)

    def _drain(self, old: Stream, keeps_input: bool) -> Stream:
        """Let open windows out by the former plan."""
        from streamer.spark.generations import Drain, begin_drain, end_drain

        checkpoint = self._place.checkpoint
        begin_drain(checkpoint, Drain(again(old.plan), keeps_input))
        try:
            return drained(
                self._place, again(old.plan), keeps_input, self._timeout, self._stopping, old
            )
        except BrokenOffError:
            raise
        except BaseException:
            self._place.stream.retire(0.0)
            end_drain(checkpoint)
            raise

    def _discard(self, old: Stream) -> int:
        """Count what is dropped."""
        last = old.snapshot()
        if last.held:
            old.meters.count("window_dropped", {"reason": REASON}, last.held)
            text = "The deploy drops the windows that were open"
            self._log("WARN", text, {"windows": last.open_windows, "messages": last.held})
        return last.held

    def _start(self, plan: Plan, former: Stream | None) -> None:
        stream = self._place.made(plan, former)
        self._place.begin(stream)

    def _or_back(self, plan: Plan, former: Stream | None) -> _Back:
        return _Back(self, plan, former)

    def _end(self, stream: Stream) -> None:
        if not stream.stop(self._timeout):
            stream.abandon()
        if not _reads_stdin(stream.plan):
            stream.let_go(_CLOSES)

    def back(self, plan: Plan, former: Stream | None, failed: Stream, why: BaseException) -> None:
        """Start what ran before.

        Raises:
            DeployError: always, since the new revision does not run.
            StreamerError: the former one does not start either.
        """
        newest = self._place.stream
        if newest is not failed:
            # It was made, and its query did not start.
            if former is not None:
                newest.retire(0.0)
            else:
                self._end(newest)
        self._start(again(plan), former)
        text = str(why) if isinstance(why, StreamerError) else f"{type(why).__name__}: {why}"
        raise DeployError(f"the new revision did not start, and the former one goes on: {text}")


class _Back:
    """Starts the former revision again when the block does not come to its end."""

    def __init__(self, replacing: Replacing, plan: Plan, former: Stream | None) -> None:
        self._replacing = replacing
        self._plan = plan
        self._former = former
        self._running = replacing._place.stream

    def __enter__(self) -> None:
        """Nothing is to be done."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, BrokenOffError) or not isinstance(error, Exception):
            return
        self._replacing.back(self._plan, self._former, self._running, error)


def again(plan: Plan) -> Plan:
    """Return a plan for another run: what workers keep for the one before has gone."""
    return replace(plan, run=new_run(), live="")


def drained(
    place: Place,
    plan: Plan,
    keeps_input: bool,
    timeout: float,
    stopping: Callable[[], bool],
    former: Stream | None = None,
) -> Stream:
    """Let open windows out, and stop.

    Args:
        place: where the stream runs.
        plan: by which they come out.
        keeps_input: whether the input goes on; if not, what has come in is read to its end.
        timeout: seconds that the micro-batch in hand may take.
        stopping: whether the stream is to stop.
        former: the stream that has the input.

    Returns:
        The stream that has let them out, retired.

    Raises:
        BrokenOffError: the stream is to stop.
        StreamerError: they cannot be written.
    """
    from streamer.spark.draining import Drains, flushing

    spool = place.checkpoint.spool
    to_end = not keeps_input and next(spool.rglob("*.seg"), None) is not None
    stream = place.made(flushing(plan), former, Drains(to_end))
    place.begin(stream)
    while not stream.poll():
        if stopping():
            raise BrokenOffError(
                "the stream stops while a deploy lets open windows out; the next start goes on "
                "with that"
            )
        time.sleep(_LINGER)
    stream.retire(timeout)
    return stream


def prepare_start(
    checkpoint: Checkpoint, config: Config, plan: Plan, on_reset: OnReset, log: LogLine
) -> None:
    """Make ready for a start with another config than the one that ran last, if that is known.

    Args:
        checkpoint: nothing runs on it.
        config: what is to run.
        plan: its plan.
        on_reset: what becomes of open windows that it cannot go on with.
        log: takes log lines.
    """
    from streamer.spark.generations import Drain, begin_drain, next_generation, remembered, sweep

    last = remembered(checkpoint, log)
    if last is None or not checkpoint.resumes or "draining" in checkpoint.record():
        return
    judgement = judge(last[0], config)
    if not judgement.resets:
        return
    what = {"loses": "; ".join(judgement.loses), "on_reset": str(on_reset)}
    log("INFO", "The config has changed since the last run, whose windows cannot go on", what)
    if on_reset == OnReset.DRAIN:
        begin_drain(checkpoint, Drain(last[1], judgement.keeps_input))
        return
    next_generation(checkpoint, plan.fingerprint, judgement.keeps_input)
    sweep(checkpoint)


def finish_drain(
    place: Place, plan: Plan, timeout: float, stopping: Callable[[], bool], log: LogLine
) -> Stream | None:
    """Finish a drain that was broken off, so that the generation after it can begin.

    Args:
        place: where the stream runs; it has none yet.
        plan: what is to run.
        timeout: seconds that the micro-batch in hand may take.
        stopping: whether the stream is to stop.
        log: takes log lines.

    Returns:
        The stream that has the input, retired; None when the input is to be opened.
    """
    from streamer.spark.generations import drain_of, next_generation, sweep

    drain = drain_of(place.checkpoint)
    if drain is None:
        return None
    if not drain.keeps_input and _reads_stdin(drain.plan) and _reads_stdin(plan):
        raise DeployError(
            "a deploy was letting open windows out when it was broken off, and the standard input "
            "cannot be read in two ways: start the former config once, with an empty input"
        )
    log("INFO", "Letting open windows out, which a deploy had begun", {})
    stream = drained(place, again(drain.plan), drain.keeps_input, timeout, stopping)
    if not drain.keeps_input:
        stream.stop(timeout)
        if not _reads_stdin(drain.plan):
            stream.let_go(_CLOSES)
    next_generation(place.checkpoint, plan.fingerprint, drain.keeps_input)
    sweep(place.checkpoint)
    return stream if drain.keeps_input else None
