"""`# streamer:ignore CODE`: what it silences, and where it is no comment."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.config import LintOptions, lint_config, load_config, parse_config
from streamer.core.errors import ConfigError

UNKNOWN = "unknown_field"


def codes(directory: Path, text: str, **options: bool) -> list[tuple[int, str]]:
    path = directory / "c.yaml"
    path.write_text(text, newline="")
    lints = lint_config(path, env={}, options=LintOptions(**{"thorough": True, **options}))
    return [(lint.line, lint.code) for lint in lints]


@pytest.mark.parametrize(
    "text",
    [
        "inptu: {} # streamer:ignore unknown_field\n",
        "inptu: {} #streamer:ignore unknown_field\n",
        "inptu: {}\t# streamer:ignore unknown_field",
        "# streamer:ignore unknown_field\ninptu: {}\n",
        "# streamer:ignore unknown_field\r\ninptu: {}\r\n",
        "# streamer:ignore unknown_field\n\n# why: it is for another program\ninptu: {}\n",
        "# streamer:ignore unknown_field because it is for another program\ninptu: {}\n",
        "# streamer:ignore duplicate_label, unknown_field\ninptu: {}\n".replace(
            "duplicate_label, ", ""
        ),
        "a: {} # streamer:ignore unknown_field\nb: {} # streamer:ignore unknown_field\n",
        "{a: 1, b: 2} # streamer:ignore unknown_field\n",
        "# streamer:ignore unknown_field , missing_label\noutput_resources: [{drop: {}, x: 1}]\n",
        "# streamer:ignore unknown_field\n# streamer:ignore missing_label\n"
        "output_resources: [{drop: {}, x: 1}]\n",
        "pipeline:\n  processors:\n    - mapping: |\n        # streamer:ignore bad_bloblang\n"
        "        root = nope()\n",
        "pipeline:\n  processors:\n    - mapping: |\n"
        "        root = nope() # streamer:ignore bad_bloblang\n",
        "output:\n  file:\n    path: ${NOT_SET} # streamer:ignore missing_variable\n",
    ],
)
def test_a_finding_is_silenced(text: str, tmp_path: Path) -> None:
    assert codes(tmp_path, text) == []


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("inptu: {}\n# streamer:ignore unknown_field\n", [(1, UNKNOWN), (2, "unused_ignore")]),
        ("# streamer:ignore unknown_field\ninput: {stdin: {}}\ninptu: {}\n", None),
        ("# streamer:ignore deprecated\ninptu: {}\n", [(2, UNKNOWN)]),
        ("# streamer:ignored unknown_field\ninptu: {}\n", [(2, UNKNOWN)]),
        ("inptu: {} # no streamer:ignore unknown_field\n", [(1, UNKNOWN)]),
        ("inptu: '# streamer:ignore unknown_field'\n", [(1, UNKNOWN)]),
        ('inptu: "\n  # streamer:ignore unknown_field\n  "\n', [(1, UNKNOWN)]),
    ],
)
def test_a_finding_is_not_silenced(
    text: str, left: list[tuple[int, str]] | None, tmp_path: Path
) -> None:
    expected = [(1, "unused_ignore"), (3, UNKNOWN)] if left is None else left
    assert codes(tmp_path, text) == expected


@pytest.mark.parametrize(
    ("code", "option"), [("deprecated", "deprecated"), ("missing_label", "labels")]
)
def test_a_comment_for_what_was_not_looked_for_is_no_finding(
    code: str, option: str, tmp_path: Path
) -> None:
    text = f"output: # streamer:ignore {code}\n  label: a\n  drop: {{}}\n"
    assert codes(tmp_path, text) == []
    assert codes(tmp_path, text, **{option: True}) == [(1, "unused_ignore")]


def test_comments_of_a_resource_file_are_for_its_own_lines(tmp_path: Path) -> None:
    more = tmp_path / "more.yaml"
    more.write_text("# streamer:ignore unknown_field\nx: 1\n")
    main = tmp_path / "main.yaml"
    main.write_text("input: {stdin: {}}\ny: 1\n")
    lints = lint_config(main, env={}, options=LintOptions(thorough=True), resources=[str(more)])
    assert [(lint.file, lint.code) for lint in lints] == [(str(main), UNKNOWN)]


def test_a_config_runs_with_what_is_silenced_when_it_can(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        "input:\n  generate:\n    mapping: root = 1\n"
        "    # streamer:ignore unknown_field\n    x: 1\n"
    )
    assert load_config(path, env={}).input.name == "generate"


@pytest.mark.parametrize(
    "text",
    [
        "buffer: {system_window: {size: x}} # streamer:ignore bad_duration",
        "input: {label: a, stdin: {}} # streamer:ignore duplicate_label\n"
        "output: {label: a, stdout: {}} # streamer:ignore duplicate_label",
        "input: {stdni: {}} # streamer:ignore unknown_component",
    ],
)
def test_a_config_does_not_run_with_an_error_however_silenced(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_config(text, env={})


def test_a_run_does_not_mind_comments_that_silence_nothing() -> None:
    text = "input: {stdin: {}} # streamer:ignore unknown_field, nonsense\n"
    assert parse_config(text, env={}).input.name == "stdin"
