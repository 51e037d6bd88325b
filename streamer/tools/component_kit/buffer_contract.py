"""The contract tests of buffers: the messages of each window, also over restarts."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from streamer.core.durations import SECOND
from streamer.sdk.spec import Kind
from streamer.tools.component_kit.components import Content, make_message
from streamer.tools.component_kit.contracts import ComponentContract, expect

if TYPE_CHECKING:  # numpy and pyarrow are for those who run a buffer
    from streamer.engine.offline.scripted import ScriptedMessage
    from streamer.plan import Plan

_MAX_STEPS: Final = 10_000


class BufferContract(ComponentContract):
    """The tests of a buffer, on a scripted clock.

    Attributes:
        arrivals: when messages arrive, Unix s, and their contents; in order.
        expected: the payloads of each window, in the order in which windows are emitted.
    """

    kind: ClassVar[Kind] = Kind.BUFFER
    arrivals: ClassVar[Sequence[tuple[float, Content]]] = ()
    expected: ClassVar[Sequence[Sequence[bytes]]] = ()

    def make_stream_plan(self) -> Plan:
        """Return the plan of a stream with the buffer."""
        from streamer.plan import make_plan

        with self.use() as tested:
            return make_plan(tested.config)

    def play(self, plan: Plan, restarts: bool = False) -> list[list[bytes]]:
        """Let the messages arrive, and wait until no window is open; return the windows.

        Args:
            plan: the stream's.
            restarts: the program stops and starts behind each message.
        """
        from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream

        stream = ScriptedStream(plan)
        windows: list[list[bytes]] = []

        def run(at: int, sent: Sequence[ScriptedMessage] = (), ended: bool = False) -> None:
            outcome = stream.run_micro_batch(at, sent, ended)
            windows.extend([message.raw for message in batch] for batch in outcome.batches)

        def close_due(until: int | None) -> None:
            for _ in range(_MAX_STEPS):
                due = stream.snapshot.next_close
                if due is None or (until is not None and due >= until):
                    return
                run(due)
            raise AssertionError(f"windows are still open after {_MAX_STEPS:,} steps")

        for at, content in self.arrivals:
            clock = round(at * SECOND)
            close_due(clock)
            run(clock, [ScriptedMessage(make_message(content))])
            if restarts:
                stream.restart()
        run(stream.now, ended=True)
        close_due(None)
        return windows

    def test_windows_have_the_expected_messages(self) -> None:
        """Each window is emitted once, in order, with its messages."""
        self._expect_windows(self.play(self.make_stream_plan()), "the messages")

    def test_restarts_change_nothing(self) -> None:
        """A program that is stopped behind each message emits the same windows."""
        self._expect_windows(self.play(self.make_stream_plan(), restarts=True), "restarts")

    def test_a_worker_makes_the_same_windows(self) -> None:
        """The plan is the same after it was pickled, as it goes to workers."""
        plan = pickle.loads(pickle.dumps(self.make_stream_plan()))
        self._expect_windows(self.play(plan), "a plan that was sent")

    def _expect_windows(self, windows: list[list[bytes]], case: str) -> None:
        expected = [list(window) for window in self.expected]
        expect(windows == expected, f"{case}: the windows are {windows}; expected {expected}")
