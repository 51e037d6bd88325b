"""Changes of streams: made, given another config, stopped and removed, while all others run.

A stream of a file is changed by its file alone; one that came by API is the API's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from streamer.config import Config
from streamer.core.errors import StreamerError
from streamer.plan import make_plan
from streamer.plan.change_impact import ChangeImpact, judge
from streamer.service.fleet import redacted_document, redacted_text
from streamer.service.fleet.deployment_store import (
    API_SOURCE,
    ENDED,
    PAUSED,
    RUNNING,
    Revision,
    RevisionDraft,
)
from streamer.service.fleet.errors import (
    BadConfigError,
    BadRequestError,
    RefusedError,
    StartError,
    StreamExistsError,
)
from streamer.service.fleet.lifecycle import ACTIVE, LifecycleState
from streamer.service.fleet.managed_stream import ManagedStream
from streamer.service.fleet.registry import MAX_CONCURRENT_STARTS, Registry
from streamer.service.fleet.stream_ids import stream_id_problem
from streamer.service.run.import_changes import with_import_changes
from streamer.service.run.revision_switch import OnReset, RevisionChange

if TYPE_CHECKING:
    from streamer.spark.checkpoint.checkpoint import RemoteCheckpoint

_UNCHANGED_NOTE: Final = "the former revision stays"
_STUCK_TIMEOUT_S: Final = 1.0
_DESIRED_STATES: Final = {LifecycleState.PAUSED: PAUSED, LifecycleState.ENDED: ENDED}


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """Options of a change of a stream.

    Attributes:
        author: who wants it; empty when that is not known.
        chilled: whether findings that a config can run with do not matter.
        timeout: seconds for the micro-batch in hand; the config's `shutdown_timeout` when None.
        on_reset: `drain` lets open windows out first where they cannot be kept, `discard` drops
            them; empty for neither.
        probation: seconds in which a revision may fail, so that the former one comes back; None
            for none.
    """

    author: str = ""
    chilled: bool = False
    timeout: float | None = None
    on_reset: str = ""
    probation: float | None = None


class Deploys:
    """Changes streams. Its methods block until that is done; many threads may call them."""

    def __init__(self, registry: Registry) -> None:
        """Take the streams."""
        self._registry = registry
        self._store = registry.store

    def create(self, stream_id: str, text: str, options: ChangeOptions) -> None:
        """Make a stream and start it.

        Raises:
            BadRequestError: the id is none, or is the service's own.
            StreamExistsError: there is one of that id.
            BadConfigError: the config has findings.
            StartError: it does not start; nothing is left of it.
        """
        registry = self._registry
        problem = stream_id_problem(stream_id, registry.root_path)
        if problem is not None:
            raise BadRequestError(problem)
        with registry.locks.hold(stream_id):
            registry.check_open()
            if stream_id in registry.streams():
                raise StreamExistsError(stream_id)
            config = registry.reader.read_api_config(text, stream_id, options.chilled)
            # A stream of a file that is not there any more may have left something.
            self._store.remove(stream_id)
            registry.checkpoints.delete(stream_id)
            draft = RevisionDraft(
                text, options.author, API_SOURCE, registry.clock(), options.chilled
            )
            revision = self._store.deploy(stream_id, draft)
            managed = registry.make_stream(stream_id, config, revision)
            try:
                managed.start()
            except Exception as e:
                registry.delete_stream(managed)
                raise start_error(managed, e, "") from None
            self._store.set_proved(stream_id, revision.number)
            managed.revision = replace(revision, proved=True)
            registry.add(managed)
            registry.audit.record(
                options.author, "create", stream=stream_id, revision=revision.number
            )

    def update(
        self, stream_id: str, text: str, options: ChangeOptions, action: str = "update"
    ) -> ChangeImpact:
        """Let a stream run another config.

        Args:
            stream_id: the stream.
            text: the config; secrets that it has marks for are taken from the one before.
            options: how.
            action: what the audit log calls it.

        Returns:
            What the change comes to.

        Raises:
            UnknownStreamError: there is none of that id.
            RefusedError: it is a file's, or the change would lose what nobody said may be lost.
            BadConfigError: the config has findings; the stream runs as before.
            StartError: it does not start; the stream runs as before.
        """
        registry = self._registry
        with registry.locks.hold(stream_id):
            registry.check_open()
            managed = registry.get(stream_id)
            check_is_of_api(managed)
            text = redacted_text.restore_secrets(text, managed.revision.text)
            config = registry.reader.read_api_config(text, stream_id, options.chilled)
            draft = RevisionDraft(
                text, options.author, API_SOURCE, registry.clock(), options.chilled
            )
            judgement = self.switch(managed, config, draft, options)
            facts = {"stream": stream_id, "revision": managed.revision.number}
            effect = str(judgement.effect or "none")
            registry.audit.record(options.author, action, **facts, effect=effect)
            return judgement

    def switch(
        self,
        managed: ManagedStream,
        config: Config,
        draft: RevisionDraft,
        options: ChangeOptions,
        read: Iterable[str] = (),
    ) -> ChangeImpact:
        """Let another revision take the place of a stream's; whoever calls holds its lock.

        Args:
            managed: the stream.
            config: what is to run.
            draft: what is to be deployed.
            options: how.
            read: files that have changed, and that mappings of the config read.

        Raises:
            RefusedError: the change would lose what nobody said may be lost.
            StartError: it does not start; the stream is as it was.
        """
        stream_id = managed.stream_id
        try:
            judgement = with_import_changes(judge(managed.config, config), read)
        except StreamerError as e:
            raise start_error(managed, e, _UNCHANGED_NOTE) from None
        on_reset = check_reset(judgement, options.on_reset)
        before, former_state = (managed.config, managed.revision), managed.lifecycle.state
        desired_state = _DESIRED_STATES.get(former_state, RUNNING)
        draft = replace(draft, judgement=judgement.as_dict())
        # Should the program end now, the next start finds a revision that has not proved itself,
        # and goes back to the former one when it does not start.
        revision = self._store.deploy(stream_id, draft)
        name = f"revision {revision.number}"
        change = RevisionChange(config, judgement, on_reset, name, options.probation)
        try:
            if not managed.replace(change):
                self._start_revision(managed, change, revision, former_state)
        except Exception as e:
            managed.set_revision(*before)
            self._store.revert(stream_id, before[1].number, desired_state)
            # One that was refused has not been stopped.
            if former_state in ACTIVE and not isinstance(e, RefusedError):
                managed.start(should_retry=True)
            raise start_error(managed, e, _UNCHANGED_NOTE) from None
        self._store.set_proved(stream_id, revision.number)
        managed.set_revision(config, replace(revision, proved=True))
        if former_state == LifecycleState.PAUSED:
            self._store.set_desired_state(stream_id, PAUSED)
        return judgement

    def _start_revision(
        self,
        managed: ManagedStream,
        change: RevisionChange,
        revision: Revision,
        former_state: LifecycleState,
    ) -> None:
        """Start a stream that does not run just now with another revision; not a paused one."""
        if change.judgement.resets:
            if change.on_reset == OnReset.DRAIN:
                raise RefusedError(
                    f"open windows of a stream that is {former_state} cannot be let out: resume it "
                    "first, or ask for on_reset=discard"
                )
            checkpoint_location = self._registry.checkpoints.acquire(managed.stream_id, managed.log)
            begin_new_generation(checkpoint_location, change.config, managed.stream_id, change)
        managed.stop(state=None)
        managed.set_revision(change.config, revision)
        if former_state != LifecycleState.PAUSED:
            managed.start()

    def patch(self, stream_id: str, text: str, options: ChangeOptions) -> ChangeImpact:
        """Merge a document into a stream's config; see `update`."""
        registry = self._registry
        with registry.locks.hold(stream_id):
            managed = registry.get(stream_id)
            check_is_of_api(managed)
            former = managed.revision.text
            patch = redacted_document.parse_document(
                redacted_text.restore_secrets(text, former), "patch"
            )
            whole = redacted_document.format_yaml(
                redacted_document.merge_patch(redacted_document.parse_document(former), patch)
            )
            options = replace(options, chilled=options.chilled or managed.revision.chilled)
            return self.update(stream_id, whole, options, "patch")

    def rollback(self, stream_id: str, number: int | None, options: ChangeOptions) -> ChangeImpact:
        """Deploy an older revision again, as a new one.

        Args:
            stream_id: the stream.
            number: the revision; when None, the newest that is another than what is deployed, and
                has not failed on probation.
            options: how.

        Raises:
            BadRequestError: there is no such revision.
        """
        registry = self._registry
        with registry.locks.hold(stream_id):
            now = registry.get(stream_id).revision
            revisions = self._store.revisions(stream_id)
            older = (one for one in revisions if one.proved and one.text != now.text)
            matching = (one for one in revisions if one.number == number)
            revision = next(older if number is None else matching, None)
            if revision is None:
                numbers = ", ".join(str(one.number) for one in revisions)
                what = "no older revision that ran" if number is None else f"no revision {number}"
                raise BadRequestError(f"there is {what} of {stream_id}; it has {numbers}")
            options = replace(options, chilled=revision.chilled)
            return self.update(stream_id, revision.text, options, "rollback")

    def delete(self, stream_id: str, options: ChangeOptions) -> None:
        """Stop a stream, and remove it with its checkpoint and its revisions."""
        registry = self._registry
        with registry.locks.hold(stream_id):
            registry.check_open()
            managed = registry.get(stream_id)
            check_is_of_api(managed)
            timeout = options.timeout
            if timeout is None and managed.view.current_state().problem:
                # What is stuck will not finish in time, and nothing of it is kept.
                timeout = _STUCK_TIMEOUT_S
            managed.stop(timeout)
            registry.delete_stream(managed)
            registry.audit.record(options.author, "delete", stream=stream_id)

    def replace_all(self, texts: Mapping[str, str], options: ChangeOptions) -> None:
        """Let the streams of the API be these; all others of it are removed.

        Raises:
            BadConfigError: configs have findings; nothing is changed.
            RefusedError: one of them is a file's; nothing is changed.
            BadRequestError: an id is none or the service's own, or something went wrong with some;
                the text says what.
        """
        registry = self._registry
        existing = registry.streams()
        findings: list[str] = []
        for stream_id, text in texts.items():
            problem = stream_id_problem(stream_id, registry.root_path)
            if problem is not None:
                raise BadRequestError(problem)
            if stream_id in existing:
                check_is_of_api(existing[stream_id])
                text = redacted_text.restore_secrets(text, existing[stream_id].revision.text)
            try:
                registry.reader.read_api_config(text, stream_id, options.chilled)
            except BadConfigError as e:
                findings += [f"stream '{stream_id}': {finding}" for finding in e.findings]
        if findings:
            raise BadConfigError(findings)
        jobs: list[tuple[str, str, Callable[[], Any]]] = [
            (one, "delete", partial(self.delete, one, options))
            for one, managed in existing.items()
            if managed.is_of_api and one not in texts
        ]
        for one, text in texts.items():
            what, change = ("update", self.update) if one in existing else ("create", self.create)
            jobs.append((one, what, partial(change, one, text, options)))
        with ThreadPoolExecutor(MAX_CONCURRENT_STARTS, "replace") as pool:
            failures = [one for one in pool.map(_run_job, jobs) if one]
        if failures:
            raise BadRequestError("\n".join(failures))

    def pause(self, stream_id: str, options: ChangeOptions) -> None:
        """Stop a stream for now; its open windows and offsets stay."""
        registry = self._registry
        with registry.locks.hold(stream_id):
            registry.check_open()
            managed = registry.get(stream_id)
            self._store.set_desired_state(stream_id, PAUSED)
            managed.stop(options.timeout, LifecycleState.PAUSED)
            registry.audit.record(options.author, "pause", stream=stream_id)

    def resume(self, stream_id: str, options: ChangeOptions) -> None:
        """Start a stream that is paused, has failed or has ended.

        Raises:
            StartError: it does not start, and stays what it is.
        """
        registry = self._registry
        with registry.locks.hold(stream_id):
            registry.check_open()
            managed = registry.get(stream_id)
            former_state = managed.lifecycle.state
            try:
                managed.start()
            except Exception as e:
                raise start_error(managed, e, f"it is still {former_state}") from None
            self._store.set_desired_state(stream_id, RUNNING)
            registry.audit.record(options.author, "resume", stream=stream_id)


def check_is_of_api(managed: ManagedStream) -> None:
    """Check that a stream is the API's to change.

    Raises:
        RefusedError: it is a file's.
    """
    if not managed.is_of_api:
        raise RefusedError(
            f"the stream {managed.stream_id} is that of the file {managed.revision.source}; "
            "change the file"
        )


def check_reset(judgement: ChangeImpact, on_reset: str) -> OnReset | None:
    """Check that a change loses only what the request allows; return how open windows are reset.

    Raises:
        RefusedError: something would be.
        BadRequestError: what is asked for is none of what there is.
    """
    if on_reset not in ("", *OnReset):
        raise BadRequestError(f"on_reset is {on_reset!r}; expected drain or discard")
    if not judgement.resets:
        return None
    if not on_reset:
        raise RefusedError(
            f"the change loses {' and '.join(judgement.losses)}; ask for it with on_reset=drain "
            f"to emit open windows first, or on_reset=discard to drop them",
            judgement,
        )
    return OnReset(on_reset)


def begin_new_generation(
    checkpoint_location: str | RemoteCheckpoint,
    config: Config,
    stream_id: str,
    change: RevisionChange,
) -> None:
    """Let the checkpoint of a stream that does not run begin anew, from the offsets it has."""
    from streamer.spark.checkpoint.checkpoint import Checkpoint
    from streamer.spark.checkpoint.generations import begin_discard, load_running

    checkpoint = Checkpoint(checkpoint_location)
    try:
        fingerprint = make_plan(config, name=stream_id).fingerprint
        running = load_running(checkpoint)
        plan = None if running is None else running[1]
        begin_discard(checkpoint, plan, fingerprint, change.judgement.keeps_input, change.revision)
    finally:
        checkpoint.close()


def start_error(managed: ManagedStream, error: Exception, consequence: str) -> StartError:
    """Log why a stream does not start, and return the error for the API."""
    known = isinstance(error, StreamerError)
    text = str(error) if known else f"{type(error).__name__}: {error}"
    redacted = managed.redact_text(text)
    managed.log("ERROR", f"The stream does not start: {redacted}", {})
    return StartError(f"{redacted}; {consequence}" if consequence else redacted)


def _run_job(job: tuple[str, str, Callable[[], Any]]) -> str:
    stream_id, what, action = job
    try:
        action()
    except StreamerError as e:
        return f"failed to {what} stream: {stream_id}: {e}"
    return ""
