"""Records of micro-batches, and the answers that they give: clocks, windows, dropped messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.core.durations import SECOND
from streamer.core.message import Message
from streamer.core.timestamps import parse_rfc3339
from streamer.engine.driver.decision_journal import read_decisions
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.plan import make_plan
from streamer.service.monitoring.decision_answers import (
    DecisionQuery,
    answer_query,
    windows_by_label,
)
from streamer.service.run.decision_recorder import DecisionRecorder
from streamer.spark.checkpoint.checkpoint import Checkpoint
from tests.service.serving import serving

TUMBLING = """
input: {generate: {mapping: root = 1}}
buffer:
  tumbling_window:
    timestamp_mapping: root = this.at
    size: 10s
    allowed_lateness: 2s
    MORE
output: {http_client: {url: "http://ann:s3cret@localhost/", verb: POST}}
"""
KEY = "key_mapping: root = this.k"
INPUTS = TUMBLING.replace(
    "input: {generate: {mapping: root = 1}}",
    "input: {broker: {inputs: [{label: fast, generate: {mapping: root = 1}}, "
    "{label: slow, generate: {mapping: root = 1}}]}}",
)


class Scene:
    """A stream, its recorder, and what the journal answers."""

    def __init__(self, directory: Path, config: str) -> None:
        self.config = parse_config(config)
        self.plan = make_plan(self.config)
        self.stream = ScriptedStream(self.plan)
        self.checkpoint = Checkpoint(directory)
        if not self.checkpoint.identity:
            self.checkpoint.bind({"input": "x"}, {})
        self.log: list[str] = []
        self.recorder = self.make_recorder()
        self.batch = -1

    def close(self) -> None:
        self.recorder.close()
        self.checkpoint.close()

    def restart(self) -> None:
        self.recorder.close()
        self.recorder = self.make_recorder()

    def make_recorder(self) -> DecisionRecorder:
        def log(level: str, text: str, fields: Mapping[str, Any]) -> None:
            self.log.append(text)

        return DecisionRecorder(self.plan, self.checkpoint, log, self.config)

    def send(self, now: int, *times: str, source: str = "", **more: Any) -> None:
        sent = [
            ScriptedMessage(
                Message(json.dumps({"at": f"2026-11-21T10:{time}Z", **more}).encode()),
                input=source,
            )
            for time in times
        ]
        self.stream.run_micro_batch(now * SECOND, sent)
        self.batch += 1
        self.record()

    def record(self) -> None:
        statuses = self.stream._delivery.statuses.values()
        self.recorder.record(self.batch, statuses, float(self.batch))

    def records(self) -> list[dict[str, Any]]:
        return [*read_decisions(self.checkpoint.directory)]

    def ask(self, **query: Any) -> dict[str, Any]:
        windows = windows_by_label(self.plan)
        return answer_query(self.records(), windows, DecisionQuery(**query))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path, TUMBLING.replace("MORE", ""))
    yield made
    made.close()


def at(text: str) -> int:
    return parse_rfc3339(f"2026-11-21T10:{text}Z").ns


@pytest.mark.parametrize(
    "more",
    ["", KEY, f"{KEY}\n    clock_scope: key"],
)
def test_a_late_message_is_explained(tmp_path: Path, more: str) -> None:
    scene = Scene(tmp_path, TUMBLING.replace("MORE", more))
    scene.send(100, "00:01", "00:04", k="a")
    scene.send(101, "00:14", k="a")
    scene.send(102, "00:08", k="a")
    (found,) = scene.ask(text="00:08")["messages"]
    assert (found["micro_batch"], found["reason"]) == (2, "late")
    assert found["event_time"] == "2026-11-21T10:00:08Z"
    assert found["clock_before"] == "2026-11-21T10:00:14Z"
    assert found["window_end"] == "2026-11-21T10:00:10Z"
    assert found["closed_at"] == "2026-11-21T10:00:12Z"
    assert "plus allowed_lateness 2s" in found["rule"]
    assert found["remedy"].startswith("allowed_lateness: 5s would have taken it")
    if "clock_scope" not in more:
        assert found["closed_in"] == 1
    scene.close()


def test_so_much_lateness_as_advised_takes_the_message(tmp_path: Path) -> None:
    config = TUMBLING.replace("MORE", "").replace("lateness: 2s", "lateness: 5s")
    scene = Scene(tmp_path, config)
    scene.send(100, "00:01", "00:14", "00:08")
    assert scene.records()[-1]["dropped"] == []
    scene.close()


def test_windows_are_closed_open_or_without_messages(scene: Scene) -> None:
    scene.send(100, "00:01", "00:04")
    scene.send(101, "00:34")
    (closed, unseen) = scene.ask(bound=at("00:10"))["windows"]
    assert (closed["state"], closed["micro_batch"], closed["messages"]) == ("closed", 1, 2)
    assert (closed["clock_before"], closed["clock"]) == (
        "2026-11-21T10:00:04Z",
        "2026-11-21T10:00:34Z",
    )
    due = "2026-11-21T10:00:12Z"
    assert closed["why"] == f"the clock came to {due}: its end plus allowed_lateness 2s"
    assert (unseen["state"], unseen["micro_batch"]) == ("passed", 1)
    (before, after) = sorted(scene.ask(bound=at("00:40"))["windows"], key=lambda one: one["end"])
    assert (before["state"], before["closes"]) == ("open", "2026-11-21T10:00:42Z")
    assert after["state"] == "open" and after["start"] == "2026-11-21T10:00:40Z"


def test_a_message_that_was_not_sampled_has_its_windows(scene: Scene) -> None:
    scene.send(100, "00:01")
    scene.send(101, "00:34")
    answer = scene.ask(at=at("00:02"))
    assert answer["messages"] == []
    assert [one["state"] for one in answer["windows"]] == ["closed"]


def test_a_message_that_stage_1_drops_is_explained(scene: Scene) -> None:
    scene.send(100, "99:99")
    (found,) = scene.ask(text="99:99")["messages"]
    assert found["reason"] == "timestamp" and "gave no time" in found["rule"]


def test_the_input_that_lags_is_blamed_until_it_goes_on(tmp_path: Path) -> None:
    scene = Scene(tmp_path, INPUTS.replace("MORE", "clock_scope: input"))
    scene.send(100, "00:01", source="slow")
    scene.send(101, "00:02", source="fast")
    scene.send(102, "00:35", source="fast")
    scene.send(103, "00:36", source="fast")
    (clock,) = scene.ask()["clocks"]
    held = clock["held_by"]
    assert (held["kind"], held["name"], held["since"]) == ("source", "slow", "1970-01-01T00:01:41Z")
    assert (held["event_time"], held["ahead_seconds"]) == ("2026-11-21T10:00:01Z", 35.0)
    assert (held["windows"], held["messages"], held["complete"]) == (1, 2, True)
    assert clock["hint"].startswith("source_idle_timeout 1m")
    assert scene.recorder.blames[""].name == "slow"
    # A restart goes on with what the journal has.
    scene.restart()
    scene.send(104, "00:37", source="fast")
    assert scene.recorder.blames[""].since == 101 * SECOND
    scene.send(105, "00:50", source="slow")
    assert scene.recorder.blames[""].name == "fast"
    scene.close()


def test_the_key_whose_window_waits_longest_is_blamed(tmp_path: Path) -> None:
    scene = Scene(tmp_path, TUMBLING.replace("MORE", f"{KEY}\n    clock_scope: key"))
    scene.send(100, "00:01", k="old")
    scene.send(101, "01:01", k="new")
    held = scene.ask()["clocks"][0]["held_by"]
    assert (held["kind"], held["name"], held["windows"]) == ("key", "old", 1)
    assert scene.ask()["clocks"][0]["hint"].startswith("set idle_timeout")
    scene.close()


def test_secrets_are_not_recorded(scene: Scene) -> None:
    scene.send(100, "00:01", "00:44")
    scene.send(101, "00:02", note="it is s3cret", url="http://bob:hunter2@host/")
    (journal,) = (scene.checkpoint.directory / "decisions").iterdir()
    text = journal.read_text()
    assert "it is" in text and "s3cret" not in text and "hunter2" not in text


def test_a_replay_after_a_restart_is_recorded_once(scene: Scene) -> None:
    scene.send(100, "00:01")
    scene.restart()
    scene.record()
    scene.send(101, "00:02")
    assert [record["batch"] for record in scene.records()] == [0, 1]
    assert scene.records()[-1]["buffers"][""]["added"] == 1


def test_a_journal_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "decisions").write_text("a file")
    scene = Scene(tmp_path, TUMBLING.replace("MORE", ""))
    scene.send(100, "00:01")
    scene.send(101, "00:02")
    assert len(scene.log) == 1 and "is not written any more" in scene.log[0]
    scene.close()


def test_the_server_of_a_single_stream_answers_from_the_journal(tmp_path: Path) -> None:
    config = TUMBLING.replace("MORE", KEY)
    scene = Scene(tmp_path, config)
    scene.send(100, "00:01", "00:04", k="a")
    scene.send(101, "00:14", k="a")
    scene.send(102, "00:08", k="a")
    with serving(rest=config) as server:
        # Before the run has its checkpoint, there is no journal.
        assert server.json("/why")["journal"]["micro_batches"] == 0
        server.view.checkpoint_directory = scene.checkpoint.directory
        by_text = json.loads(json.dumps(scene.ask(text="00:08")))
        assert server.json("/why?message=00:08") == by_text
        assert by_text["messages"]
        bound = "2026-11-21T10:00:10Z"
        by_bound = json.loads(json.dumps(scene.ask(bound=at("00:10"))))
        assert server.json(f"/benthos/why?window={bound}") == by_bound
        assert by_bound["windows"]
        assert server.json("/why")["journal"]["micro_batches"] == 3
        status, body, _ = server.get("/why?window=noon")
        assert (status, b"expected a time such as" in body) == (400, True)
    scene.close()
