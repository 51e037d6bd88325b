"""`streamer streams DIR --watcher`: streams come, change and go with the files that they are in.

A file that has become wrong leaves its stream as it is, and is refused: see `RefusedFiles`. One
that is gone stops its stream, whose checkpoint stays: a file that comes back goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from streamer.config.file import read_file
from streamer.core.errors import ConfigError, StreamerError
from streamer.service.fleet.deployment_store import API_SOURCE, RevisionDraft
from streamer.service.fleet.deploys import ChangeOptions
from streamer.service.fleet.errors import BadConfigError, RefusedError, UnknownStreamError
from streamer.service.fleet.manager import Manager
from streamer.service.fleet.stream_ids import file_ids
from streamer.service.run.file_watcher import Changes


class FileStreams:
    """Brings the streams of files to be what their files say, whenever these change."""

    def __init__(
        self,
        manager: Manager,
        paths: Sequence[str],
        shared: Callable[[], Iterable[str]],
        options: ChangeOptions,
    ) -> None:
        """Take what there is.

        Args:
            manager: the streams; those of the files have been started.
            paths: files and directories.
            shared: files that all streams are read with.
            options: how streams are changed.
        """
        self._manager = manager
        self._registry = manager.registry
        self._paths = paths
        self._shared = shared
        self._options = options
        self._ids = file_ids(paths, self._registry.root_path)
        self._last_error = ""

    def files(self) -> Mapping[str, Iterable[str]]:
        """Return which files each stream is made of; see `FileWatcher`."""
        try:
            self._ids = file_ids(self._paths, self._registry.root_path)
            self._last_error = ""
        except StreamerError as e:
            # What was there stays, until the names are right.
            if str(e) != self._last_error:
                self._last_error = str(e)
                self._registry.log("ERROR", f"The files of streams cannot be taken: {e}", {})
        shared = list(self._shared())
        imported = self._registry.reader.imported_files
        return {
            stream_id: [path, *shared, *imported.get(path, ())]
            for stream_id, path in self._ids.items()
        }

    def apply_changes(self, changes: Changes) -> None:
        """Take changes; see `FileWatcher`."""
        for stream_id in sorted(changes.removed):
            self._registry.refused_files.accept(stream_id)
            self._apply_to_stream(stream_id, self._remove)
        for stream_id in sorted(changes.added | changes.changed):
            self._apply_to_stream(stream_id, lambda one: self._deploy(one, changes.files))

    def _apply_to_stream(self, stream_id: str, action: Callable[[str], str]) -> None:
        """Do something with one stream; whatever goes wrong is nothing to the others."""
        log = self._registry.log
        try:
            with self._registry.locks.hold(stream_id):
                self._registry.check_open()
                done = action(stream_id)
        except UnknownStreamError:
            return
        except BadConfigError as e:
            self._refuse(stream_id, e.findings)
            return
        except RefusedError as e:
            # What the API calls its parameter is an option here.
            self._refuse(stream_id, [str(e).replace("on_reset=", "--on-reset ")])
            return
        except Exception as e:
            known = isinstance(e, StreamerError)
            self._refuse(stream_id, [str(e) if known else f"{type(e).__name__}: {e}"])
            return
        self._registry.refused_files.accept(stream_id)
        log("INFO", done, {"stream": stream_id})
        self._registry.audit.record("file", "watch", stream=stream_id, done=done)

    def _refuse(self, stream_id: str, findings: Sequence[str]) -> None:
        path = self._ids.get(stream_id)
        if path is not None:
            self._registry.refuse_file(stream_id, path, findings)
            return
        text = f"The stream of a file that is gone does not stop: {findings[0]}"
        self._registry.log("ERROR", text, {"stream": stream_id})

    def _deploy(self, stream_id: str, files: frozenset[str]) -> str:
        path = self._ids[stream_id]
        try:
            text = read_file(path)
            config = self._registry.reader.read_file_config(text, path)
        except BadConfigError as e:
            raise BadConfigError([f"{path}{finding}" for finding in e.findings]) from None
        except ConfigError as e:
            raise BadConfigError([str(lint) for lint in e.lints]) from None
        draft = RevisionDraft(text, "", path, self._registry.clock(), self._options.chilled)
        managed = self._registry.streams().get(stream_id)
        if managed is None:
            self._manager.startup.start_streams({stream_id: (config, draft)}, of_api=False)
            return "The stream of a new file runs"
        if managed.is_of_api:
            raise StreamerError("there is a stream of this name that came by API; rename the file")
        changed_imports = self._registry.reader.imported_files[path] & files
        judgement = self._manager.deploys.switch(
            managed, config, draft, self._options, changed_imports
        )
        return f"The stream runs what its file says now: {judgement.effect or 'nothing new'}"

    def _remove(self, stream_id: str) -> str:
        managed = self._registry.get(stream_id)
        if managed.revision.source == API_SOURCE:
            raise UnknownStreamError(stream_id)
        managed.stop(self._options.timeout)
        self._registry.remove_stream(managed)
        return "The stream's file is gone, and it has stopped; its checkpoint stays"
