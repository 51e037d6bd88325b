from __future__ import annotations

import pytest

from streamer.config import Config, parse_config
from streamer.core.errors import ConfigError

CONFIG = """\
input:
  generate: {mapping: root = 1}
pipeline:
  processors:
    - mapping: root = 1
    - split: {size: 2}
"""


def with_set(*sets: str) -> Config:
    return parse_config(CONFIG, "c.yaml", env={}, sets=sets)


def findings(*sets: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        with_set(*sets)
    return [str(lint) for lint in caught.value.lints]


def test_values_are_yaml() -> None:
    config = with_set("input.generate.count=5", "spark.conf={a: b}", "logger.level=ERROR")
    assert config.input.config["count"] == 5
    assert config.spark["conf"] == {"a": "b"}
    assert config.logger["level"] == "ERROR"


def test_paths_go_into_lists_by_index() -> None:
    assert with_set("pipeline.processors.1.split.size=9").processors[1].config["size"] == 9
    assert with_set("pipeline.processors.-1.split.size=8").processors[1].config["size"] == 8
    assert with_set("pipeline.processors.0={noop: {}}").processors[0].name == "noop"
    added = with_set("pipeline.processors.-.noop={}", "input.processors.-.noop={}")
    assert [p.name for p in added.processors] == ["mapping", "split", "noop"]
    assert [p.name for p in added.input.processors] == ["noop"]


def test_missing_objects_are_made_and_dots_can_be_escaped() -> None:
    config = with_set(
        "spark.conf.spark~1ui~1enabled=false",
        "http.cors.enabled=yes",
        "http.cors.allowed_origins=http://a",
    )
    assert config.spark["conf"] == {"spark.ui.enabled": "false"}
    assert config.http["cors"]["enabled"] is True


def test_one_value_is_taken_where_a_list_is_expected() -> None:
    config = parse_config("{}", sets=["input.file.paths=./a.jsonl"])
    assert config.input.config["paths"] == ("./a.jsonl",)


def test_the_last_one_wins() -> None:
    assert with_set("pipeline.threads=1", "pipeline.threads=2").threads == 2


@pytest.mark.parametrize(
    ("expression", "finding"),
    [
        ("a", "--set a(1,1) there is no value; expected path=value, such as pipeline.threads=2"),
        ("a=", "--set a(1,1) there is no value; expected path=value, such as pipeline.threads=2"),
        ("=1", "--set (1,1) there is no value; expected path=value, such as pipeline.threads=2"),
        (
            "loger.level=INFO",
            "--set loger.level(1,1) field loger not recognised; did you mean logger?",
        ),
        (
            "pipeline.threads=x",
            "--set pipeline.threads(1,1) field threads: expected int value, got a string 'x'",
        ),
        (
            "pipeline.threads=[",
            "--set pipeline.threads(1,2) YAML: did not find expected node content",
        ),
        (
            "input.stdin={}",
            "--set input.stdin(1,1) unable to infer input type, multiple candidates 'generate' and "
            "'stdin'; to replace the input, set it as a whole: -s 'input={stdin: {…}}'",
        ),
        (
            "pipeline.processors.7.noop={}",
            "--set pipeline.processors.7.noop(1,1) pipeline.processors is a list of 2 items; "
            "expected an index, or - to add, found 7",
        ),
        (
            "pipeline.processors.0.mapping.x=1",
            "--set pipeline.processors.0.mapping.x(1,1) pipeline.processors.0.mapping is a string, "
            "which has no field x",
        ),
    ],
)
def test_errors_name_the_path(expression: str, finding: str) -> None:
    assert findings(expression) == [finding]
