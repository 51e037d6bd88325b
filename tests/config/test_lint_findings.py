"""Broken configs and what is said of each: the text is what a user meets first."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from streamer.config import lint_config
from streamer.config.known_names import REPLACEMENTS, explain_missing, suggest_available
from streamer.config.read_context import LintOptions
from streamer.sdk.spec import Kind


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("inptu: {}", "(1,1) field inptu not recognised; did you mean input?"),
        ("zzz: {}", "(1,1) field zzz not recognised"),
        ("[]", "(1,1) a config is an object, got an array; begin with `input:`, for example"),
        ("5", "(1,1) a config is an object, got a number; begin with `input:`, for example"),
        # Components
        ("input: {}", "(1,8) an explicit input type must be specified"),
        ("input: stdin", "(1,8) expected object value, got a string; write `stdin: {}`"),
        (
            "input:\n",
            "(1,7) expected object value, got nothing; name the input, or remove the field",
        ),
        ("input: [1]", "(1,8) expected object value, got an array"),
        (
            "input: {stdin: }",
            "(1,16) stdin: expected object value, got nothing; write `stdin: {}`",
        ),
        ("input: {stdni: {}}", "(1,9) input 'stdni' is not known; did you mean stdin?"),
        (
            "input: {drop: {}}",
            "(1,9) input 'drop' is not known; it is the name of a component of kind output",
        ),
        ("input: {type: stdni}", "(1,15) input 'stdni' is not known; did you mean stdin?"),
        (
            "input: {stdin: {}, file: {}}",
            "(1,20) unable to infer input type, multiple candidates 'file' and 'stdin'; "
            "keep one of them",
        ),
        (
            "pipeline: {processors: [{noop: {}, split: {}}]}",
            "(1,36) unable to infer processor type, multiple candidates 'noop' and 'split'; "
            "write each as its own list item",
        ),
        (
            "output: {drop: {}, lable: x}",
            "(1,20) field lable is invalid when the component type is drop (output); "
            "did you mean label?",
        ),
        (
            "output: {file: {path: x}, codec: lines}",
            "(1,27) field codec is invalid when the component type is file (output); "
            "indent it, so that it is below file",
        ),
        (
            "buffer: {none: {}, label: x}",
            "(1,20) field label is invalid when the component type is none (buffer)",
        ),
        # Fields
        ("output: {file: {}}", "(1,10) field path is required in file"),
        ("output: {type: file}", "(1,16) field path is required in file"),
        (
            "output: {file: {path: x, pth: y}}",
            "(1,26) field pth not recognised; did you mean path?",
        ),
        (
            "pipeline: {thread: 1}",
            "(1,12) field thread not recognised; did you mean threads?",
        ),
        (
            "pipeline: {x: 1}",
            "(1,12) field x not recognised; expected one of processors, threads",
        ),
        ("pipeline: []", "(1,11) field pipeline: expected object value, got an array"),
        (
            "pipeline: {processors: {noop: {}}}",
            "(1,24) field processors: expected array value, got an object; "
            "write it as a list: `- …`",
        ),
        ("pipeline: {threads: 1.5}", "(1,21) field threads: expected int value, got a number 1.5"),
        (
            "pipeline: {threads: '2'}",
            "(1,21) field threads: expected int value, got a string '2'; remove the quotes",
        ),
        ("pipeline: {threads: }", "(1,21) field threads: expected int value, got nothing"),
        ("pipeline: {threads: true}", "(1,21) field threads: expected int value, got a bool true"),
        ("http: {enabled: 1}", "(1,17) field enabled: expected bool value, got a number 1"),
        ("output: {file: {path: []}}", "(1,23) field path: expected string value, got an array"),
        ("tests: [{}]", "(1,9) field name is required"),
        ("tests: [1]", "(1,9) field tests: expected object value, got a number 1"),
        ("spark: {conf: x}", "(1,15) field conf: expected object value, got a string"),
        ("pipeline: {threads: !!int x}", "(1,21) the text is not an int, as its tag says"),
        (
            "logger: {format: xml}",
            "(1,18) field format: value 'xml' is not one of json, logfmt",
        ),
        ("spark: {shards: 0}", "(1,17) field shards is 0; expected 1 or more"),
        # Labels
        (
            "input: {label: A b, stdin: {}}",
            "(1,16) invalid label 'A b'; a label has lower case letters, digits, _ and -, and "
            "starts with a letter or digit",
        ),
        (
            "input: {label: a, stdin: {}}\noutput: {label: a, drop: {}}",
            "(2,17) label 'a' collides with a previously defined label at line 1",
        ),
        (
            "input: {label: [a], stdin: {}}",
            "(1,16) field label: expected string value, got an array",
        ),
        (
            "processor_resources: [{noop: {}}]",
            "(1,23) this processor resource has no label; add `label: …`",
        ),
        # Durations
        (
            "shutdown_timeout: 5",
            "(1,19) field shutdown_timeout: the duration '5' lacks a unit after a number: "
            "expected a duration such as 30s, 1h30m, 250ms or 1d",
        ),
    ],
)
def test_one_mistake(findings: Callable[[str], list[str]], text: str, finding: str) -> None:
    assert findings(text) == [finding]


def test_a_component_that_is_not_there_is_named(
    findings: Callable[[str], list[str]],
) -> None:
    (found,) = findings("input: {nsq: {}}")
    assert found.startswith(
        "(1,9) input 'nsq' is not available: it is one of Redpanda Connect's own; use kafka"
    )


def test_a_replacement_is_named_for_components_of_others_alone() -> None:
    assert len(REPLACEMENTS) > 10
    for kind, name in REPLACEMENTS:
        assert explain_missing(kind, name), (kind, name)
    assert suggest_available(Kind.INPUT, "mongodb").startswith("`streamer list inputs`")


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ("slide: 1s", "(3,3)"),
        ("size: 0s", "(4,11)"),
        ("size: -1s", "(4,11)"),
        ("size: 10s\n    slide: 10s", "(5,12)"),
        ("size: 10s\n    slide: -1s", "(5,12)"),
        ("size: 10s\n    offset: -10s", "(5,13)"),
        ("size: 10s\n    slide: 2s\n    offset: 2s", "(6,13)"),
        ("size: 10s\n    allowed_lateness: 10s", "(5,23)"),
        ("size: 10s\n    allowed_lateness: -1s", "(5,23)"),
        ("size: tens", "(4,11)"),
    ],
)
def test_windows_that_do_not_fit_are_placed_at_the_field(
    findings: Callable[[str], list[str]], fields: str, place: str
) -> None:
    (found,) = findings(
        f"buffer:\n  # a comment\n  system_window:\n    {fields}\n".replace(
            "  # a comment\n  system_window:\n", "\n  system_window:\n"
        )
    )
    assert found.startswith(place)


def test_everything_is_said_at_once_in_the_order_of_the_file(
    findings: Callable[[str], list[str]],
) -> None:
    text = """\
        output: {drp: {}}
        shutdown_delay: x
        pipeline:
          processors:
            - split: {size: a, sice: 2}
            - jq: {}
            - try:
                - nop: {}
        logger: {levle: INFO, level: ${LEVEL}}
        input:
          generate: {}
        """
    found = findings(text)
    places = [tuple(map(int, line[1 : line.index(")")].split(","))) for line in found]
    assert places == sorted(places)
    assert [line.split(") ")[0] + ")" for line in found] == [
        "(1,10)",
        "(2,17)",
        "(5,21)",
        "(5,24)",
        "(6,7)",
        "(8,11)",
        "(9,10)",
        "(9,30)",
        "(11,3)",
    ]


@pytest.mark.parametrize(
    "body",
    [
        "mapping: root.a = this.b @",
        "mapping: 'root.a = this.b @'",
        'mapping: "root.\\u0061 = this.b @"',
        "mapping: |\n        root.a = this.b\n        root.b = this.b @",
        "mapping: |-\n\n        # é 😀\n        root.b = this.b @",
        "mapping: >\n        root.b =\n        this.b @",
        "mapping: |\r\n        root.a = this.b\r\n        root.b = this.b @",
        "mutation: root.a = this.b @",
        "log: {fields_mapping: 'root.a = this.b @'}",
        "group_by: [{check: this.a @}]",
    ],
)
def test_a_mistake_in_a_mapping_is_placed_in_the_file(
    findings: Callable[[str], list[str]], body: str
) -> None:
    text = f"pipeline:\n  processors:\n    - {body}\n"
    before = text[: text.index("@")]
    (found,) = findings(text)
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    # The parser may point at the character, or at the blank in front of it.
    assert found.startswith((f"({line},{column}) ", f"({line},{column - 1}) "))


def test_a_mistake_in_an_interpolated_string_is_placed_in_the_file(
    findings: Callable[[str], list[str]],
) -> None:
    (found,) = findings("pipeline:\n  processors:\n    - log: {message: 'a ${! this.( } b'}\n")
    line, column = map(int, found[1 : found.index(")")].split(","))
    assert line == 3
    assert column in (34, 36)  # the parenthesis, or the brace that follows it


def test_an_unknown_function_is_found_before_anything_runs(
    findings: Callable[[str], list[str]],
) -> None:
    (found,) = findings("pipeline:\n  processors:\n    - mapping: |\n        root = nope()\n")
    assert found.startswith("(4,22) ")
    assert "nope" in found


def test_what_is_inside_an_alias_is_said_once(findings: Callable[[str], list[str]]) -> None:
    text = "input_resources: [{label: a, file: &f {pats: x}}, {label: b, file: *f}]"
    assert [line.partition(" ")[0] for line in findings(text)][:1] == ["(1,30)"]
    assert sum("pats" in line for line in findings(text)) == 1


def test_more_is_found_when_asked_for(tmp_path: object) -> None:
    path = tmp_path / "c.yaml"  # type: ignore[operator]
    path.write_text(
        "input: {file: {paths: [a], max_buffer: 5}}\noutput: {file: {path: a, x: ${NONE}}}\n"
    )
    texts = [str(lint).removeprefix(str(path)) for lint in lint_config(path, env={})]
    assert len(texts) == 2
    options = LintOptions(deprecated=True, labels=True, check_variables=False)
    lints = lint_config(path, env={}, options=options)
    assert [lint.code for lint in lints] == [
        "missing_label",
        "deprecated",
        "missing_label",
        "unknown_field",
    ]


def test_fields_that_do_not_fit_together_are_found_beside_an_unknown_one(
    findings: Callable[[str], list[str]],
) -> None:
    found = findings("buffer: {system_window: {size: 10s, slide: 20s, sise: 1s}}")
    assert [line.partition(" ")[0] for line in found] == ["(1,44)", "(1,49)"]


def test_findings_end_where_nobody_reads_on(findings: Callable[[str], list[str]]) -> None:
    found = findings("".join(f"f{i}: 1\n" for i in range(5_000)))
    assert len(found) == 1_001
    assert found[-1] == "(1000,1) there are more findings than these 1,000"


def test_of_a_page_in_markdown_the_yaml_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(
        "# Title\n\n```yaml\ninput: {stdin: {}}\n```\n\n```yaml title=x\ninptu: {}\n```\n\n"
        "```json\n{\n```\n\n1. An item\n   ```yaml\n   outptu: {}\n   ```\n\n```yaml\na: [\n```\n"
    )
    found = [(lint.line, lint.column, lint.code) for lint in lint_config(path, env={})]
    assert found == [(8, 1, "unknown_field"), (17, 4, "unknown_field"), (22, 1, "bad_yaml")]


def test_findings_of_a_file_of_tests_are_silenced_too(tmp_path: Path) -> None:
    path = tmp_path / "a_streamer_test.yaml"
    path.write_text("tests: []\nx: 1 # streamer:ignore unknown_field\n")
    assert [lint.code for lint in lint_config(path, env={})] == []
    path.write_text("tests: []\n# streamer:ignore unknown_field\n")
    lints = lint_config(path, env={}, options=LintOptions(thorough=True))
    assert [lint.code for lint in lints] == ["unused_ignore"]


MAPPING = "{ mapping: root.n = this.n.number() }"


@pytest.mark.parametrize(
    ("source", "processors", "found"),
    [
        ("generate: { mapping: root = 1 }", MAPPING, ["rejected_for_ever"]),
        ("generate: { mapping: root = 1 }", "", []),
        ("generate: { mapping: root = 1 }", "{ log: {} }", []),
        (
            "generate: { mapping: root = 1 }",
            f"{{ try_catch: {{ processors: [ {MAPPING} ] }} }}",
            [],
        ),
        ("generate: { mapping: root = 1, auto_replay_nacks: false }", MAPPING, []),
        ("http_server: { path: /post }", MAPPING, []),
        (
            "http_server: { path: /post }\nbuffer: { system_window: { size: 1s } }",
            MAPPING,
            ["rejected_for_ever"],
        ),
    ],
)
def test_what_strict_error_handling_rejects_for_ever_is_named(
    tmp_path: Path, source: str, processors: str, found: list[str]
) -> None:
    path = tmp_path / "strict.yaml"
    path.write_text(
        f"input:\n  {source}\n"
        + f"error_handling: {{ strict: true }}\npipeline: {{ processors: [ {processors} ] }}\n"
        "output: { stdout: {} }\n"
    )
    lints = lint_config(path, env={}, options=LintOptions(thorough=True))
    assert [lint.code for lint in lints] == found


@pytest.mark.parametrize(
    ("checks", "found"),
    [
        (['this.a == "x"', 'this.a == "y"'], ["rejected_for_ever"]),
        (['this.a == "x"', ""], []),
        (['@op != "delete"', '@op ==  "delete"'], []),
        (['@op != "delete"', '@op == "insert"'], ["rejected_for_ever"]),
        (["this.a == 1 && this.b != 2", "this.a == 1 && this.b == 2"], ["rejected_for_ever"]),
    ],
)
def test_a_strict_switch_that_takes_all_messages_rejects_none(
    tmp_path: Path, checks: list[str], found: list[str]
) -> None:
    cases = [{"check": check, "output": {"drop": {}}} for check in checks]
    path = tmp_path / "switch.yaml"
    switch = json.dumps({"switch": {"strict_mode": True, "cases": cases}})
    path.write_text(f"input: {{ generate: {{ mapping: root = 1 }} }}\noutput: {switch}\n")
    lints = lint_config(path, env={}, options=LintOptions(thorough=True))
    assert [lint.code for lint in lints] == found


def test_a_comma_that_ends_a_text_is_explained(findings: Callable[[str], list[str]]) -> None:
    text = "pipeline: {processors: [{duckdb: {query: select a, sum(b) as b from batch}}]}"
    (line,) = findings(text)
    assert "write the text in quotes" in line
    assert "quotes" not in findings("output: {stdout: {'cod ec': lines}}")[0]
