"""The streams that there are, and what all who change them need."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from streamer.config import Config
from streamer.config.file import read_file
from streamer.config.resources import ResourceText
from streamer.connectors.http_server.registry import EndpointRegistry
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.plan.plan import count_cores
from streamer.service.fleet.audit_log import AuditLog
from streamer.service.fleet.checkpoints import Checkpoints
from streamer.service.fleet.config_reader import ConfigReader
from streamer.service.fleet.deployment_store import (
    API_SOURCE,
    ENDED,
    DeploymentStore,
    Revision,
    RevisionDraft,
    StoredResource,
)
from streamer.service.fleet.errors import RefusedError, UnknownStreamError
from streamer.service.fleet.managed_stream import FleetContext, ManagedStream
from streamer.service.fleet.named_locks import NamedLocks
from streamer.service.fleet.refused_files import RefusedFiles, redact_findings
from streamer.service.fleet.restart_schedule import RestartPolicy, StartLimiter
from streamer.service.fleet.run_handle import StartRun
from streamer.service.fleet.stream_labels import StreamLabels
from streamer.service.monitoring.stream_summary import summarise_stream
from streamer.service.monitoring.stream_view import StreamView

# Where many streams share the machine, all looks at them together come to about so many a second.
_MIN_POLL_INTERVAL_S: Final = 0.1
_POLL_INTERVAL_PER_STREAM_S: Final = 0.02

MAX_CONCURRENT_STARTS: Final = 4
"""Streams that are started at the same time."""

_MIN_INTERVALS_UPDATE_S: Final = 1.0
# A small micro-batch is so many CPU seconds; all together are to leave half of the cores free.
_MICRO_BATCH_CPU_S: Final = 0.15
_MAX_MIN_INTERVAL_S: Final = 10.0


def compute_min_interval(busy: int, cores: int) -> float:
    """Return the shortest time between two micro-batches of streams that share a machine, s.

    Args:
        busy: how many of them have delivered something of late.
        cores: what they share.
    """
    if busy <= 1:
        return 0.0
    return min(busy * _MICRO_BATCH_CPU_S / (cores / 2), _MAX_MIN_INTERVAL_S)


class Registry:
    """All streams. It can be used from many threads.

    Attributes:
        store: what is deployed.
        checkpoints: where the streams keep theirs.
        audit: who did what.
        locks: whoever changes a stream holds the one of its id.
        clock: the wall clock, Unix ns.
        refused_files: the files that are not right.
        labels: of the streams.
    """

    def __init__(
        self,
        reader: ConfigReader,
        store: DeploymentStore,
        checkpoints: Checkpoints,
        start_run: StartRun,
        log: LogLine,
        restarts: RestartPolicy,
        clock: Callable[[], int] = time.time_ns,
        prefixed: bool = True,
    ) -> None:
        """Begin with none.

        Args:
            reader: reads configs.
            store: what is deployed.
            checkpoints: where the streams keep theirs.
            start_run: starts runs.
            log: takes lines of the service's log.
            restarts: how often a stream that fails is started again.
            clock: the wall clock, Unix ns.
            prefixed: whether what a stream serves over HTTP stands behind its id.
        """
        self.store = store
        self.checkpoints = checkpoints
        self.audit = AuditLog(checkpoints.service_directory / "audit.jsonl", log, clock)
        self.locks = NamedLocks()
        self.refused_files = RefusedFiles(clock)
        self.labels = StreamLabels(store)
        self.clock = clock
        self.log = log
        self._reader = reader
        self._lock = threading.Lock()
        self._streams: dict[str, ManagedStream] = {}
        # Those too that are about to start, and are not among the others yet.
        self._all: weakref.WeakSet[ManagedStream] = weakref.WeakSet()
        self._closing = False
        self._cores = count_cores(reader.root.spark["master"])
        self._min_intervals_updated_at = 0.0
        self.resources = [self.resource_text(one) for one in store.resources()]
        self._context = FleetContext(
            start_run,
            log,
            restarts,
            StartLimiter(MAX_CONCURRENT_STARTS),
            self._poll_interval,
            self._other_endpoints,
            prefixed,
            on_end=lambda stream_id: store.set_desired_state(stream_id, ENDED),
            on_rollback=self._on_rollback,
            read_config=self.read_config,
        )

    @property
    def root_path(self) -> str:
        """A second prefix of the service's paths."""
        return str(self._reader.root.http["root_path"])

    @property
    def reader(self) -> ConfigReader:
        """Reads configs, with the resources that came by API."""
        return self.reader_with(self.resources)

    def reader_with(self, resources: Sequence[ResourceText]) -> ConfigReader:
        """Return a reader with other resources of the API."""
        return replace(self._reader, resources=(*self._reader.resources, *resources))

    def resource_text(self, resource: StoredResource) -> ResourceText:
        """Return a resource that came by API as configs are read with it."""
        permissions = self._reader.permissions
        name = f"{resource.kind} {resource.label}"
        env = os.environ if permissions.local else {}
        return ResourceText(name, resource.text, env, permissions.component_permissions)

    def read_config(
        self, stream_id: str, revision: Revision, reader: ConfigReader | None = None
    ) -> Config:
        """Read the config of a revision.

        Raises:
            BadConfigError: it has findings.
        """
        reader = reader or self.reader
        if revision.source == API_SOURCE:
            return reader.read_api_config(revision.text, stream_id, revision.chilled)
        return reader.read_file_config(revision.text, revision.source)

    def streams(self) -> dict[str, ManagedStream]:
        """Return the streams by id."""
        with self._lock:
            return dict(sorted(self._streams.items()))

    def views(self) -> dict[str, StreamView]:
        """Return what is known of each stream, by id."""
        return {name: managed.view for name, managed in self.streams().items()}

    def refuse_file(self, stream_id: str, path: str, findings: Sequence[str]) -> None:
        """Note that the file of a stream is not right, and say so in the log, also the stream's.

        Args:
            stream_id: the stream, which need not be there.
            path: the file.
            findings: what is wrong.
        """
        managed = self.streams().get(stream_id)
        try:
            text = read_file(path)
        except StreamerError:
            text = ""
        safe = redact_findings(findings, text, os.environ)
        if managed is not None:
            safe = [managed.redact_text(one) for one in safe]
        refused = self.refused_files.refuse(
            stream_id, path, safe, is_change=managed is not None and managed.revision.source == path
        )
        if managed is not None:
            managed.log("ERROR", refused.log_text, {"findings": list(refused.findings)})
        else:
            fields = {"stream": stream_id, "findings": list(refused.findings)}
            self.log("ERROR", refused.log_text, fields)

    def list_statuses(self) -> dict[str, dict[str, Any]]:
        """Return what the list of streams says, refused files included, by id."""
        refused, now = self.refused_files.all(), self.clock() / SECOND
        statuses = {
            name: {**one.status(), **summarise_stream(one.view), "refusal": None}
            for name, one in self.streams().items()
        }
        for name, one in refused.items():
            if name in statuses:
                statuses[name]["refusal"] = one.to_document()
            else:
                statuses[name] = one.to_status(now)
        for name, status in statuses.items():
            status["labels"] = self.labels.labels_of(name)
        return dict(sorted(statuses.items()))

    def get(self, stream_id: str) -> ManagedStream:
        """Return a stream.

        Raises:
            UnknownStreamError: there is none of that id.
        """
        with self._lock:
            managed = self._streams.get(stream_id)
        if managed is None:
            raise UnknownStreamError(stream_id)
        return managed

    def make_stream(self, stream_id: str, config: Config, revision: Revision) -> ManagedStream:
        """Return a stream that is stopped, and not among the others yet."""
        directory = str(self.checkpoints.directory_of(stream_id))
        managed = ManagedStream(stream_id, config, revision, directory, self._context)
        with self._lock:
            self._all.add(managed)
        return managed

    def _other_endpoints(self, stream_id: str) -> list[tuple[str, EndpointRegistry]]:
        """Return what other streams serve, by their ids."""
        with self._lock:
            others = [one for one in self._all if one.stream_id != stream_id]
        return [(one.stream_id, one.view.endpoints) for one in others if not one.view.has_ended]

    def add(self, managed: ManagedStream) -> None:
        """Put a stream among the others."""
        with self._lock:
            self._streams[managed.stream_id] = managed
        self._update_min_intervals()

    def delete_stream(self, managed: ManagedStream) -> None:
        """Let a stream that is stopped be gone, with all that it has."""
        stream_id = managed.stream_id
        managed.close()
        with self._lock:
            self._streams.pop(stream_id, None)
        self.store.remove(stream_id)
        self.labels.forget_stream(stream_id)
        try:
            self.checkpoints.delete(stream_id)
        except StreamerError as e:
            self.log("WARN", f"The checkpoint stays for now: {e}", {"stream": stream_id})
        self._update_min_intervals()

    def remove_stream(self, managed: ManagedStream) -> None:
        """Let a stream that is stopped be gone, and leave what it has for when it comes back."""
        managed.close()
        with self._lock:
            self._streams.pop(managed.stream_id, None)
        self._update_min_intervals()

    def check_open(self) -> None:
        """Check that the service is not about to end.

        Raises:
            RefusedError: it is.
        """
        if self._closing:
            raise RefusedError("the service is stopping")

    def begin_closing(self) -> list[ManagedStream]:
        """Take no more changes; return the streams."""
        self._closing = True
        return list(self.streams().values())

    def _poll_interval(self) -> float:
        """Return the seconds between two looks at a stream; now and then, see how busy all are."""
        if time.monotonic() - self._min_intervals_updated_at >= _MIN_INTERVALS_UPDATE_S:
            self._update_min_intervals()
        return max(_MIN_POLL_INTERVAL_S, _POLL_INTERVAL_PER_STREAM_S * len(self._streams))

    def _update_min_intervals(self) -> None:
        self._min_intervals_updated_at = time.monotonic()
        streams = self.streams().values()
        min_interval = compute_min_interval(sum(one.is_busy for one in streams), self._cores)
        for managed in streams:
            managed.set_min_interval(min_interval)

    def _on_rollback(self, managed: ManagedStream, config: Config) -> None:
        """Note that a revision has failed on probation: what ran before it is deployed again."""
        stream_id, failed = managed.stream_id, managed.revision.number
        former = [one for one in self.store.revisions(stream_id) if one.number < failed]
        if not former:
            return
        last = former[0]
        self.store.set_proved(stream_id, failed, False)
        draft = RevisionDraft(last.text, "", last.source, self.clock(), last.chilled)
        revision = self.store.deploy(stream_id, draft)
        self.store.set_proved(stream_id, revision.number)
        managed.set_revision(config, replace(revision, proved=True))
        facts = {"stream": stream_id, "revision": revision.number, "failed": failed}
        self.audit.record("streamer", "rollback", **facts)
