"""Tests of whole streams: every step does what it says, and what is wrong is told exactly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from streamer.config.unit_tests.definitions import read_definitions
from streamer.config.unit_tests.fields import STEP_FIELDS, STREAM_FIELDS
from streamer.core.durations import SECOND
from streamer.core.timestamps import parse_event_time
from streamer.tools.unit_tests.steps import ScriptStep, read_steps
from streamer.tools.unit_tests.suite import SuiteResult, find_suites, run_suite
from streamer.tools.unit_tests.suite_environment import SuiteEnvironment

WINDOWS = sorted((Path(__file__).parent / "windows").glob("*.yaml"))
START = parse_event_time("2026-01-01T10:00:00Z")

BUFFER = """\
buffer:
  system_window: { timestamp_mapping: root = this.at, size: 10s }
"""
CASE = """\
tests:
  - name: a window
    target: stream
    clock: 2026-01-01T10:00:00Z
"""

Run = Callable[..., SuiteResult]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a config with the one case that is given, without name, target and clock."""

    def run(case: str, config: str = BUFFER, resource_files: tuple[str, ...] = ()) -> SuiteResult:
        monkeypatch.chdir(tmp_path)
        text = config + CASE + "".join(f"    {line}\n" for line in dedent(case).splitlines())
        Path("x.yaml").write_text(text)
        [suite] = find_suites(["x.yaml"])
        return run_suite(suite, SuiteEnvironment(suite.config, resource_files))

    return run


def texts(result: SuiteResult) -> list[str]:
    assert result.lints == ()
    return [line.text for case in result.cases for found in case.failures for line in found]


@pytest.mark.parametrize("path", WINDOWS, ids=lambda path: path.stem)
def test_the_rules_of_windows_hold_on_a_scripted_clock(path: Path) -> None:
    [suite] = find_suites([str(path)])
    result = run_suite(suite, SuiteEnvironment(suite.config))
    assert texts(result) == []
    assert len(result.cases) == path.read_text().count("target: stream") > 0


def test_every_field_of_a_step_and_of_a_stream_test_is_used() -> None:
    cases = [case.parsed for path in WINDOWS for case in read_definitions(str(path)).cases]
    steps = [step for case in cases for step in case["steps"]]
    assert {name for step in steps for name in step if step.is_given(name)} == {
        f.name for f in STEP_FIELDS
    }
    assert {f.name for f in STREAM_FIELDS} <= {
        name for c in cases for name in c if c.is_given(name)
    }


SENT = """\
steps:
  - send:
      - json_content: { id: 1, at: 2026-01-01T10:00:05Z }
      - json_content: { id: 2, at: 2026-01-01T09:00:00Z }
  - advance: 10s
"""
OUT = (
    '{"at":"2026-01-01T10:00:05Z","id":1} metadata: {"window_end_timestamp":"2026-01-01T10:00:10Z"}'
)


def test_what_came_out_must_be_listed(run: Run) -> None:
    assert texts(run(SENT)) == ["unexpected batch 0", f"  received: {OUT}"]


def test_times_and_bytes_equal_their_json(run: Run) -> None:
    config = BUFFER + (
        "pipeline:\n"
        "  processors:\n"
        "    - mapping: |\n"
        '        root.at = this.at.ts_parse("2006-01-02T15:04:05Z07:00")\n'
        '        root.raw = ["   ".bytes()]\n'
    )
    right = "output_batches: [[{json_equals: {at: 2026-01-01T10:00:05Z, raw: [ICAg]}}]]\n"
    assert texts(run(SENT + right, config)) == []
    wrong = right.replace("05Z", "06Z")
    assert '    received: "2026-01-01T10:00:05Z"' in texts(run(SENT + wrong, config))


def test_a_step_lists_what_came_out_since_the_last_list(run: Run) -> None:
    found = texts(run(SENT + "    output_batches: []\n"))
    assert found == ["step 1 [line 11]: unexpected batch 0", f"  received: {OUT}"]
    assert texts(run(SENT + "  - output_batches: [[{ json_contains: { id: 1 } }]]\n")) == []
    found = texts(run(SENT + "  - output_batches: [[{ json_contains: { id: 9 } }]]\n"))
    assert found[:4] == [
        "step 2 [line 12]: batch 0 message 0: json_contains [line 12]: JSON superset mismatch",
        "  at id:",
        "    expected: 9",
        "    received: 1",
    ]
    assert found[4:] == [f"step 2 [line 12]: batch 0 message 0: {OUT}"]


def test_too_few_batches_are_explained_by_what_is_open(run: Run) -> None:
    too_few = "wrong batch count, expected 1, got 0"
    late = (
        "  WARN late messages were dropped: 1; the newest of their windows ended at "
        "2026-01-01T09:00:00Z, and all up to 2026-01-01T09:59:40Z have closed"
    )
    found = texts(run(SENT + "output_batches: [[{}], [{}]]\n"))
    assert found == [
        "wrong batch count, expected 2, got 1",
        "  the clock is 2026-01-01T10:00:10Z, no window is open",
        late,
    ]
    early = SENT.replace("10s", "9s") + "    output_batches: [[{}]]\n"
    assert texts(run(early)) == [
        f"step 1 [line 11]: {too_few}",
        "  the clock is 2026-01-01T10:00:09Z, 1 window with 1 message is open, "
        "the next one closes at 2026-01-01T10:00:10Z",
        late,
    ]
    keeps = BUFFER.replace("10s", "10s, slide: 5s")
    two = SENT.replace("10s", "1s") + "output_batches: [[{}]]\n"
    assert texts(run(two, keeps))[1:] == [
        "  the clock is 2026-01-01T10:00:01Z, 2 windows with 1 message are open, "
        "the next one closes at 2026-01-01T10:00:05Z",
        late.replace("09:00:00Z", "09:00:05Z").replace("09:59:40Z", "09:59:50Z"),
    ]


def test_what_a_step_lists_counts_for_the_whole_test_too(run: Run) -> None:
    case = SENT + "    output_batches: [[{ json_contains: { id: 1 } }]]\n"
    assert texts(run(case)) == []
    assert texts(run(case + "output_batches: [[{}]]\n")) == []
    assert texts(run(case + "output_batches: [[{}], [{}]]\n"))[0] == (
        "wrong batch count, expected 2, got 1"
    )


def test_drops_are_checked_when_they_are_listed_and_left_out_means_none(run: Run) -> None:
    case = SENT + "output_batches: [[{}]]\n"
    assert texts(run(case)) == []
    assert texts(run(case + "dropped: { late: 1 }\n")) == []
    assert texts(run(case + "dropped: { expired: 2 }\n")) == [
        "dropped messages, reason expired",
        "  expected: 2",
        "  received: 0",
        "dropped messages, reason late",
        "  expected: 0",
        "  received: 1",
        '  step 0 [line 9]: {"at":"2026-01-01T09:00:00Z","id":2}',
    ]


def test_of_many_dropped_messages_the_first_are_shown(run: Run) -> None:
    sent = ", ".join(f"{{ content: x{n} }}" for n in range(7))
    found = texts(run(f"steps:\n  - send: [{sent}]\ndropped: {{}}\n"))
    assert found[3:] == [f"  step 0 [line 8]: x{n}" for n in range(5)] + ["  … and 2 more"]


LATE = """\
output_resources:
  - label: rest
    stdout: {}
    processors: [{ mapping: "root = {\\"id\\":this.id, \\"why\\":@window_drop_reason}" }]
"""


def test_late_output_is_checked_when_it_is_listed(run: Run) -> None:
    config = BUFFER.replace("size: 10s", "size: 10s, late_output: rest") + LATE
    case = SENT + "output_batches: [[{}]]\n"
    assert texts(run(case, config)) == []
    assert texts(run(case + "late_output: [{ json_equals: { id: 2, why: late } }]\n", config)) == []
    assert texts(run(case + "late_output: []\n", config)) == [
        "unexpected late_output message 0",
        '  received: {"id":2,"why":"late"} metadata: {"window_drop_reason":"late"}',
    ]
    assert texts(run(case + "late_output: [{}, {}]\n", config)) == [
        "late_output: wrong message count, expected 2, got 1"
    ]


def test_resources_come_from_other_files_too(run: Run, tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text(LATE)
    config = BUFFER.replace("size: 10s", "size: 10s, late_output: rest")
    case = SENT + "output_batches: [[{}]]\nlate_output: [{ json_contains: { why: late } }]\n"
    assert texts(run(case, config, ("more.yaml",))) == []
    missing = run(case, config)
    assert [lint.message for lint in missing.lints] == [
        "there is no output resource with the label 'rest'"
    ]
    assert missing.cases[0].failures[0][0].text == "the test cannot be run:"
    both = run(case, config + LATE, ("more.yaml",))
    collision = "more.yaml(2,12) label 'rest' collides with a previously defined label at "
    assert [str(lint) for lint in both.lints] == [f"{collision}x.yaml(4,12)"]
    assert [line.text for line in both.cases[0].failures[0]] == [
        "the test cannot be run:",
        f"  {both.lints[0]}",
    ]


def test_a_config_that_is_wrong_is_not_run(run: Run) -> None:
    result = run("steps: [{ advance: 1s }]", BUFFER.replace("10s", "10x"))
    assert result.failed and result.cases[0].error
    [_, line] = [line.text for line in result.cases[0].failures[0]]
    assert line.startswith("  x.yaml(2,") and line.strip() == str(result.lints[0])


def test_mocks_and_variables_are_those_of_the_test(run: Run) -> None:
    config = (
        BUFFER.replace("10s", "${SIZE}")
        + "pipeline: { processors: [{ label: slow, mapping: root = this.nope.not_null() }] }\n"
    )
    case = """
        environment: { SIZE: 20s }
        mocks: { slow: { mapping: "root = @window_end_timestamp" } }
        steps:
          - send: [{ json_content: { at: 2026-01-01T10:00:05Z } }]
          - advance: 20s
        output_batches: [[{ content_equals: "2026-01-01T10:00:20Z" }]]
    """
    assert texts(run(case, config)) == []


def script(tmp_path: Path, steps: str) -> list[ScriptStep]:
    path = tmp_path / "x_streamer_test.yaml"
    path.write_text(CASE + "    steps:\n" + "".join(f"      - {s}\n" for s in steps.splitlines()))
    definitions = read_definitions(str(path))
    assert definitions.lints == ()
    return list(read_steps(definitions.cases[0].parsed, tmp_path))


def test_the_clock_moves_by_steps_alone(tmp_path: Path) -> None:
    found = script(
        tmp_path,
        "{ send: [] }\n"
        "{ advance: 10s, send: [{ content: a }, { content: b, partition: 1, failed: no }] }\n"
        "{ restart: true }\n"
        "{ clock: 2026-01-01T09:00:00Z }\n"
        "{ end_of_input: true }\n"
        "{ advance: 5s }\n"
        "{ output_batches: [] }\n",
    )
    assert [(turn.time_ns - START) // SECOND for turn in found] == [0, 10, 10, -3600, -3600, 15, 15]
    assert [turn.runs_batch for turn in found] == [True, True, False, True, True, True, False]
    assert [turn.restart for turn in found] == [n == 2 for n in range(7)]
    assert [turn.ends_input for turn in found] == [n == 4 for n in range(7)]
    assert [(s.message.raw, s.message.error, s.partition) for s in found[1].messages] == [
        (b"a", None, 0),
        (b"b", "no", 1),
    ]
    assert [turn.expected for turn in found] == [None] * 6 + [()]
    assert [turn.place for turn in found] == [f"step {n} [line {n + 6}]" for n in range(7)]


def test_a_micro_batch_that_strict_error_handling_rejects_is_a_failure(run: Run) -> None:
    failing = 'pipeline: { processors: [ { mapping: root = throw("no") } ] }\n'
    strict = "error_handling: { strict: true }\n"
    [found] = texts(run(SENT, strict + BUFFER + failing))
    assert found.startswith("step 1 [line 13]: 1 message has failed and must not be written to ")
    assert found.endswith("by mapping at pipeline.processors.0: failed assignment (line 1): no")


DROPPING = """\
pipeline:
  processors:
    - mapping: root.n = this.n.number()
    - dedupe: { cache: seen, key: '${! json("n") }' }
cache_resources:
  - label: seen
    file: { directory: taken }
"""
FOUR = """\
steps:
  - send: [{ json_content: { n: 1 } }, { json_content: { n: 2 } }, { json_content: {} }]
"""


def test_too_few_batches_are_explained_by_what_was_logged(run: Run, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    found = texts(run(FOUR + "    output_batches: [[{}], [{}]]\n", DROPPING))
    assert found[:3] == [
        "step 0 [line 13]: wrong batch count, expected 2, got 0",
        "  the clock is 2026-01-01T10:00:00Z, no window is open",
        "  pipeline.processors.1 got 3 and gave none",
    ]
    lines = [line.strip() for line in found[3:]]
    assert lines[0].startswith("ERROR pipeline.processors.0: failed assignment (line 1): ")
    assert lines[1] == (
        "ERROR pipeline.processors.1: Cache error: open taken/1: taken is not a directory; "
        "the message is dropped"
    )


def test_processors_that_give_too_little_say_why(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    text = DROPPING + (
        "tests:\n  - name: few\n    target_processors: /pipeline/processors\n"
        "    input_batch: [{ json_content: { n: 1 } }]\n    output_batches: [[{}]]\n"
    )
    (tmp_path / "y.yaml").write_text(text.replace("taken", f"{tmp_path}/taken"))
    [suite] = find_suites([str(tmp_path / "y.yaml")])
    found = texts(run_suite(suite, SuiteEnvironment(suite.config)))
    assert found[0] == "wrong batch count, expected 1, got 0"
    assert any("Cache error: " in line for line in found[1:])


def test_a_failed_message_shows_its_first_failure_too(run: Run) -> None:
    config = """\
pipeline:
  processors:
    - mapping: root = this.n.number()
    - unarchive: { format: json_array }
"""
    case = "steps:\n  - send: [{ json_content: {} }]\n    output_batches: [[]]\n"
    [line] = [line for line in texts(run(case, config)) if "failed:" in line]
    assert "failed: failed to parse message into JSON array" in line
    assert "(the first failure of pipeline.processors.0: failed assignment (line 1): " in line
