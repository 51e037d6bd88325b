"""The newest closed windows: in order of what became of them."""

from __future__ import annotations

from typing import Any

from streamer.core.durations import SECOND
from streamer.engine.report.window_history import WindowHistory


def closed(end: int, reason: str, messages: int) -> dict[str, Any]:
    return {"start": 0, "end": end * SECOND, "key": "k", "reason": reason, "messages": messages}


def test_the_last_of_several_results_of_a_window_comes_last() -> None:
    history = WindowHistory(lambda: SECOND)
    counters = {"counters": {"dropped": {}}}
    results = [closed(5, "each", 1), closed(5, "retracted", 0), closed(5, "each", 3)]
    history.record(1, [{"now": SECOND, "closed": results, **counters}])
    assert [one.reason for one in history.closed_windows()] == ["retracted", "each"]
    history.record(2, [{"now": SECOND, "closed": [closed(5, "retracted", 0)], **counters}])
    assert history.closed_windows()[-1].reason == "retracted"
