"""Status and windows as text, as HTML, for `rich`, and live."""

from __future__ import annotations

import io
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from streamer import RunState, StreamStatus, WindowTable
from streamer.core.redaction import Redaction
from streamer.engine.report.stream_metrics import Snapshot
from streamer.service.library.live_display import open_display
from streamer.service.library.status import make_status, make_window_table

LISTING = {
    "open": 40,
    "windows": [
        {
            "start": "2026-01-01T00:00:10Z",
            "end": "2026-01-01T00:00:20Z",
            "key": "<b>[red]pass-word\n",
            "messages": 1200,
            "closes": "2026-01-01T00:00:25Z",
        }
    ],
    "closed": [
        {"start": None, "end": None, "key": None, "messages": 3, "at": "2026-01-01", "reason": "r"}
    ],
}


def make_table(limit: int = 20) -> WindowTable:
    return make_window_table("cars", LISTING, Redaction(["pass-word"]), limit)


def test_windows_are_rows() -> None:
    table = make_table()
    assert [(row.state, row.messages) for row in table] == [("closed", 3), ("open", 1200)]
    assert table[1].closes == "2026-01-01T00:00:25Z" and table.open_windows == 40
    assert table.to_dicts()[0]["reason"] == "r" and len(make_table(0)) == 0
    assert str(make_table(0)) == "cars: 40 open windows"


def test_a_table_is_escaped_and_has_no_secret() -> None:
    table = make_table()
    text, html = str(table), table._repr_html_()
    assert "pass-word" not in text + html and "<b>" in text and "<b>" not in html
    # A line for the title, one for the columns, and one for each window.
    assert len(text.splitlines()) == 4
    console = Console(file=io.StringIO(), width=200)
    console.print(table)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "[red]" in printed and "1,200" in printed and "cars: 40 open windows" in printed


def test_a_status_has_the_figures_that_there_are() -> None:
    snapshot = Snapshot(messages=12345, open_windows=2, next_close=0, dropped={"late": 7})
    status = make_status(
        "cars", RunState.FAILED, snapshot, Redaction(["s3cr3t-key"]), error="no s3cr3t-key"
    )
    assert status.is_finished and status.to_dict()["state"] == "failed"
    assert "12,345" in str(status) and "dropped: late" in str(status)
    assert "s3cr3t-key" not in f"{status!r}{status._repr_html_()}{status.to_dict()}"
    console = Console(file=io.StringIO(), width=200)
    console.print(status)
    assert "1970-01-01T00:00:00Z" in console.file.getvalue()  # type: ignore[attr-defined]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_a_view_in_the_place_of_the_one_before() -> None:
    out = _Terminal()
    show = open_display(out)
    show(StreamStatus("a", RunState.STARTING))
    show(StreamStatus("a", RunState.STARTING))
    show(StreamStatus("b", RunState.RUNNING))
    lines = len(str(StreamStatus("a", RunState.STARTING)).splitlines())
    first, second = out.getvalue().split(f"\x1b[{lines}F\x1b[J")
    assert (first.split(":")[0], second.split(":")[0]) == ("a", "b")
    plain = io.StringIO()
    show = open_display(plain)
    show(StreamStatus("a", RunState.STARTING))
    show(StreamStatus("b", RunState.RUNNING))
    assert "\x1b" not in plain.getvalue()


def test_a_notebook_shows_one_display_that_is_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []

    def display(view: Any, display_id: bool) -> Any:
        assert display_id
        shown.append(("new", view._repr_html_()))
        return SimpleNamespace(update=lambda view: shown.append(("update", view._repr_html_())))

    ipython, module = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = object  # type: ignore[attr-defined]
    module.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    show = open_display()
    for state in (RunState.STARTING, RunState.RUNNING, RunState.ENDED):
        show(StreamStatus("a", state))
    assert [kind for kind, _ in shown] == ["new", "update", "update"]
    assert all("<table>" in html for _, html in shown)
