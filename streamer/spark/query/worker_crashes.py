"""The driver's record of messages that end workers, for the running micro-batch.

It is kept in the checkpoint (`crashes.json`), so that the micro-batch goes past the same messages
whenever it comes again, after a `kill -9` too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from streamer.core.log_format import LogLine
from streamer.engine.driver.failure_diagnosis import Diagnosis
from streamer.engine.planner.checkpoint_path import CheckpointPath, replace_file
from streamer.engine.stage.crash_search import CrashInstructions, parse_crashes
from streamer.sdk.processing.crashes import Crash

CRASH_FILE: Final = "crashes.json"
_MIN_ENDS_BEFORE_SEARCH: Final = 2
"""Ends of workers after which a micro-batch is searched: one may be anybody's."""

_IDENTITY_FIELDS: Final = Crash._fields.index("reason")
"""So many of the first fields of a crash say which call it is."""

_FATAL_SIGNAL: Final = re.compile(
    r"Fatal Python error: (?:Segmentation fault|Aborted|Bus error|Illegal instruction|Floating)"
)
"""What Python writes when a signal ends it that nobody sends from outside."""


class WorkerCrashes:
    """Counts the ends of workers at a micro-batch, and keeps the messages that were found."""

    def __init__(self, root: CheckpointPath) -> None:
        """Read what an earlier start has kept in a checkpoint."""
        self._file = root / CRASH_FILE
        self._batch = -1
        self._end_count = 0
        self._order = CrashInstructions()
        try:
            record = json.loads(self._file.read_bytes())
            self._batch, self._order = (
                int(record["micro_batch"]),
                CrashInstructions.from_json(record["order"]),
            )
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            # Without it, they are found once more.
            return

    def crash_order(self, batch: int) -> CrashInstructions:
        """Return what the tasks of a micro-batch must know."""
        return self._order if batch == self._batch else CrashInstructions()

    def check_failure(self, batch: int, error: str, trouble: Diagnosis, log: LogLine) -> bool:
        """Check whether a micro-batch has failed for a message that ends workers.

        What a task has found is in the checkpoint before the micro-batch is tried again.

        Args:
            batch: the micro-batch.
            error: all that Spark says of its failure.
            trouble: what that comes to.
            log: takes a line for each message, and one when a search begins.

        Returns:
            Whether messages were found that were not known, so that the failure was wanted.
        """
        crashes = parse_crashes(error)
        before = {crash[:_IDENTITY_FIELDS] for crash in self.crash_order(batch).known_crashes}
        if crashes:
            self.record_crashes(batch, crashes)
        elif trouble.worker_ended and self.record_worker_end(batch, error):
            text = "A worker has ended with messages in hand: they are tried one by one to find"
            place = {**trouble.place, "micro_batch": batch}
            log("WARN", f"{text} the one that has ended it, if one has", place)
        for crash in crashes:
            where = {"label": crash.label, "path": crash.path, "micro_batch": batch}
            text = f"A message of {crash.size} bytes ends its worker ({crash.reason})"
            log("ERROR", f"{text}: it will be marked as failed", {**where, "sample": crash.sample})
        return any(crash[:_IDENTITY_FIELDS] not in before for crash in crashes)

    def record_worker_end(self, batch: int, error: str) -> bool:
        """Count a worker that has ended; return whether the messages will now be searched.

        Args:
            batch: the micro-batch that it had in hand.
            error: all that Spark says.
        """
        self._reset_for_batch(batch)
        self._end_count += 1
        if self._order.search or (
            self._end_count < _MIN_ENDS_BEFORE_SEARCH and not _FATAL_SIGNAL.search(error)
        ):
            return False
        self._save(CrashInstructions(True, self._order.known_crashes))
        return True

    def record_crashes(self, batch: int, crashes: Iterable[Crash]) -> None:
        """Keep what a task has found."""
        self._reset_for_batch(batch)
        known = dict.fromkeys((*self._order.known_crashes, *crashes))
        self._save(CrashInstructions(True, tuple(known)))

    def _reset_for_batch(self, batch: int) -> None:
        if batch != self._batch:
            self._batch, self._end_count, self._order = batch, 0, CrashInstructions()

    def _save(self, order: CrashInstructions) -> None:
        self._order = order
        record = {"micro_batch": self._batch, "order": order.to_json()}
        replace_file(self._file, json.dumps(record).encode())
