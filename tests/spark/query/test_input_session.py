"""What a redeploy takes over: the open input, and what was counted of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.plan import Plan, make_plan
from streamer.spark.checkpoint.checkpoint import Checkpoint
from streamer.spark.query.input_session import InputSession, ProcessEnds


def plan_of(path: Path, label: str = "", more: str = "") -> Plan:
    text = f"input: {{label: '{label}', file: {{paths: ['{path}']}}}}\noutput: {{drop: {{}}}}\n"
    return make_plan(parse_config(text + more, "a.yaml"))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Iterator[Checkpoint]:
    held = Checkpoint(tmp_path / "checkpoint")
    yield held
    held.close()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("1\n2\n")
    return path


def session_of(plan: Plan, checkpoint: Checkpoint) -> InputSession:
    session = InputSession(plan, checkpoint, lambda *line: None, ProcessEnds())
    session.open(plan)
    session.bind(plan)
    return session


def inputs_of(checkpoint: Checkpoint) -> Any:
    return checkpoint.read_record()["inputs"]


def test_the_checkpoint_keeps_what_the_input_remembers_now_and_later(
    source: Path, checkpoint: Checkpoint
) -> None:
    session = session_of(plan_of(source), checkpoint)
    assert inputs_of(checkpoint) == {"": [str(source)]}
    session.host.root_context().child("b").save_state("later")
    assert inputs_of(checkpoint) == {"": [str(source)], "/b": "later"}


def test_a_stream_of_the_same_state_goes_on_with_its_record_and_others_with_the_counts(
    source: Path, checkpoint: Checkpoint
) -> None:
    session = session_of(plan_of(source), checkpoint)
    first = session.record_of(checkpoint.spark)
    first.batch = 7
    assert session.record_of(checkpoint.spark) is first
    other = session.record_of(checkpoint.directory / "spark-2")
    assert other.batch == -1 and other.metrics is first.metrics is session.meters
    # A deploy that is undone finds what there was.
    assert session.record_of(checkpoint.spark).batch == 7


def test_counters_of_an_input_have_the_label_that_it_has_now(
    source: Path, checkpoint: Checkpoint
) -> None:
    session = session_of(plan_of(source, "before"), checkpoint)
    session.count("input_connection_up")
    session.bind(plan_of(source, "after"))
    session.count("input_connection_up")
    labels = sorted(dict(labels)["label"] for _, labels in session.meters.counts)
    assert labels == ["after", "before"]


def test_an_input_holds_requests_only_where_something_answers_them(
    source: Path, checkpoint: Checkpoint
) -> None:
    assert not session_of(plan_of(source), checkpoint).holds_requests
    text = "input: {http_server: {path: /in}}\noutput: {sync_response: {}}\n"
    plan = make_plan(parse_config(text, "a.yaml"))
    session = InputSession(plan, checkpoint, lambda *line: None, ProcessEnds())
    assert session.holds_requests and session.host.answers is session.pending_requests
