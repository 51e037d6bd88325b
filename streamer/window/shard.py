"""Stage 2 of a window: one shard takes a micro-batch in, keeps it, and releases what closes."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator

from streamer.window.emission import Emission
from streamer.window.event import EventWindow
from streamer.window.keyed.join_step import JoinStep
from streamer.window.keyed.step import KeyedStep
from streamer.window.kinds import Join
from streamer.window.pane_step import PaneStep
from streamer.window.queries import Query
from streamer.window.row import Row
from streamer.window.status import Status
from streamer.window.step import StepRun
from streamer.window.store import Store
from streamer.window.system import SystemWindow
from streamer.window.system_step import SystemStep


class Step:
    """One micro-batch of a shard: iterate to the end, then ask for the status.

    The state is whole only when the iteration has ended; one that is broken off must be abandoned
    together with what it has written.
    """

    def __init__(self, run: Generator[Emission, None, Status]) -> None:
        self._run = run
        self._status: Status | None = None

    def __iter__(self) -> Iterator[Emission]:
        self._status = yield from self._run

    @property
    def status(self) -> Status:
        """The shard after the micro-batch.

        Raises:
            RuntimeError: the emissions have not been taken to the end.
        """
        if self._status is None:
            raise RuntimeError("take all emissions of the step before its status")
        return self._status


class Shard:
    """One shard of a window's state; make one for every task."""

    def __init__(
        self,
        window: SystemWindow | EventWindow,
        store: Store,
        keep_dropped: bool = False,
        having: Query | None = None,
        folds: str | None = None,
        together: bool = False,
    ) -> None:
        """Prepare.

        Args:
            window: the window's settings.
            store: the shard's state.
            keep_dropped: emit dropped messages too, for `late_output`.
            having: a compiled mapping; a window for which it is not true is suppressed.
            folds: the mapping that windows decided key by key are folded for; None to keep their
                messages. Other windows are folded by stage 1.
            together: give batches of folded windows in runs, where there are many (`run.Run`).
        """
        self._window = window
        self._store = store
        self._keep_dropped = keep_dropped
        self._having = having
        self._folds = folds
        self._together = together

    def step(self, rows: Iterable[Row]) -> Step:
        """Process a micro-batch.

        Args:
            rows: all rows of this shard, a clock row among them, in any order.

        Raises:
            StreamerError: while it is iterated: a row or the state cannot be read.
        """
        return Step(self._run(rows))

    def _run(self, rows: Iterable[Row]) -> Generator[Emission, None, Status]:
        return (yield from self._step_run().run(rows))

    def _step_run(self) -> StepRun | JoinStep | KeyedStep:
        window, store = self._window, self._store
        if isinstance(window, SystemWindow):
            return SystemStep(window, store, self._keep_dropped)
        if isinstance(window.kind, Join):
            return JoinStep(window, store, self._keep_dropped)
        if window.way == "keys":
            asked = (self._keep_dropped, self._having, self._folds, self._together)
            return KeyedStep(window, store, *asked)
        return PaneStep(window, store, self._keep_dropped, self._having)
