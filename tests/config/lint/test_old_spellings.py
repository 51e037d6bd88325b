"""Old spellings that Benthos still takes: taken, and named by `lint --deprecated`."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.config import LintOptions, lint_config, parse_config


def lints(tmp_path: Path, text: str, deprecated: bool) -> list[str]:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    options = LintOptions(deprecated=deprecated)
    found = lint_config(path, env={}, options=options)
    return [str(lint).removeprefix(str(path)) for lint in found]


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (
            "output: { type: drop }",
            "(1,11) field type is deprecated; write `drop: {}`",
        ),
        (
            "output: { type: drop, drop: {} }",
            "(1,11) field type is deprecated; remove it",
        ),
        (
            "output: { type: drop, plugin: {} }",
            "(1,11) field type is deprecated; write `drop:` in the place of `plugin:`",
        ),
        (
            "input: { stdin: { codec: lines } }",
            "(1,19) field codec is deprecated",
        ),
        (
            "input: { file: { paths: [x], max_buffer: 5 } }",
            "(1,30) field max_buffer is deprecated",
        ),
        (
            "pipeline: { processors: [ { log: { fields: { a: b } } } ] }",
            "(1,36) field fields is deprecated",
        ),
        (
            "parallel: true\noutput: { drop: {} }",
            "(1,1) field parallel is deprecated",
        ),
    ],
)
def test_an_old_spelling_is_taken_and_named(tmp_path: Path, text: str, finding: str) -> None:
    parse_config(text, env={})
    assert lints(tmp_path, text, deprecated=False) == []
    assert lints(tmp_path, text, deprecated=True) == [finding]


def test_a_plugin_beside_the_name_has_no_effect(tmp_path: Path) -> None:
    text = "output: { drop: {}, plugin: {} }"
    finding = "(1,21) the field plugin has no effect beside drop; remove it"
    assert lints(tmp_path, text, deprecated=False) == [finding]


def test_the_first_line_can_turn_off_lint_but_no_errors(tmp_path: Path) -> None:
    text = "output: { type: drop, nope: 1 }\ninput: { stdin: {} }\n"
    assert len(lints(tmp_path, text, deprecated=True)) == 2
    off = f"# BENTHOS LINT DISABLE\n{text}"
    assert lints(tmp_path, off, deprecated=True) == []
    assert parse_config(off, env={}).output.name == "drop"
    [finding] = lints(tmp_path, off + "buffer: { nope: {} }\n", deprecated=True)
    assert finding == "(4,11) buffer 'nope' is not known; did you mean none?"


def test_exporters_that_are_not_there_are_refused(tmp_path: Path) -> None:
    finding = (
        "(1,11) tracer 'gcp_cloudtrace' is not available: traces go out by OpenTelemetry's "
        "protocol alone; use open_telemetry_collector, whose spans Jaeger takes as they are, and a "
        "collector passes on to all others"
    )
    assert lints(tmp_path, "tracer: { gcp_cloudtrace: {} }", deprecated=False) == [finding]
