"""A variable without a value takes the checks of its own value away, and of nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streamer.config import LintOptions, lint_config

CONFIGS = Path(__file__).parents[2] / "configs"
SKIP = LintOptions(check_variables=False, thorough=True)

Lint = Callable[..., list[str]]


@pytest.fixture
def lint(tmp_path: Path) -> Lint:
    def lint(text: str, options: LintOptions = SKIP, **env: str) -> list[str]:
        path = tmp_path / "c.yaml"
        path.write_text(text)
        return [
            str(one).removeprefix(str(path)) for one in lint_config(path, env=env, options=options)
        ]

    return lint


PIPELINE = "pipeline:\n  processors:\n    - mapping: |\n"


def mapping(*lines: str) -> str:
    return PIPELINE + "".join(f"        {line}\n" for line in lines)


NEIGHBOURS = """\
input:
  kafka_franz:
    seed_brokers: ["${BROKERS}"]
    topics: [a]
    consumer_group: g
    fetch_max_bytes: nonsense
output:
  switch:
    cases:
      - check: this.a.nosuch("${X}")
        output: {stdout: {}}
cache_resources:
  - label: c
    redis: {url: "${REDIS}", kind: nope, default_ttl: abc}
"""


def test_neighbours_are_checked_as_with_a_value(lint: Lint) -> None:
    found = lint(NEIGHBOURS)
    assert found == lint(NEIGHBOURS, BROKERS="h:1", X="x", REDIS="redis://h:1")
    assert [one.partition(" ")[0] for one in found] == [
        *("(6,22)", "(10,37)", "(13,12)", "(14,36)", "(14,55)")
    ]
    # Those that are missing come to what is found, when they are asked for.
    named = lint(NEIGHBOURS, LintOptions(thorough=True))
    assert len(named) == len(found) + 3 and set(found) <= set(named)


@pytest.mark.parametrize(
    "text",
    [
        mapping("root.ok = 1", 'root.a = this.nosuch("${A}")'),
        mapping("root.a = this.b.replace_all(1) # ${A}"),
        mapping('root.a = "${A}" + nope()'),
        mapping("root.a = ${A} + nope()"),
        mapping("root.a = ${A}", "root.b = nope()"),
        mapping('root.a = "${A}${B}".nosuch()'),
        mapping('root.a = "${A}"', "root.b = $never"),
        mapping('root.a = $never.or("${A}")'),
        PIPELINE.replace("mapping: |", "log: { message: '${! nope() } ${A}' }"),
    ],
)
def test_of_a_mapping_the_rest_is_checked(lint: Lint, text: str) -> None:
    [found] = lint(text)
    assert [found] == lint(text, A="1", B="2345")


@pytest.mark.parametrize(
    "text",
    [
        mapping("root.a = ${A}"),
        mapping("root.${A} = 1", "root.b = this.${B}.c"),
        mapping("root = this.${A}()"),
        mapping("root = ${A}(this.a)"),
        mapping("root = $${A}"),
        mapping("root = if ${A} { 1 } else { ${B} }"),
        mapping("${A}"),
    ],
)
def test_what_hangs_on_a_value_is_not(lint: Lint, text: str) -> None:
    assert lint(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "input: { generate: { mapping: root = 1, count: '${A}', interval: '${B}' } }",
        "input: { generate: { mapping: root = 1, count: ${A}, interval: ${B}s } }",
        "input: { http_server: { path: '${A}', ws_path: '' } }",
        "input: { http_server: { cert_file: '${A}', key_file: '${B}' } }",
        "input: { http_client: { url: 'http://${HOST}:${PORT}/x' } }",
        "input: { kafka: { addresses: [ '${A}' ], topics: [ '${B}' ], consumer_group: '${C}' } }",
        "buffer: { system_window: { size: '${A}', slide: '${B}' } }",
        "input: ${A}",
        "input: { ${A}: {} }",
        "input: { type: '${A}' }",
        "input: { file: { paths: [ a ], ${A}: 1, ${B}: 2 } }",
        "input: { file: { paths: ${A} } }",
        "input: { resource: '${A}' }\ninput_resources: [ { label: '${A}', stdin: {} } ]",
        "input: { resource: '${A}' }\ninput_resources: [ { label: b, stdin: {} } ]",
        "output: { redis_hash: { url: 'redis://h', key: a, walk_metadata: ${A} } }",
        "logger: { level: '${A}' }\nhttp: { enabled: ${B}, address: '${C}' }",
        # A variable that holds a part of the structure.
        "input:\n  stdin: {}\n${A}\noutput:\n  drop: {}\n",
    ],
)
def test_what_nobody_knows_is_no_finding(lint: Lint, text: str) -> None:
    assert lint(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "input: { kafka: { addresses: [ '${A}', 'h:x' ], topics: [ a ], consumer_group: b } }",
            "field addresses has 'h:x'",
        ),
        ("input: { http_server: { path: '', ws_path: '', timeout: '${A}' } }", "neither a path"),
        ("buffer: { system_window: { size: 10s, slide: 20s, offset: '${A}' } }", "slide"),
        ("input: { stdin: {} } # ${A}\noutput: { file: { path: '${A}', x: 1 } }", "field x not"),
    ],
)
def test_what_is_wrong_whatever_the_value_is_found(lint: Lint, text: str, expected: str) -> None:
    [found] = lint(text)
    assert expected in found


def test_no_finding_shows_what_stands_in_the_place_of_a_value(lint: Lint) -> None:
    found = lint("input: { file: { paths: [ a ], \"b${A}c\": 1, max_buffer: 'x${B}' } }\nx: '${C}'")
    assert found and all("\ufdd0" not in one and "unset_variable" not in one for one in found)


@pytest.mark.parametrize("name", ["traffic_light", "event_time_late", "kafka_traffic_lights"])
def test_examples_stay_without_findings_whatever_is_unset(lint: Lint, name: str) -> None:
    lines = (CONFIGS / f"{name}.yaml").read_text().splitlines()
    # What a test is about must be known.
    for number, line in enumerate(lines[: lines.index("tests:")]):
        key, colon, value = line.partition(": ")
        if (
            key.strip().isidentifier()
            and colon
            and value
            and value[0] not in "|>#[{&*'\""
            and "#" not in line
        ):
            changed = [*lines[:number], f"{key}: ${{NOPE}}", *lines[number + 1 :]]
            assert lint("\n".join(changed)) == [], line
