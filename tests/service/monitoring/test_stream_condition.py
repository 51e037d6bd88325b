"""The condition of a stream: derived from what it and the service know, by one function."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.core.durations import SECOND
from streamer.engine.driver.rejected_files import WaitingMessages
from streamer.engine.report.start_progress import StartPhase
from streamer.engine.report.stream_metrics import Snapshot, series_key
from streamer.engine.report.trouble import Trouble
from streamer.service.monitoring.stream_condition import (
    CONDITION_TEXTS,
    FAILING,
    Condition,
    describe_condition,
    read_condition,
)
from streamer.service.monitoring.stream_view import ManagedState, StreamState, StreamView

CONFIG = "input: { generate: { mapping: root = 1 } }\noutput: { label: sink, drop: {} }\n"
NOW = 1_000_000.0
FLOWS = StreamState(Snapshot(batch=3), {}, last_message=NOW - 2, backlog=7)
OUTPUT = {"label": "sink", "path": "root.output"}
REFUSED = Trouble("refused", OUTPUT, NOW - 40, tries=3, next_try=NOW + 8, messages=120, sample="x")
RUNNING = ManagedState("running", 0, 1, 60.0, since=NOW - 60)
REJECTED = WaitingMessages(
    *(2, 0, "output", "sink", "no v", "config", 1, 10, round((NOW - 90) * SECOND)),
    tries=4,
    due=round((NOW + 3) * SECOND),
    source={"label": "", "path": "root.pipeline.processors.0"},
    sample='{"n": 1}',
)


def made(state: StreamState | None = None, managed: ManagedState | None = None) -> StreamView:
    view = StreamView(parse_config(CONFIG, env={}), None if managed is None else lambda: managed)
    if state is not None:
        view.set_running(lambda: state)
    return view


def told(view: StreamView) -> tuple[str, str]:
    condition = read_condition(view, NOW)
    return str(condition.name), describe_condition(condition, NOW)


@pytest.mark.parametrize(
    ("state", "managed", "name", "text"),
    [
        (FLOWS, None, "running", "running"),
        (replace(FLOWS, last_message=NOW - 300), None, "idle", "idle for 5 min"),
        # One that has got no message since its start says so.
        (replace(FLOWS, last_message=None), None, "running", "running"),
        (
            *(replace(FLOWS, behind_since=NOW - 20), None, "catching_up"),
            "catching up for 20 s, 7 messages waiting",
        ),
        (replace(FLOWS, behind_since=NOW - 5), None, "running", "running"),
        (
            *(replace(FLOWS, problem="refused", trouble=REFUSED), RUNNING, "output_blocked"),
            "output blocked for 40 s, 120 messages waiting, 3 tries, next try in 8 s",
        ),
        (
            *(replace(FLOWS, trouble=replace(REFUSED, is_failure=True, messages=None)), None),
            *("retrying", "retrying for 40 s, 3 tries, next try in 8 s"),
        ),
        (
            replace(FLOWS, trouble=Trouble("no broker", {"path": "root.input"}, NOW - 1)),
            *(None, "input_blocked", "input blocked for 1 s"),
        ),
        (
            replace(FLOWS, trouble=Trouble("no answer", {"path": "root.pipeline.processors.0"})),
            *(None, "retrying", "retrying for 11 d"),
        ),
        (
            replace(
                FLOWS,
                rejected=REJECTED,
                counts={series_key("output_rejected_waiting", {}): 1},
            ),
            *(RUNNING, "degraded"),
            "degraded for 90 s, 1 message waiting, 4 tries, next try in 3 s",
        ),
        (
            *(None, RUNNING._replace(state="paused"), "paused", "paused for 60 s"),
        ),
        (
            replace(FLOWS, trouble=REFUSED),
            RUNNING._replace(leaving="pausing", leaving_since=NOW - 4),
            *("pausing", "pausing for 4 s, 120 messages waiting, 3 tries, next try in 8 s"),
        ),
        (
            FLOWS,
            RUNNING._replace(
                state="restarting",
                reason="it broke",
                failing_since=NOW - 30,
                tries=2,
                next_try=NOW + 4,
            ),
            *("retrying", "retrying for 30 s, 2 tries, next try in 4 s"),
        ),
        (
            FLOWS,
            RUNNING._replace(state="failed", reason="it broke", tries=6),
            *("failed", "failed for 60 s, 6 tries"),
        ),
    ],
)  # fmt: skip
def test_each_condition_says_since_when_and_what_comes_next(
    state: StreamState | None, managed: ManagedState | None, name: str, text: str
) -> None:
    assert told(made(state, managed)) == (name, text)


def test_a_start_says_its_phase_and_its_seconds() -> None:
    view = made()
    assert read_condition(view, NOW).name == Condition.STARTING
    view.start.begin(StartPhase.JAVA)
    condition = read_condition(view, NOW)
    assert condition.phase == "starting Java"
    assert condition.since == pytest.approx(NOW, abs=30)
    view.set_running(lambda: StreamState(Snapshot(), {}))
    view.start.begin(StartPhase.FIRST_BATCH)
    assert read_condition(view, NOW).phase == "first micro-batch"
    # What the first micro-batch is blocked by says more than that it is the first.
    view.set_running(lambda: StreamState(Snapshot(), {}, "refused", trouble=REFUSED))
    assert read_condition(view, NOW).name == Condition.OUTPUT_BLOCKED


def test_a_start_that_fails_at_a_connection_names_the_component() -> None:
    view = made(managed=RUNNING._replace(state="waiting", reason="refused", failing_since=NOW - 9))
    view.start.connect(view.config.outputs[0])
    view.set_ended()
    condition = read_condition(view, NOW)
    assert condition.name == Condition.OUTPUT_BLOCKED
    assert (condition.place, condition.error) == (OUTPUT, "refused")


def test_a_deploy_that_drains_and_a_stop_are_told_apart() -> None:
    view = made(FLOWS)
    view.unready_reason = lambda: "…"
    assert told(view)[0] == "stopping"
    view.is_draining = lambda: True
    assert told(view)[0] == "draining"
    view.set_ended()
    assert told(view)[0] == "ended"


def test_as_a_document_it_has_the_component_the_sample_and_no_zero_for_the_unknown() -> None:
    def document(state: StreamState) -> dict[str, Any]:
        return read_condition(made(state), NOW).to_document(NOW)

    assert document(replace(FLOWS, trouble=REFUSED)) == {
        "name": "output_blocked",
        "text": "output blocked for 40 s, 120 messages waiting, 3 tries, next try in 8 s",
        "since": "1970-01-12T13:46:00Z",
        "seconds": 40.0,
        "phase": "",
        "error": "refused",
        **OUTPUT,
        "sample": "x",
        "tries": 3,
        "next_try": "1970-01-12T13:46:48Z",
        "messages": 120,
    }
    degraded = document(replace(FLOWS, rejected=REJECTED))
    # The processor that failed, not the output that was to get the message.
    assert degraded["path"] == "root.pipeline.processors.0"
    assert (degraded["sample"], degraded["messages"]) == ('{"n": 1}', None)
    plain = document(FLOWS)
    assert {name for name, value in plain.items() if value is None} == {
        *("since", "seconds", "tries", "next_try", "messages")
    }


def test_failing_conditions_have_seconds_and_all_have_words() -> None:
    assert set(CONDITION_TEXTS) == set(Condition) > FAILING
    failing = read_condition(made(replace(FLOWS, trouble=REFUSED)), NOW)
    assert failing.failing_seconds(NOW) == 40.0
    assert read_condition(made(FLOWS), NOW).failing_seconds(NOW) == 0.0
