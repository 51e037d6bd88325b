from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from streamer.config import load_config, parse_config
from streamer.core.durations import SECOND
from streamer.core.errors import ConfigError
from streamer.sdk.spec import Kind


def test_without_input_and_output_stdin_goes_to_stdout() -> None:
    for config in (load_config(None), parse_config("{}")):
        assert (config.input.name, config.buffer.name, config.output.name) == (
            "stdin",
            "none",
            "stdout",
        )
        assert config.processors == ()
        assert (config.input.line, config.input.column) == (0, 0)


CONFIG = """\
input:
  label: cars
  generate:
    mapping: root = 1
    count: 0x10
  processors:
    - noop: {}
pipeline:
  threads: 2
  processors:
    - label: only
      try:
        - mapping: root = this
        - catch: []
output:
  file:
    path: ./out.jsonl
  processors: [{mapping: root = this}]
processor_resources:
  - label: shared
    noop: {}
logger: {level: debug, static_fields: {a: 1}}
shutdown_timeout: 1m30s
spark:
  shards: 3
  trigger_interval: 200ms
  conf: {spark.ui.enabled: true}
"""


def test_a_config_is_read_whole() -> None:
    config = parse_config(CONFIG, "c.yaml")
    assert (config.input.label, config.input.path, config.input.line) == ("cars", "input", 3)
    assert config.input.config["count"] == 16
    assert [p.name for p in config.input.processors] == ["noop"]
    (outer,) = config.processors
    assert (outer.name, outer.label, outer.path) == ("try", "only", "pipeline.processors.0")
    assert [(p.name, p.path) for p in outer.config] == [
        ("mapping", "pipeline.processors.0.try.0"),
        ("catch", "pipeline.processors.0.try.1"),
    ]
    assert outer.config[0].config == "root = this"
    assert [p.path for p in config.output.processors] == ["output.processors.0"]
    assert config.resources[Kind.PROCESSOR, "shared"].name == "noop"
    assert config.threads == 2


def test_sections_have_their_defaults_filled_in() -> None:
    config = parse_config(CONFIG)
    assert config.logger["level"] == "debug"
    assert config.logger["format"] == "logfmt"
    assert config.logger["static_fields"] == {"a": "1"}
    assert config.logger["file"]["rotate"] is False
    assert config.shutdown_timeout == 90 * SECOND
    assert config.shutdown_delay == 0
    assert dict(config.spark) == {
        "kafka": {},
        "master": "local[*]",
        "environment": "packed",
        "shards": 3,
        "trigger_interval": SECOND // 5,
        "checkpoint": None,
        "spool_limit": 1 << 30,
        "conf": {"spark.ui.enabled": "true"},
        "jars_directory": None,
    }
    assert config.metrics.name == "prometheus"


def test_what_was_written_can_be_told_from_a_default() -> None:
    config = parse_config(CONFIG)
    assert config.spark.is_given("shards")
    assert config.spark.place("shards") == (25, 11)
    assert not config.spark.is_given("master")


def test_a_config_can_be_pickled() -> None:
    config = parse_config(CONFIG)
    assert pickle.loads(pickle.dumps(config)) == config


def test_old_ways_to_name_a_component_are_taken() -> None:
    config = parse_config("input: {type: generate, generate: {mapping: root = 1}}")
    assert config.input.name == "generate"
    config = parse_config("output: {type: drop}")
    assert config.output.name == "drop"
    config = parse_config("input: {type: generate, plugin: {mapping: root = 1}}")
    assert config.input.config["mapping"] == "root = 1"


def test_metrics_keep_the_mapping_beside_their_name() -> None:
    config = parse_config("metrics: {json_api: {}, mapping: root = this}")
    assert (config.metrics.name, config.metrics.mapping) == ("json_api", "root = this")


def test_a_file_is_read_with_its_variables_replaced(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(b"\xef\xbb\xbfoutput: ${OUT}\n")
    config = load_config(path, env={"OUT": "{drop: {}}"})
    assert config.output.name == "drop"
    assert (config.path, config.text) == (str(path), "output: ${OUT}\n")


def reason(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    return str(caught.value).removeprefix(str(path))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert reason(tmp_path / "none.yaml") == "(1,1) there is no such file"
    assert reason(tmp_path) == "(1,1) this is a directory; expected a file"
    path = tmp_path / "c.yaml"
    path.write_bytes(b"a: 1\nb: \xc3\xa9 \xff")
    assert reason(path) == "(2,6) the file is not UTF-8: found byte 0xff; save it as UTF-8"
    path.write_bytes(b"")
    assert reason(path) == "(1,1) the config is empty; write at least `input: …`"
    path.write_bytes(b"#" * 1_000_001)
    assert reason(path) == "(1,1) the file has 1,000,001 bytes; expected at most 1,000,000"


def test_the_reader_that_is_gone_is_refused_with_the_reason() -> None:
    with pytest.raises(ConfigError, match=r"is not there since version 0\.2: .* leave it out"):
        parse_config("spark: {kafka: {reader: jvm}}")
    parse_config("spark: {kafka: {reader: workers}}")
