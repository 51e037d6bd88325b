"""What the driver knows of messages that end workers, for the micro-batch in hand.

It is kept in the checkpoint (`crashes.json`), so that the micro-batch goes past the same messages
whenever it comes again, after a `kill -9` too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from streamer.engine.crash_search import CrashOrder, crashes_of
from streamer.engine.delivery import LogLine
from streamer.engine.location import Anywhere, replace_file
from streamer.engine.troubles import Trouble
from streamer.pipeline.crashes import Crash

NAME: Final = "crashes.json"
_FEW: Final = 2
"""Ends of workers after which a micro-batch is searched: one may be anybody's."""

_PLACE: Final = Crash._fields.index("reason")
"""So many of the first fields of a crash say which call it is."""

_CORE: Final = re.compile(
    r"Fatal Python error: (?:Segmentation fault|Aborted|Bus error|Illegal instruction|Floating)"
)
"""What Python writes when a signal ends it that nobody sends from outside."""


class Crashes:
    """Counts the ends of workers at a micro-batch, and keeps the messages that were found."""

    def __init__(self, root: Anywhere) -> None:
        """Read what an earlier start has kept in a checkpoint."""
        self._file = root / NAME
        self._batch = -1
        self._ends = 0
        self._order = CrashOrder()
        try:
            kept = json.loads(self._file.read_bytes())
            self._batch, self._order = int(kept["micro_batch"]), CrashOrder.of(kept["order"])
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            # Without it, they are found once more.
            return

    def order(self, batch: int) -> CrashOrder:
        """Return what the tasks of a micro-batch must know."""
        return self._order if batch == self._batch else CrashOrder()

    def look(self, batch: int, error: str, trouble: Trouble, log: LogLine) -> bool:
        """See whether a micro-batch has failed for a message that ends workers.

        What a task has found is in the checkpoint before the micro-batch is tried again.

        Args:
            batch: the micro-batch.
            error: all that Spark says of its failure.
            trouble: what that comes to.
            log: takes a line for each message, and one when a search begins.

        Returns:
            Whether messages were found that were not known, so that the failure was wanted.
        """
        found = crashes_of(error)
        before = {crash[:_PLACE] for crash in self.order(batch).known}
        if found:
            self.found(batch, found)
        elif trouble.ended and self.ended(batch, error):
            text = "A worker has ended with messages in hand: they are tried one by one to find"
            place = {**trouble.place, "micro_batch": batch}
            log("WARN", f"{text} the one that has ended it, if one has", place)
        for crash in found:
            where = {"label": crash.label, "path": crash.path, "micro_batch": batch}
            text = f"A message of {crash.size} bytes ends its worker ({crash.reason})"
            log("ERROR", f"{text}: it will be marked as failed", {**where, "sample": crash.sample})
        return any(crash[:_PLACE] not in before for crash in found)

    def ended(self, batch: int, error: str) -> bool:
        """Hear that a worker has ended; return whether the messages will now be searched.

        Args:
            batch: the micro-batch that it had in hand.
            error: all that Spark says.
        """
        self._turn_to(batch)
        self._ends += 1
        if self._order.search or (self._ends < _FEW and not _CORE.search(error)):
            return False
        self._keep(CrashOrder(True, self._order.known))
        return True

    def found(self, batch: int, crashes: Iterable[Crash]) -> None:
        """Keep what a task has found."""
        self._turn_to(batch)
        known = dict.fromkeys((*self._order.known, *crashes))
        self._keep(CrashOrder(True, tuple(known)))

    def _turn_to(self, batch: int) -> None:
        if batch != self._batch:
            self._batch, self._ends, self._order = batch, 0, CrashOrder()

    def _keep(self, order: CrashOrder) -> None:
        self._order = order
        kept = {"micro_batch": self._batch, "order": order.text()}
        replace_file(self._file, json.dumps(kept).encode())
