"""The start of the service: the streams of files, and those that were deployed by API."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from streamer.config import Config
from streamer.config.file import read_file
from streamer.errors import ConfigError
from streamer.service.streams.configs import Reader
from streamer.service.streams.faults import BadConfigError
from streamer.service.streams.managed import Managed
from streamer.service.streams.registry import AT_ONCE, Registry
from streamer.service.streams.store import API, PAUSED, RUNNING, Draft, Stored
from streamer.service.streams.supervisor import State


def read_files(
    reader: Reader, files: Mapping[str, str], clock: Callable[[], int]
) -> dict[str, tuple[Config, Draft]]:
    """Read the configs of files.

    Args:
        reader: reads configs.
        files: paths by stream id.
        clock: gives Unix ns.

    Raises:
        BadConfigError: some have findings.
    """
    found, wrong = {}, []
    for stream_id, path in files.items():
        try:
            text = read_file(path)
            draft = Draft(text, "", path, clock(), reader.chilled)
            found[stream_id] = reader.of_file(text, path), draft
        except BadConfigError as e:
            wrong += [f"{path}{finding}" for finding in e.findings]
        except ConfigError as e:
            wrong += [str(lint) for lint in e.lints]
    if wrong:
        raise BadConfigError(wrong)
    return found


class Boot:
    """Brings the streams to be what they should be."""

    def __init__(self, registry: Registry) -> None:
        """Take the streams, of which there are none yet."""
        self._registry = registry
        self._store = registry.store

    def read(self, files: Mapping[str, str]) -> dict[str, tuple[Config, Draft]]:
        """Read the configs of files.

        Args:
            files: paths by stream id.

        Raises:
            BadConfigError: some have findings.
        """
        return read_files(self._registry.reader, files, self._registry.clock)

    def count(self, files: Mapping[str, tuple[Config, Draft]]) -> int:
        """Return how many streams there are to start: those of files, and those of the API."""
        of_api = (
            one.revision.source == API and one.wanted == RUNNING and name not in files
            for name, one in self._store.streams().items()
        )
        return len(files) + sum(of_api)

    def start(self, files: Mapping[str, tuple[Config, Draft]], of_api: bool = True) -> None:
        """Start all that should run, and wait until each has been tried once.

        Args:
            files: what `read` has found.
            of_api: whether those that came by API are started too.
        """
        stored = self._store.streams()
        starts: list[Managed] = []
        for stream_id, (config, draft) in files.items():
            starts += self._of_file(stream_id, config, draft, stored.get(stream_id))
        for stream_id, one in stored.items() if of_api else ():
            if one.revision.source == API and stream_id not in files:
                starts += self._of_api(stream_id, one)
        with ThreadPoolExecutor(AT_ONCE, "boot") as together:
            list(together.map(self._start, starts))

    def _of_file(
        self, stream_id: str, config: Config, draft: Draft, before: Stored | None
    ) -> Iterator[Managed]:
        known = before.revision if before is not None else None
        if known is not None and (known.text, known.source) == (draft.text, draft.source):
            assert before is not None
            revision, wanted = known, before.wanted
        else:
            revision, wanted = self._store.deploy(stream_id, draft), RUNNING
        # What stands in a file is what is wanted, whether or not it was started before.
        self._store.prove(stream_id, revision.number)
        revision = replace(revision, proved=True)
        yield from self._added(self._registry.made(stream_id, config, revision), wanted)

    def _of_api(self, stream_id: str, one: Stored) -> Iterator[Managed]:
        registry = self._registry
        try:
            config = registry.read(stream_id, one.revision)
        except BadConfigError as e:
            # What was allowed once may not be any more; it is kept for whoever puts it right.
            text = "A stream that was deployed is not right any more, and does not run"
            registry.log("ERROR", text, {"stream": stream_id, "lint": "; ".join(e.findings)})
            return
        yield from self._added(registry.made(stream_id, config, one.revision), one.wanted)

    def _added(self, managed: Managed, wanted: str) -> Iterator[Managed]:
        self._registry.add(managed)
        if wanted == RUNNING:
            yield managed
        else:
            managed.supervisor.stop(state=State.PAUSED if wanted == PAUSED else State.ENDED)

    def _start(self, managed: Managed) -> None:
        revision = managed.revision
        try:
            managed.supervisor.begin(patient=revision.proved)
        except Exception as e:
            # The program was ended in the middle of its deploy, which would have failed.
            managed.log("ERROR", f"The revision {revision.number} does not start: {e}", {})
            self._take_back(managed)
        else:
            self._store.prove(managed.stream_id, revision.number)

    def _take_back(self, managed: Managed) -> None:
        stream_id, registry = managed.stream_id, self._registry
        proved = (one for one in self._store.revisions(stream_id) if one.proved)
        former = next(proved, None)
        if former is None:
            registry.forget(managed)
            return
        self._store.revert(stream_id, former.number)
        config = registry.read(stream_id, former)
        managed.take(config, former)
        managed.supervisor.begin(patient=True)
