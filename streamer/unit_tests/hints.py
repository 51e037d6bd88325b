"""What helps to see why a stream's test failed: the windows that are open, and what was dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamer.engine.play import windows_only
from streamer.engine.scripted import ScriptedStream
from streamer.message import Message
from streamer.plan import Plan
from streamer.timestamps import format_rfc3339
from streamer.unit_tests.failure import Line, labelled
from streamer.unit_tests.script import Turn
from streamer.window.drops import REASON

Drops = Mapping[str, Sequence[Line]]
"""Lines that show dropped messages, by reason."""

_MOST = 5


def still_open(stream: ScriptedStream) -> str:
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


def dropped_by(plan: Plan, script: Sequence[Turn]) -> Drops:
    """Run a script once more; return the messages that are dropped in it, with their steps."""
    if plan.window is None:
        return {}
    stream = ScriptedStream(windows_only(plan))
    found: dict[str, list[tuple[str, Message]]] = {}
    for turn in script:
        if turn.restart:
            stream.restart()
        elif turn.runs:
            for message in stream.micro_batch(turn.t, turn.sent, turn.ended).dropped:
                found.setdefault(str(message.meta[REASON]), []).append((turn.place, message))
    return {reason: _lines(drops) for reason, drops in found.items()}


def _lines(drops: Sequence[tuple[str, Message]]) -> list[Line]:
    lines = []
    for place, message in drops[:_MOST]:
        lines += labelled(f"  {place}: ", message.raw.decode(errors="replace"), "received")
    if len(drops) > _MOST:
        lines.append(Line(f"  … and {len(drops) - _MOST:,} more"))
    return lines
