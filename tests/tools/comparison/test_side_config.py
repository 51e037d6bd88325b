"""Configs of sides: ends replaced, everything else kept, additions of streamer taken back."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from streamer.config import parse_config
from streamer.core.errors import StreamerError
from streamer.tools.comparison.benthos_config import (
    check_config,
    make_benthos_config,
    write_config,
)
from streamer.tools.comparison.config_document import ConfigDocument, read_document
from streamer.tools.comparison.programs import Program
from streamer.tools.comparison.record_input import make_recording_config
from streamer.tools.comparison.side_config import (
    DELAY,
    Exchange,
    SideConfig,
    TimeShift,
    make_side_config,
)


def document(tmp_path: Path, text: str, *sets: str) -> ConfigDocument:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    return read_document(str(file), sets, ())


def side_of(tmp_path: Path, text: str, shift: TimeShift | None = None) -> SideConfig:
    exchange = Exchange(tmp_path, tmp_path / "input", shift)
    return make_side_config(document(tmp_path, text).values, exchange)


ROUTED = """
input: {kafka: {addresses: [secret.host:1], topics: [a]}, processors: [{noop: {}}]}
output:
  processors: [{mapping: root = this}]
  switch:
    cases:
      - check: this.a
        output: {broker: {outputs: [{http_client: {url: "http://x"}}, {resource: kept}]}}
      - output: {fallback: [{reject_errored: {drop: {}}, processors: [{noop: {}}]}, {stdout: {}}]}
output_resources:
  - label: kept
    sql_insert: {driver: sqlite, dsn: "file:x", table: t, columns: [a], args_mapping: "root = [1]"}
    processors: [{mapping: root.b = 1}]
http: {address: 0.0.0.0:80}
metrics: {statsd: {address: "x:1"}}
redpanda: {seed_brokers: [x]}
"""


def test_every_output_becomes_a_file_and_what_routes_stays(tmp_path: Path) -> None:
    side = side_of(tmp_path, ROUTED)
    assert list(side.rows) == [
        "output.switch.cases.0.output.broker.outputs.0",
        "output.switch.cases.0.output.broker.outputs.1",
        "output.switch.cases.1.output",
    ]
    text = write_config(side)
    for gone in ("http_client", "sql_insert", "secret.host", "statsd", "redpanda", "fallback"):
        assert gone not in text
    parsed = parse_config(text)
    assert parsed.output.name == "switch"
    assert [len(one.processors) for one in (parsed.input, parsed.output)] == [2, 1]
    kept = yaml.safe_load(text)["output"]["switch"]["cases"]
    outputs = [*kept[0]["output"]["broker"]["outputs"], kept[1]["output"]]
    assert [len(one["processors"]) for one in outputs] == [1, 2, 2]
    assert not parsed.http["enabled"]


def test_several_buffers_have_their_own_outputs(tmp_path: Path) -> None:
    side = side_of(
        tmp_path,
        "buffers:\n"
        "  - {label: a, system_window: {size: 1s, late_output: late}, output: {stdout: {}}}\n"
        "  - {label: b, system_window: {size: 2s}}\n"
        "output_resources: [{label: late, stdout: {}}]\n",
    )
    assert set(side.rows) == {"output", "buffers.0.output", "output_resources.late"}
    assert parse_config(write_config(side)).late_outputs == ("late",)


def test_times_are_moved_and_the_metadata_for_it_is_gone(tmp_path: Path) -> None:
    text = "buffer: {system_window: {timestamp_mapping: this.at, size: 1s}}\n"
    for days, method in ((2, "ts_add_iso8601"), (-1, "ts_sub_iso8601")):
        values = side_of(tmp_path, text, TimeShift(days)).values
        mapping = values["buffer"]["system_window"]["timestamp_mapping"]
        assert mapping.startswith("root = this.at\n")
        assert mapping.count(f'{method}("P3000D")') == abs(days)
        assert values["pipeline"]["processors"] == [{"mutation": f"meta {DELAY} = deleted()"}]


def test_values_of_variables_and_sets_are_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIZE", "5s")
    values = document(tmp_path, "buffer: {system_window: {size: '${SIZE}'}}\n", "a.b=1").values
    assert values == {"buffer": {"system_window": {"size": "5s"}}, "a": {"b": 1}}


def test_benthos_gets_its_own_fields_alone(tmp_path: Path) -> None:
    given = document(
        tmp_path,
        "spark: {shards: 2}\n"
        "buffer: {system_window: {size: 1d, slide: 6h, late_output: late, end_of_input: keep}}\n"
        "output_resources: [{label: late, stdout: {}}]\n",
    )
    side = make_benthos_config(given, Exchange(tmp_path, None))
    assert side.values["buffer"] == {
        "system_window": {"size": "86400000000000ns", "slide": "21600000000000ns"}
    }
    assert not {"spark", "output_resources"} & side.values.keys()
    assert side.values["pipeline"]["threads"] == 1
    assert list(side.rows) == ["output"]
    assert len(side.notes) == 2


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("buffer:\n  tumbling_window: {size: 1s}\n", "(2,20) buffer tumbling_window"),
        ("pipeline:\n  processors:\n    - expect: {rows: {}}\n", "(3,15) processor expect"),
        (
            "pipeline:\n  processors:\n    - try:\n        - throttle: {}\n",
            "(4,21) processor throttle",
        ),
        ("table_resources:\n  - {label: a}\n", "table_resources: it has no lookup tables"),
        ("buffers:\n  - {none: {}}\n", "buffers: it has no several buffers"),
    ],
)
def test_additions_are_refused_with_their_place(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(StreamerError) as error:
        make_benthos_config(document(tmp_path, text), Exchange(tmp_path, None))
    assert f"config.yaml{place}" in str(error.value) or place in str(error.value)


def test_findings_of_the_other_program_name_the_users_lines(tmp_path: Path) -> None:
    text = "pipeline:\n  processors:\n    - noop: {}\n    - mapping: root = new_function()\n"
    given = document(tmp_path, text)
    side = make_benthos_config(given, Exchange(tmp_path, None, TimeShift()))
    lines = write_config(side).splitlines()
    line = next(n for n, one in enumerate(lines, 1) if "new_function" in one)
    script = tmp_path / "lint"
    script.write_text(f'#!/bin/sh\necho "$1({line},1) unrecognised function"\nexit 1\n')
    script.chmod(0o755)
    program = Program("Benthos 9", ("x",), (str(script),), is_benthos=True)
    with pytest.raises(StreamerError) as error:
        check_config(program, "side.yaml", side, given)
    assert "config.yaml(4,16) pipeline.processors.1.mapping: unrecognised" in str(error.value)


def test_a_recording_commits_and_deletes_nothing(tmp_path: Path) -> None:
    given = document(
        tmp_path,
        "input:\n  broker:\n    inputs:\n"
        "      - kafka: {addresses: [a:1], topics: [t], consumer_group: g}\n"
        "      - file: {paths: [x], delete_on_finish: true}\n  processors: [{noop: {}}]\n",
    )
    values = make_recording_config(given.values, tmp_path).values
    assert "consumer_group" not in str(values)
    assert "delete_on_finish" not in str(values)
    assert "processors" not in values["input"]
