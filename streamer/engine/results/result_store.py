"""Results on their way to the disk: a file for each micro-batch, exactly once.

Spark hands a micro-batch on again when it was not noted as done, whatever was done with it: then
its file is replaced. Only the newest one can come again, so only those before it are compacted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from streamer.core.disk import make_private_directory
from streamer.core.durations import MINUTE, SECOND
from streamer.core.log_format import LogLine
from streamer.engine.results.compaction import Compaction, read_window_ends, write_batch_file
from streamer.engine.results.layout import (
    DRAFT,
    Layout,
    Manifest,
    RetentionError,
    RetentionRules,
    start_manifest,
)
from streamer.engine.results.store_size import StoreSize, measure_files

COMPACT_AFTER_FILES: Final = 16
"""So many files of micro-batches are compacted."""

GRACE_NS: Final = MINUTE
"""How long a file stays that no longer counts, for those who read it, ns."""

_FIRST_PAUSE_NS, _MAX_PAUSE_NS = 10 * SECOND, 10 * MINUTE

RunInBackground = Callable[[Callable[[], None]], None]


def run_in_thread(work: Callable[[], None]) -> None:
    """Do something behind the stream's back."""
    threading.Thread(target=work, daemon=True, name="results").start()


class ResultStore:
    """The results of one stream, as the one program writes them that runs it.

    Attributes:
        manifest: what counts; a new one takes its place, and none is changed.
        removed: results that have expired, or were replaced by newer ones, since the start.
    """

    def __init__(
        self,
        directory: Path,
        rules: RetentionRules,
        *,
        afresh: bool,
        log: LogLine = lambda level, text, fields: None,
        run_in_background: RunInBackground = run_in_thread,
        elapsed: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Go on with a directory, or make it.

        Args:
            directory: where the results are.
            rules: what the stream says of them.
            afresh: micro-batches are numbered from the beginning.
            log: takes log lines.
            run_in_background: does some work while the stream goes on.
            elapsed: a clock that never runs backwards, ns.

        Raises:
            RetentionError: what is there cannot be read, or nothing can be written.
        """
        self._layout = layout = Layout(directory)
        self._log = log
        self._run_in_background = run_in_background
        self._elapsed = elapsed
        self._manifest_lock = threading.Lock()
        self._work_lock = threading.Lock()
        self._compaction: Compaction | None = None
        self._closed = False
        self._next_attempt_at = 0
        self._pause = _FIRST_PAUSE_NS
        self._unused_since: dict[Path, int] = {}
        self.removed = 0
        manifest = layout.read()
        try:
            make_private_directory(layout.new.parent)
            layout.new.mkdir(mode=0o700, parents=True, exist_ok=True)
            layout.files.mkdir(mode=0o700, exist_ok=True)
            for draft in (*layout.new.glob(f"*{DRAFT}"), *layout.files.glob(f"*{DRAFT}")):
                draft.unlink()
            self.manifest = start_manifest(manifest, rules, afresh)
            if self.manifest != manifest:
                layout.write(self.manifest)
            self._new = {
                epoch: read_window_ends(layout.path(epoch))
                for epoch in layout.epochs()
                if epoch > self.manifest.upto
            }
        except OSError as e:
            raise RetentionError(
                f"the results of windows cannot be kept in {directory}: {e}; make room there, or "
                "leave out the buffer's retention"
            ) from None

    def write(self, batch: int, portions: Sequence[bytes], now: int) -> None:
        """Write the results of a micro-batch, and have done what is due.

        Args:
            batch: its number.
            portions: what `rows.packed` made of them; none when there are no results.
            now: its time, ns.

        Raises:
            OSError: they cannot be written; a second call writes them all again.
        """
        epoch = self._epoch(batch)
        path = self._layout.path(epoch)
        if portions:
            self._new[epoch] = write_batch_file(path, portions, epoch, now)
        elif epoch in self._new:
            path.unlink(missing_ok=True)
            del self._new[epoch]
        if self._is_work_due(epoch, now) and self._work_lock.acquire(blocking=False):
            self._run_in_background(lambda: self._compact_and_sweep(epoch, now))

    def measure(self) -> StoreSize:
        """Return how much there is."""
        layout, upto = self._layout, self.manifest.upto
        old = [(layout.files / file.name, file.rows) for file in self.manifest.files]
        new = [(layout.path(epoch), None) for epoch in list(self._new) if epoch > upto]
        return measure_files([*old, *new])

    def close(self) -> None:
        """Do nothing more; what is being compacted is given up, and loses nothing."""
        self._closed = True
        compaction = self._compaction
        if compaction is not None:
            compaction.stop()
        # Whoever works notices soon, and must not write when another program has taken over.
        self._work_lock.acquire()

    def _epoch(self, batch: int) -> int:
        epoch = self.manifest.epoch_of(batch)
        if epoch > self.manifest.upto:
            return epoch
        # Somebody has put an older checkpoint in the place of the one that came so far.
        with self._manifest_lock:
            self._write_manifest(start_manifest(self.manifest, self.manifest.rules, True))
        return self.manifest.epoch_of(batch)

    def _write_manifest(self, manifest: Manifest) -> None:
        self._layout.write(manifest)
        self.manifest = manifest

    def _cutoff(self, now: int) -> int:
        manifest = self.manifest
        newest = [last for _, last in list(self._new.values())]
        if manifest.newest is not None:
            newest.append(manifest.newest)
        return manifest.rules.cutoff(now, max(newest, default=None))

    def _is_work_due(self, epoch: int, now: int) -> bool:
        if self._closed or self._elapsed() < self._next_attempt_at:
            return False
        waiting = sum(1 for one in list(self._new) if one < epoch)
        cutoff = self._cutoff(now)
        expired = any(file.last <= cutoff for file in self.manifest.files)
        swept = any(
            since + GRACE_NS <= self._elapsed() for since in list(self._unused_since.values())
        )
        return waiting >= COMPACT_AFTER_FILES or expired or swept

    def _compact_and_sweep(self, epoch: int, now: int) -> None:
        """Compact what came before a micro-batch, and delete what nobody needs."""
        import duckdb

        try:
            self._compact(epoch, now)
            self._sweep()
            self._pause = _FIRST_PAUSE_NS
        except (OSError, duckdb.Error, RetentionError) as e:
            if not self._closed:
                self._next_attempt_at = self._elapsed() + self._pause
                self._pause = min(self._pause * 2, _MAX_PAUSE_NS)
                text = "Results could not be compacted; they are all there, and it is tried again"
                self._log("WARN", text, {"error": " ".join(str(e).split())})
        finally:
            self._compaction = None
            self._work_lock.release()

    def _compact(self, epoch: int, now: int) -> None:
        waiting = sorted(one for one in list(self._new) if one < epoch)
        if len(waiting) < COMPACT_AFTER_FILES:
            waiting = []
        cutoff = self._cutoff(now)
        self._compaction = compaction = Compaction(self._layout, self.manifest, cutoff)
        try:
            files, number = compaction.run(waiting)
        finally:
            compaction.close()
        ends = [self._new[one][1] for one in waiting]
        newest = max(
            (end for end in (*ends, self.manifest.newest) if end is not None), default=None
        )
        with self._manifest_lock:
            if self._closed:
                return
            before = self.manifest
            added = measure_files((self._layout.path(one), None) for one in waiting).rows
            rows = [sum(file.rows for file in some) for some in (before.files, files)]
            self.removed += max(rows[0] + added - rows[1], 0)
            upto = max(waiting, default=before.upto)
            self._write_manifest(
                Manifest(before.rules, before.generation, upto, number, newest, tuple(files))
            )
            for one in waiting:
                del self._new[one]

    def _sweep(self) -> None:
        """Delete what does not count any more, and was not read for some time."""
        layout, now = self._layout, self._elapsed()
        kept: set[str] = {file.name for file in self.manifest.files}
        gone = [path for path in layout.files.iterdir() if path.name not in kept]
        gone += [layout.path(epoch) for epoch in layout.epochs() if epoch <= self.manifest.upto]
        self._unused_since = {path: self._unused_since.get(path, now) for path in gone}
        for path, since in list(self._unused_since.items()):
            if since + GRACE_NS <= now:
                path.unlink(missing_ok=True)
                del self._unused_since[path]
