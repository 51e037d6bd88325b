"""`error_handling.strict`: a message that fails is not delivered, and all others are."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.processing import run_each

from .stream import Run, write_lines

SECOND = 10**9
T = 1_700_000_000 * SECOND
STRICT = "error_handling: { strict: true }\ninput: { file: { paths: [in] } }\n"
NUMBERS = """
pipeline:
  processors:
    - { label: num, mapping: root.n = this.n.number() }
    - %s
    - { mapping: root.m = this.n }
"""
NOTHING = "{ noop: {} }"
WINDOW = "buffer: { system_window: { timestamp_mapping: root = this.at, size: 10s } }\n"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "in"
    path.touch()
    return path


def rejected(run: Run) -> int:
    place = (("label", ""), ("path", "root.output"), ("reason", "config"))
    return run.delivery.metrics.counts["output_rejected", place]


def test_a_message_that_has_failed_is_rejected_by_itself(source: Path) -> None:
    write_lines(source, [{"n": 1}, {"n": "x"}, {"n": "y"}, {"n": 4}])
    run = Run(STRICT + NUMBERS % NOTHING)
    run.step(T, tries=2)
    assert run.printed() == [{"m": 1}, {"m": 4}]
    assert rejected(run) == 2 == run.rejections.messages
    [[_, text, _]] = run.said("rejected")
    assert text.startswith(
        "A message was rejected (kept and sent again by itself): rejecting due to failed "
        "processing: failed assignment (line 1): "
    )
    assert text.endswith("(by mapping 'num' at pipeline.processors.0)")
    # What failed is in the log, of a kind once with the number of the others.
    failed = run.said("failed assignment")
    assert [(fields["label"], fields.get("repeated")) for _, _, fields in failed] == [
        *(("num", 1), ("", None))
    ]


def test_what_has_failed_goes_through_the_processors_again(source: Path) -> None:
    write_lines(source, [{"n": 1}, {"n": "x"}])
    run = Run(STRICT + NUMBERS % NOTHING)
    run.step(T)
    again = Run(STRICT + NUMBERS.replace("this.n.number()", "this.n") % NOTHING, run.state)
    again.step(T)
    again.rejections.tick()
    again.step(T)
    assert again.printed() == [{"m": "x"}] and again.rejections.is_finished


@pytest.mark.parametrize("each", ["{ noop: {} }", "{ split: {} }"], ids=["together", "one by one"])
def test_a_failed_message_skips_the_processors_that_follow(each: str) -> None:
    from streamer.components.catalog import build_context
    from streamer.config import parse_config

    text = (NUMBERS % each).replace("root.m = this.n", 'root = "reached"')
    processors = build_context().build_all(parse_config(text).processors)
    for strict in (False, True):
        ex = Execution(lambda: 0, strict=strict)
        messages = [Message(b'{"n":"x"}'), Message(b'{"n":1}')]
        [[failed], [fine]] = run_each(processors, messages, ex)
        assert failed.raw == (b'{"n":"x"}' if strict else b"reached")
        assert fine.raw == b"reached"


def test_what_try_catch_recovers_from_is_delivered_and_what_catch_would_is_not(
    source: Path,
) -> None:
    write_lines(source, [{"n": "x"}])
    recovering = "{ mapping: 'root = {\"n\": 0}' }"
    caught = Run(STRICT + NUMBERS % f"{{ catch: [ {recovering} ] }}")
    caught.step(T)
    assert caught.printed() == [] and rejected(caught) == 1
    run = Run(
        STRICT
        + "pipeline: { processors: [ { try_catch: { "
        + "processors: [ { mapping: root = this.n.number() } ], "
        + f"catch: [ {recovering} ] }} }} ] }}"
    )
    run.step(T)
    assert run.printed() == [{"n": 0}] and rejected(run) == 0


def test_without_strict_failed_messages_are_written(source: Path) -> None:
    write_lines(source, [{"n": "x"}])
    run = Run("input: { file: { paths: [in] } }\n" + NUMBERS % NOTHING)
    run.step(T)
    assert run.printed() == [{"m": "x"}] and rejected(run) == 0


def test_a_message_that_fails_before_a_window_is_rejected_behind_it(source: Path) -> None:
    write_lines(source, [{"at": 1_700_000_001}, {"at": 1_700_000_001, "n": "x"}])
    failing = "'root = if this.n != null { throw(\"no\") }'"
    text = STRICT.replace("[in] }", f"[in] }}, processors: [ {{ mapping: {failing} }} ]")
    run = Run(text + WINDOW)
    run.step(T)
    run.step(T + 11 * SECOND)
    assert len(run.printed()) == 1 and rejected(run) == 1


def test_of_a_window_only_the_group_that_has_failed_is_rejected(source: Path) -> None:
    write_lines(source, [{"at": 1_700_000_001, "k": k} for k in ("a", "b", "b")])
    run = Run(
        STRICT
        + WINDOW
        + "pipeline: { processors: [ { group_by_value: { value: '${! this.k }' } }, "
        '{ mapping: \'root = if batch_index() == 0 { if this.k == "b" { throw("no") } else '
        "{ batch_size() } } else { deleted() }' } ] }\n"
    )
    run.step(T)
    run.step(T + 11 * SECOND)
    assert run.printed() == [1] and rejected(run) == 1
