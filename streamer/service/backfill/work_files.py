"""Files of a backfill's directory: packs of segments, results of tasks, and what is done of it.

```
<directory>/backfill.json      what is run: the config's identity, the bounds, the segments
           /lock               held by the program
           /segments/7.packs   what stage 1 made of a segment, and its clock
           /results/3.results  what a task of stage 2 has made, in order
           /results/3.state/   the state of its shards at its end, where it is handed over
           /sent.json          how much of the results the outputs have
           /files*.json        journals of output files, as in a checkpoint
```

A file is written under another name, synced, and renamed: it is there as a whole, or not at all.
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from streamer.core.disk import sync_data
from streamer.core.errors import StreamerError
from streamer.window import ShuffleRow

_DRAFT_ENDING: Final = ".tmp"


class SegmentBatch:
    """Rows of one micro-batch, or of a part of it by the clock.

    Attributes:
        time: the clock at its end, ns; None where event times do not move the micro-batch's time.
        rows: the rows of stage 1.
    """

    __slots__ = ("time", "rows")

    def __init__(self, time: int | None, rows: list[ShuffleRow]) -> None:
        self.time = time
        self.rows = rows

    def __reduce__(self) -> tuple[type[SegmentBatch], tuple[int | None, list[ShuffleRow]]]:
        return SegmentBatch, (self.time, self.rows)


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """Facts of a segment that stage 1 has packed.

    Attributes:
        clock: its largest event time, ns; None without one.
        messages: how many it has, failed and dropped ones too.
        seconds: of CPU that packing took.
        size: bytes of its file.
        sources: by buffer, the names of what its clock waits for.
    """

    clock: int | None
    messages: int
    seconds: float
    size: int = 0
    sources: dict[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """A batch on its way to an output.

    Attributes:
        order: its window's end in ns, or what stands for it; see `Frame.order`.
        shard: the shard that it is from.
        output: the number of its output.
        messages: of each message its payload, its metadata, and its error mark.
    """

    order: int
    shard: int
    output: int
    messages: list[tuple[bytes, dict[str, Any], str | None]]


@dataclass(frozen=True, slots=True)
class BatchResults:
    """Results of one micro-batch in one task.

    Attributes:
        segment: the number of the micro-batch's segment.
        results: the batches, in order.
        log: lines to be logged: level, text, fields.
    """

    segment: int
    results: list[Result]
    log: list[tuple[str, str, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """Facts of a finished task of stage 2.

    Attributes:
        windows: how many windows it has emitted in its own range.
        messages: how many messages of them.
        dropped: messages dropped in its own range, by reason.
        seconds: of CPU that it took.
        held: messages in open windows at its end.
    """

    windows: int
    messages: int
    dropped: dict[str, int]
    seconds: float
    held: int


class WorkDirectory:
    """Paths of a backfill's directory.

    Attributes:
        root: the directory.
    """

    def __init__(self, root: Path) -> None:
        """Take the directory, which is there."""
        self.root = root

    def make_directories(self) -> None:
        """Make the directories inside, and remove drafts that a crash has left."""
        for name in ("segments", "results"):
            inside = self.root / name
            inside.mkdir(exist_ok=True, mode=0o700)
            for draft in inside.glob(f"*{_DRAFT_ENDING}"):
                with suppress(OSError):
                    draft.unlink()

    def packs_path(self, segment: int) -> Path:
        """Return the file of a segment."""
        return self.root / "segments" / f"{segment}.packs"

    def results_path(self, task: int) -> Path:
        """Return the file of a task's results."""
        return self.root / "results" / f"{task}.results"

    def state_path(self, task: int) -> Path:
        """Return the directory of a task's state."""
        return self.root / "results" / f"{task}.state"

    def read_json(self, name: str) -> dict[str, Any] | None:
        """Return what a JSON file holds; None without one.

        Raises:
            StreamerError: it is damaged.
        """
        path = self.root / name
        try:
            value: dict[str, Any] = json.loads(path.read_bytes())
            return value
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as e:
            raise StreamerError(
                f"{path} cannot be read: {e}; remove the directory to begin anew"
            ) from None

    def write_json(self, name: str, value: dict[str, Any]) -> None:
        """Replace a JSON file at once."""
        write_whole(self.root / name, lambda file: file.write(json.dumps(value).encode()))


def write_whole(path: Path, write: Any) -> None:
    """Write a file so that it is there as a whole or not at all; `write` gets the open draft."""
    draft = path.with_name(path.name + _DRAFT_ENDING)
    with open(draft, "wb", opener=_open_private) as file:
        write(file)
        file.flush()
        sync_data(file.fileno())
    os.replace(draft, path)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def write_items(path: Path, facts: Any, items: Iterable[Any]) -> None:
    """Write items, one after the other, and facts about them, which come first when it is read.

    Args:
        path: the file.
        facts: a callable, called when all items are written.
        items: what is written.
    """
    body = path.with_name(path.name + ".body" + _DRAFT_ENDING)
    with open(body, "wb", opener=_open_private) as file:
        for item in items:
            pickle.dump(item, file, pickle.HIGHEST_PROTOCOL)

    def join(file: BinaryIO) -> None:
        pickle.dump(facts(), file, pickle.HIGHEST_PROTOCOL)
        with open(body, "rb") as written:
            while block := written.read(1 << 20):
                file.write(block)

    write_whole(path, join)
    body.unlink()


def read_facts(path: Path) -> Any:
    """Return the facts of a file that `write_items` wrote.

    Raises:
        StreamerError: it cannot be read.
    """
    with _open_items(path) as file:
        return _load(file, path)


def read_items(path: Path) -> Iterator[Any]:
    """Give the items of a file that `write_items` wrote.

    Raises:
        StreamerError: it cannot be read.
    """
    with _open_items(path) as file:
        _load(file, path)
        end = path.stat().st_size
        while file.tell() < end:
            yield _load(file, path)


def _open_items(path: Path) -> BinaryIO:
    try:
        return open(path, "rb")
    except OSError as e:
        raise StreamerError(f"{path} cannot be read: {e.strerror}; begin anew") from None


def _load(file: BinaryIO, path: Path) -> Any:
    try:
        return pickle.load(file)
    except (EOFError, pickle.UnpicklingError, AttributeError, ImportError) as e:
        raise StreamerError(
            f"{path} is damaged, or of another version: {e}; remove the directory to begin anew"
        ) from None
