"""The directory of results: which files are in it, and which of them count.

```
<results>/manifest.json   what counts of `files`, and up to which micro-batch `new` is in there
         /new             a file for each micro-batch that had results, named by it
         /files           what compaction has made of them, by the time when windows end
         /spill           what compaction puts aside while it sorts
```

A file is written under another name, synced and renamed, so each is whole; so is the manifest,
which makes several files count, and others not, at once. A file that no longer counts stays for
some time, for those who have just begun to read it.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from streamer.core.disk import sync_data, sync_directory
from streamer.core.durations import DAY, HOUR, MINUTE
from streamer.core.errors import StreamerError

FORMAT: Final = 1
GENERATION_BITS: Final = 40
DRAFT: Final = ".tmp"

_BUCKET_WIDTHS_NS: Final = (MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY, 365 * DAY)
_MAX_READ_ATTEMPTS: Final = 50


class RetentionError(StreamerError):
    """Results cannot be kept, or not be read; the text says why and what to do."""


class NoResultsError(RetentionError):
    """There are no results, and never were."""

    def __init__(self, directory: Path) -> None:
        """Take the directory in which there are none."""
        super().__init__(
            f"there are no results in {directory}; a stream keeps them whose window buffer "
            "has the field retention (retention: 7d), from its next start on"
        )


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """The rules by which a stream keeps its results.

    Attributes:
        retention: how long a result is kept after the end of its window, ns.
        sessions: whether windows are sessions, whose bounds move while they are open.
        follows: whether results age by the windows that come after them, so that a replay of old
            messages keeps its results; else by the time of day.
    """

    retention: int
    sessions: bool = False
    follows: bool = False

    @property
    def width(self) -> int:
        """Maximum time of windows in one file, ns: some ten to thirty files in all."""
        return max(
            (width for width in _BUCKET_WIDTHS_NS if 6 * width <= self.retention),
            default=_BUCKET_WIDTHS_NS[0],
        )

    def cutoff(self, now: int, newest: int | None) -> int:
        """Return the end at or before which windows have expired, ns.

        Args:
            now: the time of day, ns.
            newest: the end of the newest window that has results, ns.
        """
        clock = min(now, newest) if self.follows and newest is not None else now
        return clock - self.retention


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A file that compaction has made.

    Attributes:
        name: in `files`.
        first: windows in it end at or after this, ns.
        last: windows in it end at or before this, ns.
        begins: where the time that it covers begins, ns.
        width: how long that is, ns.
        rows: how many there are.
        oldest: the first micro-batch in it, as `epoch`.
        newest: the last one.
    """

    name: str
    first: int
    last: int
    begins: int
    width: int
    rows: int
    oldest: int
    newest: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest: the files that count.

    Attributes:
        rules: the stream's.
        generation: counts the times that the stream began from the beginning.
        upto: the micro-batches up to this `epoch` are in `files`, or had no results.
        number: of the newest file.
        newest: the end of the newest window that is, or was, in `files`, ns.
        files: those that count.
    """

    rules: RetentionRules
    generation: int = 1
    upto: int = 0
    number: int = 0
    newest: int | None = None
    files: tuple[ResultFile, ...] = ()

    def epoch_of(self, batch: int) -> int:
        """Return what stands for a micro-batch in the order of all that there ever were."""
        return (self.generation << GENERATION_BITS) + batch

    def to_json(self) -> str:
        """Return the manifest as the JSON text of its file."""
        document = json.loads(json.dumps({"format": FORMAT, **asdict(self)}))
        return json.dumps({**document, "checksum": _checksum(document)}, indent=1)


def _checksum(document: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(document, sort_keys=True).encode())


class Layout:
    """The places in a directory of results."""

    def __init__(self, directory: Path) -> None:
        """Take the directory, which need not be there."""
        self.directory = directory
        self.manifest = directory / "manifest.json"
        self.new = directory / "new"
        self.files = directory / "files"
        self.spill = directory / "spill"

    def read(self) -> Manifest | None:
        """Return the manifest; None where there never were any results.

        Raises:
            RetentionError: it cannot be read.
        """
        try:
            document = json.loads(self.manifest.read_bytes())
            # Version 0.1 has written no check sum.
            checksum = document.pop("checksum", None)
            if checksum not in (None, _checksum(document)):
                raise ValueError("its check sum is another one")
            if document.pop("format") != FORMAT:
                raise ValueError("it has another format")
            rules, files = RetentionRules(**document.pop("rules")), document.pop("files")
            return Manifest(rules, **document, files=tuple(ResultFile(**file) for file in files))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
            raise RetentionError(
                f"{self.manifest} cannot be read ({e}); restore it from a backup, or move "
                f"{self.directory} away to begin without the results that are in it"
            ) from None

    def write(self, manifest: Manifest) -> None:
        """Put a manifest in the place of the one before.

        Raises:
            OSError: it cannot be written.
        """
        text = manifest.to_json().encode()

        def fill(draft: Path) -> None:
            with draft.open("wb") as out:
                out.write(text)

        write_atomically(self.manifest, fill)

    def path(self, epoch: int) -> Path:
        """Return the path of the file of a micro-batch."""
        return self.new / f"{epoch:020d}.parquet"

    def epochs(self) -> list[int]:
        """Return the micro-batches that have files of their own, in order."""
        names = [name for name in _list_names(self.new) if name.endswith(".parquet")]
        return sorted(int(name.removesuffix(".parquet")) for name in names)


@dataclass(frozen=True, slots=True)
class LayoutSnapshot:
    """The files that count at one instant.

    Attributes:
        manifest: the manifest.
        new: the files of the micro-batches that are not in `files` yet, in order.
    """

    manifest: Manifest
    new: tuple[Path, ...]


def take_snapshot(layout: Layout) -> LayoutSnapshot | None:
    """Return what counts now, whoever writes meanwhile; None where there never were any results.

    Raises:
        RetentionError: the manifest cannot be read.
    """
    for _ in range(_MAX_READ_ATTEMPTS):
        before = layout.read()
        epochs = layout.epochs()
        # What was compacted between the two looks would be missed, or be there twice.
        if before == layout.read():
            if before is None:
                return None
            new = tuple(layout.path(epoch) for epoch in epochs if epoch > before.upto)
            return LayoutSnapshot(before, new)
    raise RetentionError(f"{layout.manifest} changes all the time; ask again")


def list_result_files(directory: Path) -> list[Path]:
    """Return the files that count now; each stays for a minute after it counts no longer.

    Args:
        directory: of the results.

    Raises:
        RetentionError: there are none, or the manifest cannot be read.
    """
    layout = Layout(directory)
    snapshot = take_snapshot(layout)
    if snapshot is None:
        raise NoResultsError(directory)
    return [*(layout.files / file.name for file in snapshot.manifest.files), *snapshot.new]


def write_atomically(path: Path, fill: Callable[[Path], None]) -> None:
    """Write a file so that it is whole whenever it is there, and on the disk on return.

    Args:
        path: where it is to be.
        fill: writes it to the path that it is given.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    draft = path.with_name(path.name + DRAFT)
    try:
        fill(draft)
        with draft.open("rb+") as written:
            sync_data(written.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_entries(path.parent)


def sync_entries(directory: Path) -> None:
    """Have on the disk which files a directory has."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        sync_directory(handle)
    finally:
        os.close(handle)


def start_manifest(manifest: Manifest | None, rules: RetentionRules, afresh: bool) -> Manifest:
    """Return the manifest that a start goes on with.

    Args:
        manifest: the one that there is.
        rules: what the stream says of its results now.
        afresh: micro-batches are numbered from the beginning.
    """
    if manifest is None:
        return Manifest(rules)
    generation = manifest.generation + 1 if afresh else manifest.generation
    return replace(manifest, rules=rules, generation=generation)


def _list_names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []
