"""Hints for a stream's failed test: open windows, and dropped messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamer.core.message import Message
from streamer.core.timestamps import format_rfc3339
from streamer.engine.offline.scripted import ScriptedStream
from streamer.engine.offline.window_simulator import truncate_after_windows
from streamer.plan import Plan
from streamer.tools.unit_tests.failure import Line, label_lines
from streamer.tools.unit_tests.steps import ScriptStep
from streamer.window.assign.pack_builder import DROP_REASON

DroppedLines = Mapping[str, Sequence[Line]]
"""Lines that show dropped messages, by reason."""

_MAX_MESSAGES = 5


def describe_open_windows(stream: ScriptedStream) -> str:
    """Return what a stream holds at a time, in words."""
    shot, clock = stream.snapshot, f"the clock is {format_rfc3339(stream.now)}"
    if not shot.held:
        return f"{clock}, no window is open"
    messages = f"{shot.held:,} message{'' if shot.held == 1 else 's'}"
    windows = f"{shot.open_windows:,} window{'' if shot.open_windows == 1 else 's'}"
    text = f"{clock}, {windows} with {messages} {'is' if shot.open_windows == 1 else 'are'} open"
    if shot.next_close is None:
        return text
    return f"{text}, the next one closes at {format_rfc3339(shot.next_close)}"


def find_dropped(plan: Plan, script: Sequence[ScriptStep]) -> DroppedLines:
    """Run a script once more; return the messages that are dropped in it, with their steps."""
    if plan.window is None:
        return {}
    stream = ScriptedStream(truncate_after_windows(plan))
    by_reason: dict[str, list[tuple[str, Message]]] = {}
    for turn in script:
        if turn.restart:
            stream.restart()
        elif turn.runs_batch:
            for message in stream.run_micro_batch(
                turn.time_ns, turn.messages, turn.ends_input
            ).dropped:
                by_reason.setdefault(str(message.meta[DROP_REASON]), []).append(
                    (turn.place, message)
                )
    return {reason: _format_drops(drops) for reason, drops in by_reason.items()}


def _format_drops(drops: Sequence[tuple[str, Message]]) -> list[Line]:
    lines = []
    for place, message in drops[:_MAX_MESSAGES]:
        lines += label_lines(f"  {place}: ", message.raw.decode(errors="replace"), "received")
    if len(drops) > _MAX_MESSAGES:
        lines.append(Line(f"  … and {len(drops) - _MAX_MESSAGES:,} more"))
    return lines
