"""The streams that there are, and what all who change them need."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from streamer.config import Config
from streamer.config.resources import ResourceText
from streamer.endpoints.registry import Endpoints
from streamer.engine.delivery import LogLine
from streamer.errors import StreamerError
from streamer.plan.plan import cores
from streamer.service.streams.audit import Audit
from streamer.service.streams.checkpoints import Checkpoints
from streamer.service.streams.configs import Reader
from streamer.service.streams.faults import RefusedError, UnknownStreamError
from streamer.service.streams.locks import Locks
from streamer.service.streams.managed import Make, Managed
from streamer.service.streams.store import API, ENDED, Draft, Revision, Store, StoredResource
from streamer.service.streams.supervisor import Gate, Restarts, State
from streamer.service.view import StreamView

# Where many streams share the machine, all looks at them together come to about so many a second.
_LOOK: Final = 0.1
_LOOKS: Final = 0.02
_PACE: Final = 0.025
# Those that are busy have as many looks again for themselves: what comes is to be seen soon.
_BUSY_PACE: Final = 0.05
_FEW: Final = 4

AT_ONCE: Final = 4
"""Streams that are started at the same time."""

_SEES: Final = 1.0
# A small micro-batch is so many CPU seconds; all together are to leave half of the cores free.
_MICRO_BATCH: Final = 0.25
_LONGEST: Final = 10.0


class Paces(NamedTuple):
    """How often streams that share a machine look for data, and take it.

    Attributes:
        idle: the rest between two looks that find nothing, of a stream that delivers nothing, s.
        busy: the same, of one that has delivered something of late, s.
        patience: how long data waits at least, s.
    """

    idle: float
    busy: float
    patience: float


def paces(streams: int, busy: int, cores: int) -> Paces:
    """Return how often streams that share a machine look for data, and take it.

    Args:
        streams: how many there are.
        busy: how many of them have delivered something of late.
        cores: what they share.
    """
    idle = _PACE * streams if streams > _FEW else 0.0
    patience = min(busy * _MICRO_BATCH / (cores / 2), _LONGEST) if busy > _FEW else 0.0
    return Paces(idle, min(idle, _BUSY_PACE * busy), patience)


class Registry:
    """All streams. It can be used from many threads.

    Attributes:
        store: what is deployed.
        checkpoints: where the streams keep theirs.
        audit: who did what.
        locks: whoever changes a stream holds the one of its id.
        clock: the wall clock, Unix ns.
    """

    def __init__(
        self,
        reader: Reader,
        store: Store,
        checkpoints: Checkpoints,
        make: Make,
        log: LogLine,
        restarts: Restarts,
        clock: Callable[[], int] = time.time_ns,
        prefixed: bool = True,
    ) -> None:
        """Begin with none.

        Args:
            reader: reads configs.
            store: what is deployed.
            checkpoints: where the streams keep theirs.
            make: makes runs.
            log: takes lines of the service's log.
            restarts: how often a stream that fails is started again.
            clock: the wall clock, Unix ns.
            prefixed: whether what a stream serves over HTTP stands behind its id.
        """
        self.store = store
        self.checkpoints = checkpoints
        self.audit = Audit(checkpoints.own / "audit.jsonl", log, clock)
        self.locks = Locks()
        self.clock = clock
        self.log = log
        self._reader = reader
        self._make = make
        self._restarts = restarts
        self._lock = threading.Lock()
        self._streams: dict[str, Managed] = {}
        self._prefixed = prefixed
        # Those too that are about to start, and are not among the others yet.
        self._all: weakref.WeakSet[Managed] = weakref.WeakSet()
        self._closing = False
        self._cores = cores(reader.root.spark["master"])
        self._paced = 0.0
        self._gate = Gate(AT_ONCE)
        self.resources = [self.text_of(one) for one in store.resources()]

    @property
    def root_path(self) -> str:
        """What the service's paths are served behind as well."""
        return str(self._reader.root.http["root_path"])

    @property
    def reader(self) -> Reader:
        """Reads configs, with the resources that came by API."""
        return self.reader_with(self.resources)

    def reader_with(self, resources: Sequence[ResourceText]) -> Reader:
        """Return a reader with other resources of the API."""
        return replace(self._reader, resources=(*self._reader.resources, *resources))

    def text_of(self, resource: StoredResource) -> ResourceText:
        """Return a resource that came by API as configs are read with it."""
        allowance = self._reader.allowance
        name = f"{resource.kind} {resource.label}"
        env = os.environ if allowance.local else {}
        return ResourceText(name, resource.text, env, allowance.permissions)

    def read(self, stream_id: str, revision: Revision, reader: Reader | None = None) -> Config:
        """Read the config of a revision.

        Raises:
            BadConfigError: it has findings.
        """
        reader = reader or self.reader
        if revision.source == API:
            return reader.of_api(revision.text, stream_id, revision.chilled)
        return reader.of_file(revision.text, revision.source)

    def streams(self) -> dict[str, Managed]:
        """Return the streams by id."""
        with self._lock:
            return dict(sorted(self._streams.items()))

    def views(self) -> dict[str, StreamView]:
        """Return what is known of each stream, by id."""
        return {name: managed.view for name, managed in self.streams().items()}

    def get(self, stream_id: str) -> Managed:
        """Return a stream.

        Raises:
            UnknownStreamError: there is none of that id.
        """
        with self._lock:
            found = self._streams.get(stream_id)
        if found is None:
            raise UnknownStreamError(stream_id)
        return found

    def made(self, stream_id: str, config: Config, revision: Revision) -> Managed:
        """Return a stream that is stopped, and not among the others yet."""
        managed = Managed(
            stream_id,
            config,
            revision,
            str(self.checkpoints.of(stream_id)),
            self._make,
            self.log,
            self._restarts,
            self._looked_after,
            self._gate,
            self._told,
            self._went_back,
        )
        with self._lock:
            self._all.add(managed)
        managed.beside = lambda: self._served_beside(stream_id)
        managed.prefixed = self._prefixed
        return managed

    def _served_beside(self, stream_id: str) -> list[tuple[str, Endpoints]]:
        """Return what other streams serve, by their ids."""
        with self._lock:
            others = [one for one in self._all if one.stream_id != stream_id]
        return [(one.stream_id, one.view.endpoints) for one in others if not one.view.is_over]

    def add(self, managed: Managed) -> None:
        """Put a stream among the others."""
        with self._lock:
            self._streams[managed.stream_id] = managed
        self._repace()

    def forget(self, managed: Managed) -> None:
        """Let a stream that is stopped be gone, with all that it has."""
        stream_id = managed.stream_id
        managed.supervisor.close()
        with self._lock:
            self._streams.pop(stream_id, None)
        self.store.remove(stream_id)
        try:
            self.checkpoints.clear(stream_id)
        except StreamerError as e:
            self.log("WARN", f"The checkpoint stays for now: {e}", {"stream": stream_id})
        self._repace()

    def leave(self, managed: Managed) -> None:
        """Let a stream that is stopped be gone, and leave what it has for when it comes back."""
        managed.supervisor.close()
        with self._lock:
            self._streams.pop(managed.stream_id, None)
        self._repace()

    def check_open(self) -> None:
        """See that the service is not about to end.

        Raises:
            RefusedError: it is.
        """
        if self._closing:
            raise RefusedError("the service is stopping")

    def closing(self) -> list[Managed]:
        """Take no more changes; return the streams."""
        self._closing = True
        return list(self.streams().values())

    def _looked_after(self) -> float:
        """Return the seconds between two looks at a stream; now and then, see how busy all are."""
        if time.monotonic() - self._paced >= _SEES:
            self._repace()
        return max(_LOOK, _LOOKS * len(self._streams))

    def _repace(self) -> None:
        self._paced = time.monotonic()
        streams = self.streams().values()
        found = paces(len(streams), sum(one.supervisor.busy for one in streams), self._cores)
        for managed in streams:
            rest = found.busy if managed.supervisor.busy else found.idle
            managed.supervisor.pace(rest, found.patience)

    def _told(self, stream_id: str, state: State) -> None:
        if state == State.ENDED:
            self.store.set_wanted(stream_id, ENDED)

    def _went_back(self, managed: Managed, config: Config) -> None:
        """Note that a revision has failed on probation: what ran before it is deployed again."""
        stream_id, failed = managed.stream_id, managed.revision.number
        former = [one for one in self.store.revisions(stream_id) if one.number < failed]
        if not former:
            return
        last = former[0]
        self.store.prove(stream_id, failed, False)
        draft = Draft(last.text, "", last.source, self.clock(), last.chilled)
        revision = self.store.deploy(stream_id, draft)
        self.store.prove(stream_id, revision.number)
        managed.take(config, replace(revision, proved=True))
        facts = {"stream": stream_id, "revision": revision.number, "failed": failed}
        self.audit.note("streamer", "rollback", **facts)
