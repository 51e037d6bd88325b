"""Writes frames to objects of stores by URL, exactly once by names from the micro-batch.

An object is written whole, and a micro-batch that comes again writes the same ones. A journal has
the names of the micro-batch in hand, so that one that it does not write again is removed.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from streamer.connectors.locations.location_files import LocationFiles
from streamer.core.json.checksums import add_checksum, has_valid_checksum
from streamer.core.locations import location_problem
from streamer.core.permissions import Permissions
from streamer.engine.driver.file_routes import RefusedRoutesError
from streamer.engine.driver.success_files import (
    drop_existing_objects,
    is_success_file,
    list_success_files,
    make_success_files,
)
from streamer.engine.planner.checkpoint_path import replace_file
from streamer.engine.report.result_frame import Frame

_JOURNAL_SUFFIX: Final = ".objects"
_MAX_KEY_BYTES: Final = 1024
_THREADS: Final = 16
"""Objects that are written at once, at most."""


class LocationWriter:
    """Writes the frames of one output to objects; see `Writer`."""

    def __init__(
        self,
        journal: Path,
        append: bool,
        permissions: Permissions,
        name: Callable[[], str],
        success_file: str = "",
    ) -> None:
        """Set up.

        Args:
            journal: the path of the journals of the output.
            append: whether the frames of a micro-batch become one object in the directory that
                their route names; else the route is that of the object.
            permissions: whether objects may be written.
            name: returns the name of the output of the stream, which begins names of objects.
            success_file: the name of objects that say that their directory is complete.
        """
        self._permissions = permissions
        self._success_file = success_file
        self._journal = journal.with_suffix(_JOURNAL_SUFFIX)
        self._append = append
        self._name = name
        self._files = LocationFiles(permissions)
        self._batch, self._urls = _read_journal(self._journal)

    def write(self, batch: int, frames: Sequence[Frame]) -> None:
        """Write a micro-batch; one that comes again replaces what it wrote before.

        Raises:
            OSError: a store does not answer, or refuses.
            RefusedRoutesError: some routes are no names of objects; all others are written.
        """
        refused: list[tuple[Frame, str]] = []
        objects: dict[str, list[bytes]] = {}
        completed: list[str] = []
        for frame in frames:
            if is_success_file(frame, self._success_file):
                completed.append(frame.route)
                continue
            url = self._name_object(batch, frame.route)
            if problem := _explain_unusable(url):
                refused.append((frame, problem))
            elif self._append:
                objects.setdefault(url, []).append(frame.body)
            else:
                objects[url] = [frame.body]
        directories = set(map(posixpath.dirname, objects))
        marks = list_success_files(completed, directories, self._permissions)
        own = self._urls if batch == self._batch else ()
        marks = drop_existing_objects(marks, self._files, own)
        self._begin(batch, objects, marks)
        if objects:
            with ThreadPoolExecutor(min(_THREADS, len(objects)), "object writer") as pool:
                items = ((url, b"".join(bodies)) for url, bodies in objects.items())
                list(pool.map(lambda item: self._files.put(*item), items))
            make_success_files(marks, self._files)
        if refused:
            raise RefusedRoutesError(refused)

    def _name_object(self, batch: int, route: str) -> str:
        if not self._append:
            return route
        return f"{route.rstrip('/')}/{self._name()}-{batch:010d}.txt"

    def _begin(self, batch: int, urls: Iterable[str], marks: Sequence[str]) -> None:
        """Note what a micro-batch writes; remove what an earlier try wrote and this one does not.

        What says that a directory is complete is removed too, until it is complete again.

        Raises:
            OSError: the journal cannot be written, or an object not be deleted.
        """
        if not self._append:
            return  # What was at a name before, an object that is replaced does not say.
        named = dict.fromkeys((*urls, *marks))
        if batch == self._batch:
            for url in self._urls:
                if url not in named or url in marks:
                    self._files.delete(url)
        elif not named:
            return
        document = add_checksum({"batch": batch, "urls": list(named)})
        replace_file(self._journal, json.dumps(document).encode())
        self._batch, self._urls = batch, tuple(named)


def _explain_unusable(url: str) -> str:
    size = len(url.encode(errors="replace"))
    if problem := location_problem(url):
        return f"cannot write to the object: its URL {problem}"
    if "\0" in url or size > _MAX_KEY_BYTES:
        return f"cannot write to the object {url[:200]!r}: its name is longer than 1,024 bytes"
    return ""


def _read_journal(path: Path) -> tuple[int, tuple[str, ...]]:
    """Return the micro-batch in hand and its objects; -1 for none."""
    try:
        document = json.loads(path.read_bytes())
        if has_valid_checksum(document):
            return int(document["batch"]), tuple(document["urls"])
    except FileNotFoundError:
        pass
    except (ValueError, KeyError, TypeError):
        pass  # It says only what an earlier try may have written besides.
    return -1, ()
