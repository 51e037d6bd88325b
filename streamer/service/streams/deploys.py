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
from streamer.errors import StreamerError
from streamer.plan.judgement import Judgement, judge
from streamer.service.imported import with_imports
from streamer.service.replacing import OnReset
from streamer.service.streams import raw, typed
from streamer.service.streams.faults import (
    BadConfigError,
    BadRequestError,
    RefusedError,
    StartError,
    StreamExistsError,
)
from streamer.service.streams.ids import stream_id_problem
from streamer.service.streams.managed import Managed
from streamer.service.streams.registry import AT_ONCE, Registry
from streamer.service.streams.run import plan_of
from streamer.service.streams.store import API, ENDED, PAUSED, RUNNING, Draft, Revision
from streamer.service.streams.supervisor import ACTIVE, Change, State

if TYPE_CHECKING:
    from streamer.spark.checkpoint import Elsewhere

_STAYS: Final = "the former revision stays"
_STUCK_TIMEOUT_S: Final = 1.0
_WANTED: Final = {State.PAUSED: PAUSED, State.ENDED: ENDED}


@dataclass(frozen=True, slots=True)
class Wish:
    """How a stream is to be changed.

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

    def create(self, stream_id: str, text: str, wish: Wish) -> None:
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
        with registry.locks.of(stream_id):
            registry.check_open()
            if stream_id in registry.streams():
                raise StreamExistsError(stream_id)
            config = registry.reader.of_api(text, stream_id, wish.chilled)
            # A stream of a file that is not there any more may have left something.
            self._store.remove(stream_id)
            registry.checkpoints.clear(stream_id)
            draft = Draft(text, wish.author, API, registry.clock(), wish.chilled)
            revision = self._store.deploy(stream_id, draft)
            managed = registry.made(stream_id, config, revision)
            try:
                managed.supervisor.begin()
            except Exception as e:
                registry.forget(managed)
                raise start_error(managed, e, "") from None
            self._store.prove(stream_id, revision.number)
            managed.revision = replace(revision, proved=True)
            registry.add(managed)
            registry.audit.note(wish.author, "create", stream=stream_id, revision=revision.number)

    def update(self, stream_id: str, text: str, wish: Wish, action: str = "update") -> Judgement:
        """Let a stream run another config.

        Args:
            stream_id: the stream.
            text: the config; secrets that it has marks for are taken from the one before.
            wish: how.
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
        with registry.locks.of(stream_id):
            registry.check_open()
            managed = registry.get(stream_id)
            check_of_api(managed)
            text = typed.with_secrets(text, managed.revision.text)
            config = registry.reader.of_api(text, stream_id, wish.chilled)
            draft = Draft(text, wish.author, API, registry.clock(), wish.chilled)
            judgement = self.switch(managed, config, draft, wish)
            facts = {"stream": stream_id, "revision": managed.revision.number}
            effect = str(judgement.effect or "none")
            registry.audit.note(wish.author, action, **facts, effect=effect)
            return judgement

    def switch(
        self,
        managed: Managed,
        config: Config,
        draft: Draft,
        wish: Wish,
        read: Iterable[str] = (),
    ) -> Judgement:
        """Let another revision take the place of a stream's; whoever calls holds its lock.

        Args:
            managed: the stream.
            config: what is to run.
            draft: what is to be deployed.
            wish: how.
            read: files that have changed, and that mappings of the config read.

        Raises:
            RefusedError: the change would lose what nobody said may be lost.
            StartError: it does not start; the stream is as it was.
        """
        stream_id, supervisor = managed.stream_id, managed.supervisor
        try:
            judgement = with_imports(judge(managed.config, config), read)
        except StreamerError as e:
            raise start_error(managed, e, _STAYS) from None
        on_reset = check_reset(judgement, wish.on_reset)
        before, was = (managed.config, managed.revision), supervisor.state
        wanted = _WANTED.get(was, RUNNING)
        draft = replace(draft, judgement=judgement.as_dict())
        # Should the program end now, the next start finds a revision that has not proved itself,
        # and goes back to the former one when it does not start.
        revision = self._store.deploy(stream_id, draft)
        name = f"revision {revision.number}"
        change = Change(config, judgement, on_reset, name, wish.probation)
        try:
            if not supervisor.replace(change):
                self._start_with(managed, change, revision, was)
        except Exception as e:
            managed.take(*before)
            self._store.revert(stream_id, before[1].number, wanted)
            if supervisor.state not in ACTIVE and was in ACTIVE:
                supervisor.begin(patient=True)
            elif was not in ACTIVE:
                supervisor.stop(state=was)
            raise start_error(managed, e, _STAYS) from None
        self._store.prove(stream_id, revision.number)
        managed.take(config, replace(revision, proved=True))
        if was == State.PAUSED:
            self._store.set_wanted(stream_id, PAUSED)
        return judgement

    def _start_with(self, managed: Managed, change: Change, revision: Revision, was: State) -> None:
        """Start a stream that does not run just now with another revision; not a paused one."""
        if change.judgement.resets:
            if change.on_reset == OnReset.DRAIN:
                raise RefusedError(
                    f"open windows of a stream that is {was} cannot be let out: resume it first, "
                    "or ask for on_reset=discard"
                )
            held = self._registry.checkpoints.held(managed.stream_id, managed.log)
            renew(held, change.config, managed.stream_id, change)
        managed.supervisor.stop(state=was)
        managed.take(change.config, revision)
        if was != State.PAUSED:
            managed.supervisor.begin()

    def patch(self, stream_id: str, text: str, wish: Wish) -> Judgement:
        """Merge a document into a stream's config; see `update`."""
        registry = self._registry
        with registry.locks.of(stream_id):
            managed = registry.get(stream_id)
            check_of_api(managed)
            former = managed.revision.text
            patch = raw.document(typed.with_secrets(text, former), "patch")
            whole = raw.written(raw.merged(raw.document(former), patch))
            wish = replace(wish, chilled=wish.chilled or managed.revision.chilled)
            return self.update(stream_id, whole, wish, "patch")

    def rollback(self, stream_id: str, number: int | None, wish: Wish) -> Judgement:
        """Deploy an older revision again, as a new one.

        Args:
            stream_id: the stream.
            number: the revision; when None, the newest that is another than what is deployed, and
                has not failed on probation.
            wish: how.

        Raises:
            BadRequestError: there is no such revision.
        """
        registry = self._registry
        with registry.locks.of(stream_id):
            now = registry.get(stream_id).revision
            revisions = self._store.revisions(stream_id)
            older = (one for one in revisions if one.proved and one.text != now.text)
            wanted = (one for one in revisions if one.number == number)
            found = next(older if number is None else wanted, None)
            if found is None:
                kept = ", ".join(str(one.number) for one in revisions)
                what = "no older revision that ran" if number is None else f"no revision {number}"
                raise BadRequestError(f"there is {what} of {stream_id}; it has {kept}")
            wish = replace(wish, chilled=found.chilled)
            return self.update(stream_id, found.text, wish, "rollback")

    def delete(self, stream_id: str, wish: Wish) -> None:
        """Stop a stream, and remove it with its checkpoint and its revisions."""
        registry = self._registry
        with registry.locks.of(stream_id):
            registry.check_open()
            managed = registry.get(stream_id)
            check_of_api(managed)
            timeout = wish.timeout
            if timeout is None and managed.view.now().problem:
                # What is stuck will not finish in time, and nothing of it is kept.
                timeout = _STUCK_TIMEOUT_S
            managed.supervisor.stop(timeout)
            registry.forget(managed)
            registry.audit.note(wish.author, "delete", stream=stream_id)

    def replace_all(self, texts: Mapping[str, str], wish: Wish) -> None:
        """Let the streams of the API be these; all others of it are removed.

        Raises:
            BadConfigError: configs have findings; nothing is changed.
            RefusedError: one of them is a file's; nothing is changed.
            BadRequestError: an id is none or the service's own, or something went wrong with some;
                the text says what.
        """
        registry = self._registry
        there = registry.streams()
        wrong: list[str] = []
        for stream_id, text in texts.items():
            problem = stream_id_problem(stream_id, registry.root_path)
            if problem is not None:
                raise BadRequestError(problem)
            if stream_id in there:
                check_of_api(there[stream_id])
                text = typed.with_secrets(text, there[stream_id].revision.text)
            try:
                registry.reader.of_api(text, stream_id, wish.chilled)
            except BadConfigError as e:
                wrong += [f"stream '{stream_id}': {finding}" for finding in e.findings]
        if wrong:
            raise BadConfigError(wrong)
        jobs: list[tuple[str, str, Callable[[], Any]]] = [
            (one, "delete", partial(self.delete, one, wish))
            for one, managed in there.items()
            if managed.of_api and one not in texts
        ]
        for one, text in texts.items():
            what, change = ("update", self.update) if one in there else ("create", self.create)
            jobs.append((one, what, partial(change, one, text, wish)))
        with ThreadPoolExecutor(AT_ONCE, "replace") as together:
            failures = [one for one in together.map(_tried, jobs) if one]
        if failures:
            raise BadRequestError("\n".join(failures))

    def pause(self, stream_id: str, wish: Wish) -> None:
        """Stop a stream for now; its open windows and offsets stay."""
        registry = self._registry
        with registry.locks.of(stream_id):
            registry.check_open()
            managed = registry.get(stream_id)
            self._store.set_wanted(stream_id, PAUSED)
            managed.supervisor.stop(wish.timeout, State.PAUSED)
            registry.audit.note(wish.author, "pause", stream=stream_id)

    def resume(self, stream_id: str, wish: Wish) -> None:
        """Start a stream that is paused, has failed or has ended.

        Raises:
            StartError: it does not start, and stays what it is.
        """
        registry = self._registry
        with registry.locks.of(stream_id):
            registry.check_open()
            managed = registry.get(stream_id)
            was = managed.supervisor.state
            try:
                managed.supervisor.begin()
            except Exception as e:
                managed.supervisor.stop(state=was)
                raise start_error(managed, e, f"it is still {was}") from None
            self._store.set_wanted(stream_id, RUNNING)
            registry.audit.note(wish.author, "resume", stream=stream_id)


def check_of_api(managed: Managed) -> None:
    """See that a stream is the API's to change.

    Raises:
        RefusedError: it is a file's.
    """
    if not managed.of_api:
        raise RefusedError(
            f"the stream {managed.stream_id} is that of the file {managed.revision.source}; "
            "change the file"
        )


def check_reset(judgement: Judgement, on_reset: str) -> OnReset | None:
    """See that nothing is lost which nobody said may be; return what becomes of open windows.

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
            f"the change loses {' and '.join(judgement.loses)}; ask for it with on_reset=drain to "
            "let open windows out first, or on_reset=discard to drop them",
            judgement,
        )
    return OnReset(on_reset)


def renew(held: str | Elsewhere, config: Config, stream_id: str, change: Change) -> None:
    """Let the checkpoint of a stream that does not run begin anew, from the offsets it has."""
    from streamer.spark.checkpoint import Checkpoint
    from streamer.spark.generations import next_generation, sweep

    checkpoint = Checkpoint(held)
    try:
        fingerprint = plan_of(config, stream_id, "INFO").fingerprint
        next_generation(checkpoint, fingerprint, change.judgement.keeps_input, change.revision)
        sweep(checkpoint)
    finally:
        checkpoint.close()


def start_error(managed: Managed, error: Exception, instead: str) -> StartError:
    """Log why a stream does not start, and return what is said of it."""
    known = isinstance(error, StreamerError)
    text = str(error) if known else f"{type(error).__name__}: {error}"
    shown = managed.redacted(text)
    managed.log("ERROR", f"The stream does not start: {shown}", {})
    return StartError(f"{shown}; {instead}" if instead else shown)


def _tried(job: tuple[str, str, Callable[[], Any]]) -> str:
    stream_id, what, action = job
    try:
        action()
    except StreamerError as e:
        return f"failed to {what} stream: {stream_id}: {e}"
    return ""
