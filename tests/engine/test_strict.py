"""`error_handling.strict`: a message that fails is not delivered, and its micro-batch fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.engine.delivery import RejectedError
from streamer.message import Execution, Message
from streamer.pipeline import run_each

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
    place = (("label", ""), ("path", "root.output"))
    return run.delivery.meters.counts["output_rejected", place]


def test_nothing_of_a_micro_batch_is_written_when_a_message_has_failed(source: Path) -> None:
    write_lines(source, [{"n": 1}, {"n": "x"}, {"n": "y"}, {"n": 4}])
    run = Run(STRICT + NUMBERS % NOTHING)
    with pytest.raises(RejectedError) as raised:
        run.step(T)
    said = str(raised.value)
    assert said.startswith(
        "2 messages have failed and must not be written to root.output, since "
        "error_handling.strict is set; the first by mapping 'num' at pipeline.processors.0: "
        "failed assignment (line 1): "
    )
    assert run.printed() == [] and run.delivery.batch == -1
    assert rejected(run) == 2
    # What failed is in the log as ever; what is counted is what has been delivered.
    assert [fields["label"] for _, _, fields in run.said("failed assignment")] == ["num", "num"]
    assert not [name for name, _ in run.delivery.meters.counts if name.startswith("processor")]


def test_a_micro_batch_that_is_tried_again_goes_through_once_nothing_fails(source: Path) -> None:
    write_lines(source, [{"n": 1}, {"n": "x"}])
    run = Run(STRICT + NUMBERS % NOTHING)
    with pytest.raises(RejectedError):
        run.step(T)
    again = Run(STRICT + NUMBERS.replace("this.n.number()", "this.n") % NOTHING, run.state)
    again.step(T)
    assert again.printed() == [{"m": 1}, {"m": "x"}]


@pytest.mark.parametrize("each", ["{ noop: {} }", "{ split: {} }"], ids=["together", "one by one"])
def test_a_failed_message_skips_the_processors_that_follow(each: str) -> None:
    from streamer.catalog import build_context
    from streamer.config import parse_config

    text = (NUMBERS % each).replace("root.m = this.n", 'root = "reached"')
    processors = build_context().all(parse_config(text).processors)
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
    caught = STRICT + NUMBERS % f"{{ catch: [ {recovering} ] }}"
    with pytest.raises(RejectedError):
        Run(caught).step(T)
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


def test_a_message_that_fails_before_a_window_is_rejected_before_the_window_keeps_others(
    source: Path,
) -> None:
    write_lines(source, [{"at": 1_700_000_001}, {"at": 1_700_000_001, "n": "x"}])
    failing = "'root = if this.n != null { throw(\"no\") }'"
    text = STRICT.replace("[in] }", f"[in] }}, processors: [ {{ mapping: {failing} }} ]")
    run = Run(text + WINDOW)
    with pytest.raises(RejectedError, match="1 message has failed .* at input.processors.0: .*no"):
        run.step(T)
    assert run.delivery.batch == -1


def test_a_window_with_a_failed_group_is_not_written(source: Path) -> None:
    write_lines(source, [{"at": 1_700_000_001, "k": k} for k in ("a", "b", "b")])
    run = Run(
        STRICT
        + WINDOW
        + "pipeline: { processors: [ { group_by_value: { value: '${! this.k }' } }, "
        '{ mapping: \'root = if batch_index() == 0 { if this.k == "b" { throw("no") } else '
        "{ batch_size() } } else { deleted() }' } ] }\n"
    )
    run.step(T)
    with pytest.raises(RejectedError, match="1 message has failed"):
        run.step(T + 11 * SECOND)
    assert run.printed() == []
