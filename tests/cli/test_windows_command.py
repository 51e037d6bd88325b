"""`streamer windows`, against a service with pretended streams."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from streamer.cli.main import invoke
from streamer.cli.windows import describe_close
from streamer.core.durations import SECOND
from streamer.engine.report.window_questions import Answer
from streamer.service.monitoring.window_listing import list_open_windows
from streamer.window.inspect.window_query import WindowListing, WindowQuery, WindowRow
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window_types import Session
from tests.service.api.asking import Asking, asking
from tests.service.fleet.pretending import Stage, config_text

Captured = pytest.CaptureFixture[str]
SESSIONS = EventWindow(Session(5 * SECOND), keyed=True)
ROWS = [
    WindowRow("ada", 10 * SECOND, 12 * SECOND, 2_000, None, 17 * SECOND + 1),
    WindowRow("bob", 11 * SECOND, 11 * SECOND, 1, None, 16 * SECOND + 1),
]
MANY = {"one": 2, "many": 5_000, "none": 0}


def list_windows(stream_id: str, query: WindowQuery, answer: Answer | None) -> Mapping[str, Any]:
    """Two sessions in each report of `one`; `many` has too many for that."""
    status: dict[str, Any] = {"open_windows": MANY[stream_id]}
    if stream_id != "many":
        status["listing"] = WindowListing(ROWS[: MANY[stream_id]], MANY[stream_id]).to_dict()
    return list_open_windows(SESSIONS, [status], None, query, answer)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asking]:
    files = {name: tmp_path / f"{name}.yaml" for name in MANY}
    for name, path in files.items():
        path.write_text(config_text(name))
    given = {name: str(path) for name, path in files.items()}
    with asking(tmp_path / "c", files=given, stage=Stage(windows=list_windows)) as served:
        monkeypatch.setenv("STREAMER_URL", served.url)
        for name in MANY:
            served.service.wait_for(name, "running")
        yield served


def test_sessions_are_listed_with_keys_bounds_and_what_closes_them(
    server: Asking, capsys: Captured
) -> None:
    assert invoke(["windows", "one"]) == 0
    said = capsys.readouterr()
    heads, ada, bob = said.out.splitlines()
    assert heads.split() == ["KEY", "START", "END", "MESSAGES", "BYTES", "CLOSES"]
    assert re.split("  +", ada) == [
        *("ada", "1970-01-01T00:00:10Z", "1970-01-01T00:00:12Z", "2,000", "–"),
        "event time 1970-01-01T00:00:17.001Z",
    ]
    assert bob.startswith("bob") and said.err == ""
    assert invoke(["windows", "one", "--by", "size", "--key", "b", "--json"]) == 0
    assert [one["key"] for one in json.loads(capsys.readouterr().out)["windows"]] == ["bob"]
    assert invoke(["windows", "one", "--key", "nobody"]) == 0
    assert capsys.readouterr().err == "no open window matches\n"
    assert invoke(["windows", "none"]) == 0
    assert capsys.readouterr().err == "no window is open\n"


def test_a_key_among_very_many_is_asked_for(server: Asking, capsys: Captured) -> None:
    run: Any = server.service.manager.registry.get("many").run

    def answer() -> None:
        for text in run.questions.take().splitlines():
            found = {"rows": [list(ROWS[0])], "total": 1, "complete": True}
            content = {"start": ROWS[0].start, "end": ROWS[0].end, "messages": 2_000}
            found["contents"] = [{**content, "mapping": "m", "result": {"content": '{"n":1}'}}]
            run.questions.record([{"answers": {text: found}}])

    run.questions.wake = answer
    assert invoke(["windows", "many", "--key", "ada", "--content"]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[1].startswith("ada") and said.err == ""
    assert "2,000 messages, aggregated\n  result so far: {" in said.out


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"closes_by": "clock"}, "1970-01-01T00:00:01Z"),
        ({"closes_by": "key_time"}, "event time 1970-01-01T00:00:01Z of its key"),
        ({"closes_by": "count", "messages_missing": 1}, "after 1 more message"),
        ({"closes_by": "count", "messages_missing": 1_200}, "after 1,200 more messages"),
        ({"closes_by": "never", "closes": None}, "never"),
        (
            {"closes_idle": "1970-01-01T00:00:09Z"},
            "event time 1970-01-01T00:00:01Z, or 1970-01-01T00:00:09Z if no message comes",
        ),
    ],
)
def test_it_is_said_why_a_window_closes(fields: dict[str, Any], text: str) -> None:
    usual = {
        "closes": "1970-01-01T00:00:01Z",
        "closes_by": "event_time",
        "closes_idle": None,
        "messages_missing": None,
    }
    assert describe_close({**usual, **fields}) == text
