"""The start of the service: the streams of files, and those that were deployed by API."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from streamer.config import Config
from streamer.config.file import read_file
from streamer.core.errors import ConfigError
from streamer.service.fleet.config_reader import ConfigReader
from streamer.service.fleet.deployment_store import (
    API_SOURCE,
    PAUSED,
    RUNNING,
    RevisionDraft,
    StoredStream,
)
from streamer.service.fleet.errors import BadConfigError
from streamer.service.fleet.lifecycle import LifecycleState
from streamer.service.fleet.managed_stream import ManagedStream
from streamer.service.fleet.registry import MAX_CONCURRENT_STARTS, Registry

FileConfigs = dict[str, tuple[Config, RevisionDraft]]
"""Configs of files with the revisions that they are, by stream id."""


def read_config_files(
    reader: ConfigReader, files: Mapping[str, str], clock: Callable[[], int]
) -> FileConfigs:
    """Read the configs of files.

    Args:
        reader: reads configs.
        files: paths by stream id.
        clock: gives Unix ns.

    Raises:
        BadConfigError: some have findings.
    """
    configs, findings = separate_config_files(reader, files, clock)
    if findings:
        raise BadConfigError([finding for some in findings.values() for finding in some])
    return configs


def separate_config_files(
    reader: ConfigReader, files: Mapping[str, str], clock: Callable[[], int]
) -> tuple[FileConfigs, dict[str, list[str]]]:
    """Read the configs of files; return those that are right, and the findings of the others.

    Args:
        reader: reads configs.
        files: paths by stream id.
        clock: gives Unix ns.
    """
    configs: FileConfigs = {}
    findings: dict[str, list[str]] = {}
    for stream_id, path in files.items():
        try:
            text = read_file(path)
            draft = RevisionDraft(text, "", path, clock(), reader.chilled)
            configs[stream_id] = reader.read_file_config(text, path), draft
        except BadConfigError as e:
            findings[stream_id] = [f"{path}{finding}" for finding in e.findings]
        except ConfigError as e:
            findings[stream_id] = [str(lint) for lint in e.lints]
    return configs, findings


class Startup:
    """Brings the streams to be what they should be."""

    def __init__(self, registry: Registry) -> None:
        """Take the streams, of which there are none yet."""
        self._registry = registry
        self._store = registry.store

    def read_files(self, files: Mapping[str, str], *, strict: bool = False) -> FileConfigs:
        """Read the configs of files. One that has findings is refused, and the others go on.

        Args:
            files: paths by stream id.
            strict: whether one that has findings refuses them all.

        Raises:
            BadConfigError: some have findings, with `strict`; or all have, and nothing else is to
                run.
        """
        registry = self._registry
        configs, findings = separate_config_files(registry.reader, files, registry.clock)
        if findings and (strict or not self.count_streams(configs)):
            raise BadConfigError([finding for some in findings.values() for finding in some])
        for stream_id, some in findings.items():
            registry.refuse_file(stream_id, files[stream_id], some)
        return configs

    def count_streams(self, files: FileConfigs) -> int:
        """Return how many streams there are to start: those of files, and those of the API."""
        of_api = (
            one.revision.source == API_SOURCE and one.desired_state == RUNNING and name not in files
            for name, one in self._store.streams().items()
        )
        return len(files) + sum(of_api)

    def start_streams(self, files: FileConfigs, of_api: bool = True) -> None:
        """Start all that should run, and wait until each has been tried once.

        Args:
            files: what `read` has found.
            of_api: whether those that came by API are started too.
        """
        stored = self._store.streams()
        starts: list[ManagedStream] = []
        for stream_id, (config, draft) in files.items():
            starts += self._add_file_stream(stream_id, config, draft, stored.get(stream_id))
        for stream_id, one in stored.items() if of_api else ():
            if one.revision.source == API_SOURCE and stream_id not in files:
                starts += self._add_api_stream(stream_id, one)
        with ThreadPoolExecutor(MAX_CONCURRENT_STARTS, "boot") as pool:
            list(pool.map(self._start_stream, starts))

    def _add_file_stream(
        self, stream_id: str, config: Config, draft: RevisionDraft, before: StoredStream | None
    ) -> Iterator[ManagedStream]:
        known = before.revision if before is not None else None
        if known is not None and (known.text, known.source) == (draft.text, draft.source):
            assert before is not None
            revision, desired_state = known, before.desired_state
        else:
            revision, desired_state = self._store.deploy(stream_id, draft), RUNNING
        # What stands in a file is what is wanted, whether or not it was started before.
        self._store.set_proved(stream_id, revision.number)
        revision = replace(revision, proved=True)
        yield from self._add(self._registry.make_stream(stream_id, config, revision), desired_state)

    def _add_api_stream(self, stream_id: str, stored: StoredStream) -> Iterator[ManagedStream]:
        registry = self._registry
        try:
            config = registry.read_config(stream_id, stored.revision)
        except BadConfigError as e:
            # What was allowed once may not be any more; it is kept for whoever puts it right.
            text = "A stream that was deployed is not right any more, and does not run"
            registry.log("ERROR", text, {"stream": stream_id, "lint": "; ".join(e.findings)})
            return
        yield from self._add(
            registry.make_stream(stream_id, config, stored.revision), stored.desired_state
        )

    def _add(self, managed: ManagedStream, desired_state: str) -> Iterator[ManagedStream]:
        self._registry.add(managed)
        if desired_state == RUNNING:
            yield managed
        else:
            managed.stop(
                state=LifecycleState.PAUSED if desired_state == PAUSED else LifecycleState.ENDED
            )

    def _start_stream(self, managed: ManagedStream) -> None:
        revision = managed.revision
        try:
            managed.start(should_retry=revision.proved)
        except Exception as e:
            # The program was ended in the middle of its deploy, which would have failed.
            managed.log("ERROR", f"The revision {revision.number} does not start: {e}", {})
            self._revert_to_proved(managed)
        else:
            self._store.set_proved(managed.stream_id, revision.number)

    def _revert_to_proved(self, managed: ManagedStream) -> None:
        stream_id, registry = managed.stream_id, self._registry
        proved = (one for one in self._store.revisions(stream_id) if one.proved)
        former = next(proved, None)
        if former is None:
            registry.delete_stream(managed)
            return
        self._store.revert(stream_id, former.number)
        config = registry.read_config(stream_id, former)
        managed.set_revision(config, former)
        managed.start(should_retry=True)
