"""`streamer why`: of a checkpoint, and of a stream of a service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamer.cli.main import invoke
from streamer.core.durations import SECOND
from streamer.core.timestamps import parse_rfc3339
from streamer.engine.driver.decision_journal import DecisionJournal
from streamer.engine.report.clock_blame import ClockBlame
from tests.service.api.asking import asking
from tests.service.fleet.pretending import Stage, config_text

Captured = pytest.CaptureFixture[str]
CONFIG = """
input: {file: {paths: [in.ndjson]}}
buffer:
  tumbling_window: {timestamp_mapping: root = this.at, size: 10s, clock_scope: input}
output: {drop: {}}
"""
NOW = parse_rfc3339("2026-11-21T10:05:00Z").ns
CLOCK = parse_rfc3339("2026-11-21T10:00:14Z").ns
BLAME = ClockBlame(
    *("source", "slow", "b.ndjson", CLOCK, NOW - 60 * SECOND, 312 * SECOND, 3, 40, 900),
    is_complete=False,
)
BUFFER = {
    **{"watermark": CLOCK, "closed_until": None, "blame": BLAME.to_fields()},
    **{"held": 45, "bytes": 1_000, "taken": 50, "added": 5, "dropped": {"late": 1}},
}
DROPPED = {
    **{"buffer": "", "reason": "late", "payload": '{"at":"early"}', "key": None},
    **{"event_time": CLOCK - 10 * SECOND, "watermark": CLOCK, "window_end": None},
    **{"source": "a.ndjson", "detail": ""},
}


def keep(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    journal = DecisionJournal(directory, "one")
    record = {"batch": 7, "time": NOW, "delivered": NOW, "buffers": {"": BUFFER}}
    journal.append({**record, "closed": [], "more_closed": 0, "dropped": [DROPPED]})
    journal.close()


def test_the_holder_of_the_clock_is_named(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    keep(tmp_path / "state")
    place = ["--checkpoint", str(tmp_path / "state")]
    assert invoke(["why", str(tmp_path / "config.yaml"), *place]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "clock: 2026-11-21T10:00:14Z (event time), since micro-batch 7 (2026-11-21T10:05:00Z)",
        "windows hold 45 messages, 1,000 bytes",
        "held back by slow, file b.ndjson, since 2026-11-21T10:04:00Z",
        "  its newest event time: 2026-11-21T10:00:14Z; others are 312.0 s ahead",
        "  windows that wait for it: at least 3, with 40 messages, 900 bytes",
        "  source_idle_timeout 1m: so long after its last message the clock goes on without slow; "
        "a shorter one waits less",
    ]
    assert invoke(["why", str(tmp_path / "config.yaml"), *place, "--message", "early"]) == 0
    assert "  remedy: allowed_lateness: " in capsys.readouterr().out
    other = ["--message", '{"at":"2026-11-21T10:00:31Z"}', "--json"]
    assert invoke(["why", str(tmp_path / "config.yaml"), *place, *other]) == 0
    (window,) = json.loads(capsys.readouterr().out)["windows"]
    assert (window["state"], window["closes"]) == ("open", "2026-11-21T10:00:40Z")


def test_a_time_that_is_none_is_named(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    keep(tmp_path / "state")
    place = ["--checkpoint", str(tmp_path / "state"), "--window", "noon"]
    assert invoke(["why", str(tmp_path / "config.yaml"), *place]) == 1
    assert "--window noon: expected" in capsys.readouterr().err


def test_a_service_is_asked_for_its_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    path = tmp_path / "one.yaml"
    path.write_text(config_text("one"))
    with asking(tmp_path / "c", files={"one": str(path)}, stage=Stage()) as served:
        monkeypatch.setenv("STREAMER_URL", served.url)
        served.service.wait_for("one", "running")
        directory = Path(served.service.manager.registry.get("one").directory)
        keep(directory)
        assert invoke(["why", "--stream", "one", "--message", "early", "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["journal"]["last_micro_batch"] == 7
        assert answer["messages"][0]["event_time"] == "2026-11-21T10:00:04Z"
        assert invoke(["why", "--stream", "one", "--window", "noon"]) == 1
        assert "window is 'noon'; expected a time" in capsys.readouterr().err
        assert invoke(["why", "--stream", "none"]) == 1
