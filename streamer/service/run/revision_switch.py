"""Put another revision in the place of a stream that runs: in place, or with windows begun anew.

The steps are such that a crash at any moment leaves the former revision or the new one, whole: the
checkpoint's record decides, and is replaced at once (`streamer.spark.checkpoint.generations`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from streamer.config import Config
from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.plan import Plan
from streamer.plan.change_impact import ChangeImpact, Effect, judge
from streamer.plan.change_impact.plain_values import to_plain_value
from streamer.plan.component_lookup import leaf_inputs
from streamer.plan.uses_sync_response import is_answered
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields
from streamer.sdk.spec.children import walk_components
from streamer.sdk.worker_resources import new_run_id
from streamer.service.run.batch_completion import BatchUnfinishedError, finish_batch
from streamer.service.run.stream_host import StreamHost
from streamer.tools.dry_run.components import check_components

if TYPE_CHECKING:
    from streamer.spark.checkpoint.checkpoint import Checkpoint
    from streamer.spark.query.input_session import InputSession
    from streamer.spark.query.stream import Stream

_POLL_INTERVAL_S: Final = 0.02
_CLOSE_TIMEOUT_S: Final = 30.0
DROP_REASON: Final = "deploy"
"""The reason that is counted for messages of windows that a deploy has dropped."""


class DeployError(StreamerError):
    """The new revision does not run; the former one does."""


class DrainInterruptedError(StreamerError):
    """The stream is to stop while open windows are let out; the next start goes on with that."""


class OnReset(StrEnum):
    """The treatment of open windows that a new revision cannot continue."""

    DRAIN = "drain"
    DISCARD = "discard"


@dataclass(frozen=True, slots=True)
class DeployResult:
    """The outcome of a deploy.

    Attributes:
        effect: what the change came to; None when nothing has changed.
        pause: seconds for which no micro-batch could run.
        discarded: messages of open windows that were dropped.
    """

    effect: Effect | None
    pause: float = 0.0
    discarded: int = 0


@dataclass(frozen=True, slots=True)
class RevisionChange:
    """Another revision for a run.

    Attributes:
        config: what is to run.
        judgement: of the change from what runs.
        on_reset: what becomes of open windows that must begin anew; None when they need not.
        revision: what it is called; a checkpoint that begins anew remembers it.
        probation: seconds in which it may fail, so that what ran before comes back; None when it is
            to stay whatever happens.
    """

    config: Config
    judgement: ChangeImpact
    on_reset: OnReset | None = None
    revision: str = ""
    probation: float | None = None


def check_connections(plan: Plan, running: Plan) -> None:
    """Build what is new in a plan, and connect it as far as that can be done beside the other.

    Raises:
        DeployError: something does not work; the text says what.
    """
    known = {repr(to_plain_value(one)) for one in _iter_components(running)}
    ports = {port for one in _iter_components(running) if (port := _listen_address(one))}
    problems = [
        f"{check.name}: {check.detail}"
        for check in check_components(
            plan,
            lambda one: (
                repr(to_plain_value(one)) not in known and _listen_address(one) not in ports
            ),
        )
        if check.ok is False
    ]
    if problems:
        raise DeployError(f"the new revision does not connect: {'; '.join(problems)}")
    if _reads_stdin(plan) and _reads_stdin(running) and not _has_same_input(plan, running):
        raise DeployError(
            "the standard input cannot be opened a second time, and the new revision reads it in "
            "another way: stop the program and start it again"
        )


def _iter_components(plan: Plan) -> Iterator[ParsedComponent]:
    roots = (plan.input, *plan.all_buffers, *plan.all_processors, *plan.outputs)
    return walk_components((*roots, *plan.resources.values()))


def _listen_address(component: ParsedComponent) -> str:
    """Return the address of an input, which may listen there; empty for none."""
    if component.kind != Kind.INPUT or not isinstance(component.config, ParsedFields):
        return ""
    address = component.config.get("address")
    return address if isinstance(address, str) else ""


def _reads_stdin(plan: Plan) -> bool:
    return any(one.name == "stdin" for one in leaf_inputs(plan.input, plan.resources))


def _has_same_input(plan: Plan, running: Plan) -> bool:
    return repr(to_plain_value(plan.input)) == repr(to_plain_value(running.input))


class RevisionSwitch:
    """One deploy on one stream."""

    def __init__(
        self,
        host: StreamHost,
        log: LogLine,
        timeout: float,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Set up.

        Args:
            host: where the stream runs.
            log: takes log lines.
            timeout: seconds that the micro-batch in hand may take.
            should_stop: whether the stream is to stop.
        """
        self._host = host
        self._log = log
        self._timeout = timeout
        self._should_stop = should_stop

    def replace(self, plan: Plan, change: RevisionChange) -> DeployResult:
        """Switch the running stream to `plan`: in place, or with new state after a drain.

        Args:
            plan: what is to run.
            change: the same as a change from what runs.

        Raises:
            DeployError: it was refused, or did not start; what ran before does so again.
            DrainInterruptedError: the stream is to stop while windows are let out.
        """
        judgement = change.judgement
        if judgement.effect in (None, Effect.RESTART):
            return DeployResult(judgement.effect)
        if not judgement.resets:
            return self._switch_in_place(plan, judgement)
        if change.on_reset is None:
            raise DeployError(
                f"the change loses {' and '.join(judgement.losses)}; deploy it with on_reset=drain "
                "to emit open windows first, or on_reset=discard to drop them"
            )
        return self._switch_with_new_state(plan, change)

    def _switch_in_place(self, plan: Plan, judgement: ChangeImpact) -> DeployResult:
        old = self._host.stream
        began = time.monotonic()
        # Whoever waits for an answer waits at the input: who answers is known when it is opened.
        keeps_input = is_answered(plan) == old.input.holds_requests or _reads_stdin(plan)
        if keeps_input:
            old.retire(self._timeout)
        else:
            self._stop_stream(old)
        kept_input = old.input if keeps_input else None
        with self._rollback_on_error(old.plan, kept_input):
            self._start_stream(plan, kept_input)
        return DeployResult(judgement.effect, time.monotonic() - began)

    def _switch_with_new_state(self, plan: Plan, change: RevisionChange) -> DeployResult:
        from streamer.spark.checkpoint.generations import (
            begin_generation,
            delete_old_generations,
            restore_record,
        )

        old, checkpoint = self._host.stream, self._host.checkpoint
        judgement = change.judgement
        began = time.monotonic()
        if judgement.keeps_input:
            old.retire(self._timeout)
        else:
            # What has come in is on the disk; nothing more is to come from there.
            self._stop_stream(old)
        kept_input = old.input if judgement.keeps_input else None
        previous_record = checkpoint.read_record()
        discarded = 0
        with self._rollback_on_error(old.plan, kept_input):
            if change.on_reset == OnReset.DRAIN:
                self._drain(old, judgement.keeps_input)
            else:
                self._finish_batch(old, judgement.keeps_input)
                discarded = self._count_discarded(old)
            keeps_input = judgement.keeps_input
            begin_generation(checkpoint, plan.fingerprint, keeps_input, change.revision)
            try:
                self._start_stream(plan, kept_input)
            except BaseException:
                restore_record(checkpoint, previous_record)
                raise
        delete_old_generations(checkpoint)
        return DeployResult(judgement.effect, time.monotonic() - began, discarded)

    def drain(self) -> None:
        """Flush open windows, and read no further; the next start goes on with new windows.

        Raises:
            DrainInterruptedError: the stream is to stop; the next start goes on with this.
            StreamerError: they cannot be written; they stay in the checkpoint.
        """
        from streamer.spark.checkpoint.generations import begin_generation, delete_old_generations

        old, checkpoint = self._host.stream, self._host.checkpoint
        old.retire(self._timeout)
        self._drain(old, keeps_input=True)
        begin_generation(checkpoint, old.plan.fingerprint, True)
        delete_old_generations(checkpoint)

    def _drain(self, old: Stream, keeps_input: bool) -> None:
        """Let open windows out by the former plan."""
        from streamer.spark.checkpoint.generations import Drain, begin_drain, cancel_drain

        checkpoint = self._host.checkpoint
        begin_drain(checkpoint, Drain(with_new_run(old.plan), keeps_input))
        try:
            drain_windows(
                self._host,
                with_new_run(old.plan),
                keeps_input,
                self._timeout,
                self._should_stop,
                old.input,
            )
        except DrainInterruptedError:
            raise
        except BaseException:
            self._host.stream.retire(0.0)
            cancel_drain(checkpoint)
            raise

    def _finish_batch(self, old: Stream, keeps_input: bool) -> None:
        """Finish the micro-batch in hand, where a table has it and the others do not.

        Raises:
            DeployError: the others do not take it in time.
        """
        if not keeps_input:
            return  # Nobody reads its messages again.
        until = time.monotonic() + self._timeout

        def give_up() -> str:
            if self._should_stop() or time.monotonic() > until:
                return "deploy what lets them take it first, and then what drops open windows"
            return ""

        plan = with_new_run(old.plan)
        try:
            finish_batch(self._host, plan, self._timeout, give_up, old.input)
        except BatchUnfinishedError as error:
            raise DeployError(str(error)) from None

    def _count_discarded(self, old: Stream) -> int:
        """Count what is dropped."""
        last = old.snapshot()
        if last.held:
            old.meters.count("window_dropped", {"reason": DROP_REASON}, last.held)
            text = "The deploy drops the windows that were open"
            self._log("WARN", text, {"windows": last.open_windows, "messages": last.held})
        return last.held

    def _start_stream(self, plan: Plan, kept_input: InputSession | None) -> None:
        stream = self._host.make_stream(plan, kept_input)
        self._host.start_query(stream)

    def _rollback_on_error(self, plan: Plan, kept_input: InputSession | None) -> _RollbackOnError:
        return _RollbackOnError(self, plan, kept_input)

    def _stop_stream(self, stream: Stream) -> None:
        if not stream.stop(self._timeout):
            stream.run.abandon()
        if not _reads_stdin(stream.plan):
            stream.wait_input_closed(_CLOSE_TIMEOUT_S)

    def roll_back(
        self, plan: Plan, kept_input: InputSession | None, failed: Stream, error: BaseException
    ) -> None:
        """Start what ran before.

        Raises:
            DeployError: always, since the new revision does not run.
            StreamerError: the former one does not start either.
        """
        newest = self._host.stream
        if newest is not failed:
            # It was made, and its query did not start.
            if kept_input is not None:
                newest.retire(0.0)
            else:
                self._stop_stream(newest)
        self._start_stream(with_new_run(plan), kept_input)
        text = (
            str(error) if isinstance(error, StreamerError) else f"{type(error).__name__}: {error}"
        )
        raise DeployError(f"the new revision did not start, and the former one goes on: {text}")


class _RollbackOnError:
    """Starts the former revision again when the block does not come to its end."""

    def __init__(self, switch: RevisionSwitch, plan: Plan, kept_input: InputSession | None) -> None:
        self._switch = switch
        self._plan = plan
        self._kept_input = kept_input
        self._running = switch._host.stream

    def __enter__(self) -> None:
        """Nothing is to be done."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, DrainInterruptedError) or not isinstance(error, Exception):
            return
        self._switch.roll_back(self._plan, self._kept_input, self._running, error)


def with_new_run(plan: Plan) -> Plan:
    """Return a plan for another run: what workers keep for the one before has gone."""
    return replace(plan, run=new_run_id(), task_log_address="")


def drain_windows(
    host: StreamHost,
    plan: Plan,
    keeps_input: bool,
    timeout: float,
    should_stop: Callable[[], bool],
    input_session: InputSession | None = None,
) -> Stream:
    """Let open windows out, and stop.

    Args:
        host: where the stream runs.
        plan: by which they come out.
        keeps_input: whether the input goes on; if not, what has come in is read to its end.
        timeout: seconds that the micro-batch in hand may take.
        should_stop: whether the stream is to stop.
        input_session: the input; None to open it.

    Returns:
        The stream that has let them out, retired.

    Raises:
        DrainInterruptedError: the stream is to stop.
        StreamerError: they cannot be written.
    """
    from streamer.spark.query.drain_source import DrainLimit, with_flush_at_end

    spool = host.checkpoint.spool
    to_end = not keeps_input and next(spool.rglob("*.seg"), None) is not None
    stream = host.make_stream(with_flush_at_end(plan), input_session, DrainLimit(to_end))
    host.start_query(stream)
    while not stream.poll():
        if should_stop():
            raise DrainInterruptedError(
                "the stream stops while a deploy lets open windows out; the next start goes on "
                "with that"
            )
        time.sleep(_POLL_INTERVAL_S)
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
    from streamer.spark.checkpoint.generations import (
        Drain,
        begin_discard,
        begin_drain,
        load_running,
    )

    last = load_running(checkpoint, log)
    if last is None or not checkpoint.is_resumable or "draining" in checkpoint.read_record():
        return
    judgement = judge(last[0], config)
    if not judgement.resets:
        return
    fields = {"loses": "; ".join(judgement.losses), "on_reset": str(on_reset)}
    log("INFO", "The config has changed since the last run, whose windows cannot go on", fields)
    if on_reset == OnReset.DRAIN:
        begin_drain(checkpoint, Drain(last[1], judgement.keeps_input))
        return
    begin_discard(checkpoint, last[1], plan.fingerprint, judgement.keeps_input)


def finish_drain(
    host: StreamHost, plan: Plan, timeout: float, should_stop: Callable[[], bool], log: LogLine
) -> InputSession | None:
    """Finish a drain that was broken off, so that the generation after it can begin.

    Args:
        host: where the stream runs; it has none yet.
        plan: what is to run.
        timeout: seconds that the micro-batch in hand may take.
        should_stop: whether the stream is to stop.
        log: takes log lines.

    Returns:
        The input; None when it is to be opened.
    """
    from streamer.spark.checkpoint.generations import (
        begin_generation,
        delete_old_generations,
        read_drain,
    )

    drain = read_drain(host.checkpoint)
    if drain is None:
        return None
    if not drain.keeps_input and _reads_stdin(drain.plan) and _reads_stdin(plan):
        raise DeployError(
            "a deploy was letting open windows out when it was broken off, and the standard input "
            "cannot be read in two ways: start the former config once, with an empty input"
        )
    former = with_new_run(drain.plan)
    # Mappings that the driver builds read what the former config has read, as the workers' do.
    with drain.plan.captured_inputs.restore().active():
        if not drain.emits:
            log("INFO", "Finishing the micro-batch in hand, which a table has already", {})
            input_session = _finish_batch_of_drain(host, former, timeout, should_stop)
            begin_generation(host.checkpoint, plan.fingerprint, drain.keeps_input)
            delete_old_generations(host.checkpoint)
            return input_session
        log("INFO", "Letting open windows out, which a deploy had begun", {})
        stream = drain_windows(host, former, drain.keeps_input, timeout, should_stop)
    if not drain.keeps_input:
        stream.stop(timeout)
        if not _reads_stdin(drain.plan):
            stream.wait_input_closed(_CLOSE_TIMEOUT_S)
    begin_generation(host.checkpoint, plan.fingerprint, drain.keeps_input)
    delete_old_generations(host.checkpoint)
    return stream.input if drain.keeps_input else None


def _finish_batch_of_drain(
    host: StreamHost, plan: Plan, timeout: float, should_stop: Callable[[], bool]
) -> InputSession | None:
    def give_up() -> str:
        return "the next start goes on with that" if should_stop() else ""

    try:
        return finish_batch(host, plan, timeout, give_up)
    except BatchUnfinishedError as error:
        raise DrainInterruptedError(str(error)) from None
