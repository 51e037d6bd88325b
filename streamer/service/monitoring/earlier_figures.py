"""Figures of a stream as of its newest micro-batch, kept in the checkpoint's directory.

After a restart nothing is known of open windows until the first micro-batch has gone through all
shards. Until then these are shown, with their time: a stream whose windows are safe must not look
as if it had lost them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from streamer.core.timestamps import format_unix_seconds
from streamer.engine.report.stream_metrics import Snapshot

_NAME: Final = "figures.json"
_SAVE_INTERVAL_S: Final = 1.0
_MAX_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class EarlierFigures:
    """Figures that a look at a stream begins with; one that is not known is None.

    Attributes:
        as_of: when they were so, Unix s; None for those of now.
        messages: messages taken in.
        open_windows: how many windows are open.
        held: messages in open windows.
        size: bytes of these, and of the state by key.
        micro_batch: the number of the newest micro-batch; -1 before the first.
        dropped: messages dropped, by reason.
    """

    as_of: float | None = None
    messages: int | None = None
    open_windows: int | None = None
    held: int | None = None
    size: int | None = None
    micro_batch: int = -1
    dropped: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, as_of: float | None = None) -> EarlierFigures:
        """Return the figures of a snapshot."""
        return cls(
            *(as_of, snapshot.messages, snapshot.open_windows, snapshot.held, snapshot.size),
            *(snapshot.batch, dict(snapshot.dropped)),
        )

    @property
    def as_of_text(self) -> str | None:
        """The time of the figures, RFC 3339; None for those of now."""
        return None if self.as_of is None else format_unix_seconds(self.as_of)


UNKNOWN_FIGURES: Final = EarlierFigures()
"""Figures of a checkpoint that an earlier version has written, of which nobody knows."""

NEW_FIGURES: Final = EarlierFigures.of(Snapshot())
"""Figures of a stream on a new checkpoint."""


class FiguresFile:
    """The file of figures of one checkpoint. A file that cannot be written is no error."""

    def __init__(self, directory: Path, clock: Callable[[], float] = time.time) -> None:
        """Take the checkpoint's directory; `clock` gives Unix s."""
        self._path = directory / _NAME
        self._clock = clock
        self._saved: tuple[int, float] = -1, 0.0

    def save(self, snapshot: Snapshot, *, at_once: bool = False) -> None:
        """Save figures, once a second and only those of a new micro-batch.

        Args:
            snapshot: the stream as of its newest micro-batch.
            at_once: whether it does not matter when it was saved last.
        """
        now = self._clock()
        batch, saved_at = self._saved
        if snapshot.batch in (-1, batch) or (now - saved_at < _SAVE_INTERVAL_S and not at_once):
            return
        self._saved = snapshot.batch, now
        draft = self._path.with_suffix(".tmp")
        with suppress(OSError):
            draft.write_bytes(orjson.dumps(asdict(EarlierFigures.of(snapshot, now))))
            draft.chmod(0o600)
            os.replace(draft, self._path)

    def delete(self) -> None:
        """Forget the figures: the stream begins anew."""
        with suppress(OSError):
            self._path.unlink()

    def load(self) -> EarlierFigures:
        """Return the figures of an earlier run, or those of a stream that has had none."""
        if not self._path.parent.joinpath("streamer.json").exists() and not self._path.exists():
            return NEW_FIGURES
        try:
            with self._path.open("rb") as file:
                document: dict[str, Any] = orjson.loads(file.read(_MAX_BYTES))
            return EarlierFigures(**document)
        except (OSError, ValueError, TypeError):
            return UNKNOWN_FIGURES
