"""Stage 2 of a window: one shard takes a micro-batch in, keeps it, and emits windows that close."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence

from streamer.window.contract import Emission, ShuffleRow, Status
from streamer.window.evaluate.queries import CompiledMapping
from streamer.window.keyed.join_step import JoinStep
from streamer.window.keyed.message_step import MessageStep
from streamer.window.keyed.step import KeyedStep
from streamer.window.keyed.table_join_step import TableJoinStep
from streamer.window.panes.grid_step import GridStep, SystemStep
from streamer.window.panes.pane_step import PaneStep
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.system_window import SystemWindow
from streamer.window.settings.window import Window
from streamer.window.settings.window_types import Join, KeyedMessages, TableJoin
from streamer.window.state_store import StateStore


class ShardStep:
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
        window: Window,
        store: StateStore,
        keep_dropped: bool = False,
        having: CompiledMapping | None = None,
        aggregated_mapping: str | None = None,
        batch_emissions: bool = False,
        listed_keys: Sequence[bytes] = (),
    ) -> None:
        """Prepare.

        Args:
            window: the window's settings.
            store: the shard's state.
            keep_dropped: emit dropped messages too, for `late_output`.
            having: a compiled mapping; a window for which it is not true is suppressed.
            aggregated_mapping: the mapping that windows decided key by key aggregate by; None to
                keep their messages. Others are pre-aggregated by stage 1.
            batch_emissions: emit batches of aggregated windows together, where there are many
                (`EmissionBatch`).
            listed_keys: those of the window's `listed_keys` that belong to this shard.
        """
        self._listed_keys = listed_keys
        self._window = window
        self._store = store
        self._keep_dropped = keep_dropped
        self._having = having
        self._aggregated_mapping = aggregated_mapping
        self._batch_emissions = batch_emissions

    def step(self, rows: Iterable[ShuffleRow]) -> ShardStep:
        """Process a micro-batch.

        Args:
            rows: all rows of this shard, a clock row among them, in any order.

        Raises:
            StreamerError: while it is iterated: a row or the state cannot be read.
        """
        return ShardStep(self._run_step(rows))

    def _run_step(self, rows: Iterable[ShuffleRow]) -> Generator[Emission, None, Status]:
        return (yield from self._make_step().run(rows))

    def _make_step(self) -> GridStep | JoinStep | KeyedStep | MessageStep | TableJoinStep:
        store, keep_dropped, having = self._store, self._keep_dropped, self._having
        match self._window:
            case SystemWindow() as system_window:
                return SystemStep(system_window, store, keep_dropped, self._batch_emissions)
            case EventWindow(kind=Join()) as window:
                return JoinStep(window, store, keep_dropped)
            case EventWindow(kind=TableJoin()) as window:
                return TableJoinStep(window, store, keep_dropped)
            case EventWindow(kind=KeyedMessages()) as window:
                return MessageStep(window, store, keep_dropped)
            case EventWindow(strategy="keys") as window:
                text, batches = self._aggregated_mapping, self._batch_emissions
                listed = self._listed_keys
                return KeyedStep(window, store, keep_dropped, having, text, batches, listed)
        return PaneStep(self._window, store, keep_dropped, having, self._batch_emissions)
