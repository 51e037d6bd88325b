"""Canaries of the service's streams: one at most of each, begun, shown, promoted and dropped."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from streamer.core.durations import format_duration
from streamer.core.errors import StreamerError
from streamer.core.timestamps import format_rfc3339
from streamer.engine.canary.window_comparison import MAX_SHOWN_DIFFERENCES, ComparedBuffer
from streamer.plan import Plan, make_plan
from streamer.plan.canary import check_calls, check_change, list_output_changes
from streamer.plan.change_impact import ChangeImpact, Effect, judge
from streamer.service.fleet import redacted_text
from streamer.service.fleet.deploys import ChangeOptions, Deploys, check_is_of_api
from streamer.service.fleet.errors import RefusedError
from streamer.service.fleet.managed_stream import ManagedStream
from streamer.service.fleet.registry import Registry
from streamer.service.run.canary_run import CanaryRun, CanarySettings, Outcome

CANARY_DIRECTORY: Final = "canaries"
"""In the service's own directory: what canaries keep on the disk while they run."""

_MISSING_TEXT: Final = "the stream has no canary; begin one with `streamer deploy --canary`"
_WAITING_OUTCOMES: Final = (
    Outcome.COMPARED,
    Outcome.DIFFERENT,
    Outcome.TIMEOUT,
    Outcome.INPUT_ENDED,
)


class CanaryState(StrEnum):
    """The states of a canary.

    Attributes:
        STARTING: its copy is made.
        COMPARING: windows are compared.
        WAITING: it has ended, and somebody has to promote or drop it.
        PROMOTING: its revision is deployed.
        PROMOTED: its revision runs.
        DROPPED: the running revision stays.
    """

    STARTING = "starting"
    COMPARING = "comparing"
    WAITING = "waiting"
    PROMOTING = "promoting"
    PROMOTED = "promoted"
    DROPPED = "dropped"


_OPEN_STATES: Final = (CanaryState.STARTING, CanaryState.COMPARING, CanaryState.PROMOTING)


@dataclass(slots=True)
class Canary:
    """A canary, with what is known of it after its end.

    Attributes:
        managed: the stream.
        text: the config of its revision.
        options: how that is deployed when it is promoted.
        settings: how it is judged.
        judgement: of the change.
        base: the number of the revision that it is compared with.
        began_at: when it began, Unix ns.
        notes: what is to be known of the comparison, in sentences.
        run: its run, which may have ended.
        buffers: the stream's buffers.
        state: its state.
        reason: why it is in that state, in words.
    """

    managed: ManagedStream
    text: str
    options: ChangeOptions
    settings: CanarySettings
    judgement: ChangeImpact
    base: int
    began_at: int
    notes: tuple[str, ...]
    run: CanaryRun
    buffers: tuple[ComparedBuffer, ...] = ()
    state: CanaryState = CanaryState.STARTING
    reason: str = ""
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def to_document(self) -> dict[str, Any]:
        """Return the canary for JSON, without secrets."""
        with self.lock:
            if self.state == CanaryState.STARTING and self.run.has_started:
                self.state = CanaryState.COMPARING
            counts, settings, run = self.run.comparison.counts, self.settings, self.run
            document = {
                "state": str(self.state),
                "outcome": "" if run.outcome is None else str(run.outcome),
                "reason": self.reason,
                "author": self.options.author,
                "began_at": format_rfc3339(self.began_at),
                "base_revision": self.base,
                "judgement": self.judgement.as_dict(),
                "notes": list(self.notes),
                "windows": settings.windows,
                "max_differences": settings.max_differences,
                "promote": "auto" if settings.is_automatic else "manual",
                "within": format_duration(settings.timeout),
                "ignored": list(settings.ignored),
                "compared": counts.windows,
                "different": counts.differences,
                "changed": counts.changed,
                "missing": counts.missing,
                "added": counts.added,
                "waiting": run.comparison.waiting,
                "behind": run.micro_batches_behind,
                "differences": [
                    one.to_document(self.buffers)
                    for one in run.comparison.differences[:MAX_SHOWN_DIFFERENCES]
                ],
            }
        redacted: dict[str, Any] = self.managed.redact_value(document)
        return redacted


def _list_buffers(plan: Plan) -> tuple[ComparedBuffer, ...]:
    labels = [one.label for one in plan.buffers] or [""]
    return tuple(
        ComparedBuffer(label, not window.count_based)
        for label, window in zip(labels, plan.windows, strict=True)
    )


class Canaries:
    """The canaries of a service's streams. Many threads may call its methods."""

    def __init__(self, registry: Registry, deploys: Deploys) -> None:
        """Take the streams; what a killed service has left of canaries is deleted."""
        self._registry, self._deploys = registry, deploys
        self._directory = registry.checkpoints.service_directory / CANARY_DIRECTORY
        shutil.rmtree(self._directory, ignore_errors=True)
        self._lock = threading.Lock()
        self._canaries: dict[str, Canary] = {}
        self._is_closed = False

    def begin(
        self, stream_id: str, text: str, options: ChangeOptions, settings: CanarySettings
    ) -> Canary:
        """Begin a canary of a changed config beside a stream that runs.

        Args:
            stream_id: the stream.
            text: the config; secrets that it has marks for are taken from the one that runs.
            options: how it is deployed when it is promoted.
            settings: how it is judged.

        Raises:
            UnknownStreamError: there is none of that id.
            RefusedError: the stream is a file's, does not run, has a canary, or cannot have one.
            BadConfigError: the config has findings.
        """
        registry = self._registry
        with registry.locks.hold(stream_id):
            registry.check_open()
            managed = registry.get(stream_id)
            check_is_of_api(managed)
            self._check_free(stream_id)
            text = redacted_text.restore_secrets(text, managed.revision.text)
            config = registry.reader.read_api_config(text, stream_id, options.chilled)
            run = managed.run
            host = run.host if run is not None else None
            if host is None or not managed.lifecycle.is_active:
                raise RefusedError(
                    f"{stream_id} is {managed.lifecycle.state}, and a canary runs beside a stream "
                    "that runs: resume it first"
                )
            judgement = judge(managed.config, config)
            plan = make_plan(config, name=stream_id)
            try:
                check_change(judgement)
                notes = check_calls(plan, settings.allowed_calls)
                canary_run = CanaryRun(
                    host,
                    plan,
                    self._directory / stream_id,
                    settings,
                    managed.log,
                    moves_closes=judgement.effect == Effect.MIGRATE,
                )
            except StreamerError as e:
                raise RefusedError(str(e), judgement) from None
            notes += list_output_changes(config, managed.config)
            canary = Canary(
                *(managed, text, options, settings, judgement, managed.revision.number),
                began_at=registry.clock(),
                notes=tuple(notes),
                run=canary_run,
                buffers=_list_buffers(plan),
            )
            canary_run.on_end = lambda run: self._finish(canary)
            with self._lock:
                self._canaries[stream_id] = canary
            registry.audit.record(options.author, "canary", stream=stream_id)
            canary_run.start()
            return canary

    def find(self, stream_id: str) -> Canary | None:
        """Return the newest canary of a stream; None where it has had none.

        Raises:
            UnknownStreamError: there is no such stream.
        """
        managed = self._registry.get(stream_id)
        with self._lock:
            canary = self._canaries.get(stream_id)
        return canary if canary is not None and canary.managed is managed else None

    def _get(self, stream_id: str) -> Canary:
        canary = self.find(stream_id)
        if canary is None:
            raise RefusedError(_MISSING_TEXT)
        return canary

    def promote(self, stream_id: str, author: str) -> ChangeImpact:
        """Deploy the revision of a canary, whatever is compared so far.

        Args:
            stream_id: the stream.
            author: who wants it.

        Raises:
            RefusedError: there is none to promote, or the stream has changed meanwhile.
            StartError: the revision does not start; the stream runs as before.
        """
        canary = self._get(stream_id)
        with canary.lock:
            if canary.state in (CanaryState.PROMOTED, CanaryState.PROMOTING):
                raise RefusedError(f"the canary of {stream_id} is promoted already")
            if canary.state == CanaryState.DROPPED:
                raise RefusedError(f"the canary of {stream_id} is dropped; begin another one")
            canary.state = CanaryState.PROMOTING
        canary.run.stop()
        return self._promote(canary, author)

    def drop(self, stream_id: str, author: str) -> Canary:
        """End a canary; the running revision stays.

        Raises:
            RefusedError: there is none that could be dropped.
        """
        canary = self._get(stream_id)
        with canary.lock:
            if canary.state in (CanaryState.PROMOTED, CanaryState.PROMOTING, CanaryState.DROPPED):
                raise RefusedError(f"the canary of {stream_id} is {canary.state} already")
            canary.state = CanaryState.DROPPED
            canary.reason = "somebody has dropped it"
        canary.run.stop()
        self._registry.audit.record(author, "drop canary", stream=stream_id)
        return canary

    def close(self) -> None:
        """End all canaries, and wait until nothing is left of them."""
        self._is_closed = True
        with self._lock:
            canaries = list(self._canaries.values())
        for canary in canaries:
            canary.run.request_stop()
        for canary in canaries:
            canary.run.stop()

    def _check_free(self, stream_id: str) -> None:
        with self._lock:
            canary = self._canaries.get(stream_id)
        if canary is not None and (canary.state in _OPEN_STATES or canary.run.outcome is None):
            raise RefusedError(
                f"{stream_id} has a canary already; promote or drop it first "
                f"(`streamer canary {stream_id} drop`)"
            )

    def _finish(self, canary: Canary) -> None:
        """Decide by the rule what becomes of a canary whose run has ended, in its thread."""
        run, settings = canary.run, canary.settings
        with canary.lock:
            if canary.state in (CanaryState.PROMOTING, CanaryState.DROPPED):
                return  # Somebody has decided.
            outcome = run.outcome or Outcome.FAILED
            canary.reason = run.reason
            is_promoted = outcome == Outcome.COMPARED and settings.is_automatic
            if is_promoted and not self._is_closed:
                canary.state = CanaryState.PROMOTING
            elif outcome in _WAITING_OUTCOMES and not settings.is_automatic:
                canary.state = CanaryState.WAITING
            else:
                canary.state = CanaryState.DROPPED
        self._log_end(canary, outcome)
        if canary.state == CanaryState.PROMOTING:
            try:
                self._promote(canary, canary.options.author)
            except StreamerError as e:
                canary.managed.log("ERROR", f"The canary is not promoted: {e}", {})

    def _promote(self, canary: Canary, author: str) -> ChangeImpact:
        managed, stream_id = canary.managed, canary.managed.stream_id
        try:
            with self._registry.locks.hold(stream_id):
                current = self._registry.get(stream_id)
                if current is not managed or managed.revision.number != canary.base:
                    raise RefusedError(
                        f"{stream_id} has changed since the canary began: it ran beside revision "
                        f"{canary.base}; begin another one"
                    )
                judgement = self._deploys.update(
                    stream_id, canary.text, canary.options, "promote canary"
                )
        except BaseException as e:
            with canary.lock:
                canary.state, canary.reason = CanaryState.DROPPED, f"it is not promoted: {e}"
            raise
        with canary.lock:
            canary.state = CanaryState.PROMOTED
            canary.reason = f"revision {managed.revision.number} runs"
        return judgement

    def _log_end(self, canary: Canary, outcome: Outcome) -> None:
        counts = canary.run.comparison.counts
        fields: Mapping[str, Any] = {
            "outcome": str(outcome),
            "windows": counts.windows,
            "different": counts.differences,
            **({"reason": canary.reason} if canary.reason else {}),
        }
        is_bad = outcome in (Outcome.FAILED, Outcome.DIFFERENT)
        canary.managed.log("WARN" if is_bad else "INFO", "The canary has ended", fields)
