"""The plan of a config: windows, key, shards, intervals, limits, what a checkpoint is bound to."""

import json
import pickle

import pytest

from streamer.config import parse_config
from streamer.config.secrets import add_variable_values
from streamer.core.durations import MILLISECOND, SECOND
from streamer.core.errors import StreamerError
from streamer.plan import Plan, make_plan
from streamer.plan.plan import (
    STATELESS_INTERVAL_NS,
    WINDOW_INTERVAL_NS,
    count_cores,
    guesses_shards,
)

WINDOW = "buffer: {system_window: {size: 10s}}\n"
KAFKA = "kafka: {{addresses: ['a:1'], topics: [t], batching: {}}}"
TUMBLING = "buffer: {tumbling_window: {timestamp_mapping: root = now(), size: 10s, emit: %s}}\n"
MEMORY = "buffer: {memory: {limit: 1000, batch_policy: {enabled: true, %s}}}\n"


def plan(text: str, name: str = "") -> Plan:
    return make_plan(parse_config(text, name))


def test_without_a_window_buffer_there_are_no_shards_and_no_key():
    made = plan("pipeline: {processors: [{group_by_value: {value: '${! this.a }'}}]}\n")
    assert (made.window, made.key, made.shards, made.timestamp) == (None, None, 0, "")
    assert made.interval == STATELESS_INTERVAL_NS
    assert made.fingerprint["window"] == "none"


def test_a_window_buffer_gives_windows_their_mapping_and_shards():
    made = plan(
        "buffer: {system_window: {size: 1h, slide: 10m, timestamp_mapping: root = this.t}}\n"
        "spark: {master: 'local[3]'}\n"
    )
    assert made.window is not None
    assert (made.window.size, made.window.slide) == (3600 * SECOND, 600 * SECOND)
    assert (made.timestamp, made.shards, made.interval) == ("root = this.t", 3, WINDOW_INTERVAL_NS)


def test_shards_of_the_config_win_over_the_cores():
    assert plan(WINDOW + "spark: {master: 'local[3]', shards: 5}\n").shards == 5


@pytest.mark.parametrize(
    ("master", "expected"),
    [("local", 1), ("local[4]", 4), ("local[4,3]", 4), ("local[12, 1]", 12)],
)
def test_a_local_master_says_how_many_cores_it_has(master, expected):
    assert count_cores(master) == expected


def test_another_master_counts_as_this_machine(monkeypatch):
    monkeypatch.setattr("streamer.plan.plan.os.sched_getaffinity", lambda pid: {0, 1, 2, 5, 7})
    assert [count_cores(master) for master in ("local[*]", "local[*,2]", "spark://host:7077")] == [
        5
    ] * 3


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        ({"spark.cores.max": "8"}, 8),
        ({"spark.executor.instances": "4"}, 4),
        ({"spark.executor.instances": "4", "spark.executor.cores": "3"}, 12),
        ({"spark.executor.cores": "3"}, 5),
        ({"spark.cores.max": "many"}, 5),
    ],
)
def test_a_cluster_has_as_many_shards_as_cores_are_asked_of_it(monkeypatch, conf, expected):
    monkeypatch.setattr("streamer.plan.plan.os.sched_getaffinity", lambda pid: set(range(5)))
    section = {"master": "spark://host:7077", "conf": conf}
    assert plan(WINDOW + json.dumps({"spark": section})[1:-1] + "\n").shards == expected
    assert count_cores("local[2]", conf) == 2


def test_yarn_gives_two_executors_where_nothing_says_how_many():
    given = ({}, {"spark.executor.cores": "3"}, {"spark.executor.instances": "1"})
    assert [count_cores("yarn", conf) for conf in given] == [2, 6, 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("spark: {trigger_interval: 7s}\n", 7 * SECOND),
        ("spark: {trigger_interval: 0s}\n", MILLISECOND),
        (WINDOW + "spark: {trigger_interval: 200ms}\n", 200 * MILLISECOND),
        ("output: {http_client: {url: x, batching: {count: 5, period: 3s}}}\n", 3 * SECOND),
        ("output: {broker: {outputs: [{drop: {}}], batching: {period: 1m}}}\n", 60 * SECOND),
        (
            "output: {fallback: [{reject: x}, {resource: a}]}\n"
            "output_resources: [{label: a, http_client: {url: x, batching: {period: 7s}}}]\n",
            7 * SECOND,
        ),
        (WINDOW + "output: {http_client: {url: x, batching: {period: 9s}}}\n", WINDOW_INTERVAL_NS),
        (f"input: {{{KAFKA.format('{count: 5, period: 4s}')}}}\n", 4 * SECOND),
        (f"input: {{broker: {{inputs: [{{{KAFKA.format('{period: 4s}')}}}]}}}}\n", 4 * SECOND),
        (f"input: {{{KAFKA.format('{period: 4s}')}}}\n" + WINDOW, WINDOW_INTERVAL_NS),
        (MEMORY % "period: 3s", 3 * SECOND),
        (MEMORY % "period: 10ms", STATELESS_INTERVAL_NS),
        (MEMORY % "count: 9", STATELESS_INTERVAL_NS),
        (MEMORY % "period: 3s" + "spark: {trigger_interval: 1s}\n", SECOND),
    ],
)
def test_data_waits_as_long_as_the_config_says(text, expected):
    assert plan(text).interval == expected


@pytest.mark.parametrize(
    ("text", "fixed", "period"),
    [
        ("{}", False, 0),
        (WINDOW, False, 0),
        ("spark: {trigger_interval: 7s}\n", True, 0),
        (MEMORY % "period: 3s", False, 3 * SECOND),
        ("output: {http_client: {url: x, batching: {count: 5, period: 3s}}}\n", False, 3 * SECOND),
        (WINDOW + "output: {http_client: {url: x, batching: {period: 9s}}}\n", False, 0),
        (TUMBLING % "final", False, 0),
        (TUMBLING % "changes", True, 0),
    ],
)
def test_a_stream_sets_its_pace_unless_the_config_does(text, fixed, period):
    found = plan(text)
    assert (found.is_interval_fixed, found.batching_period) == (fixed, period)


def test_the_memory_buffers_limit_bounds_a_micro_batch():
    assert plan(MEMORY % "count: 9").limit_bytes == 1000
    assert plan("buffer: {memory: {limit: 99999999999}}\n").limit_bytes == plan("{}").limit_bytes


def test_the_spools_limit_is_the_configs():
    assert plan("{}").spool_limit == 1 << 30
    assert plan("spark: {spool_limit: 2000000}\n").spool_limit == 2_000_000


LATE = """
buffer: {system_window: {size: 10s, late_output: rest}}
output_resources:
  - label: %s
    drop: {}
"""


def test_late_output_is_the_second_output():
    made = plan(LATE % "rest")
    assert [output.name for output in made.outputs] == ["stdout", "drop"]
    assert made.late_output is not None and made.late_output.label == "rest"


def test_a_late_output_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(StreamerError, match="'rest'.*output_resources has other"):
        plan(LATE % "other")


def test_a_stream_is_named_after_its_config():
    assert plan("{}", "some/where/cars.v2.yaml").name == "cars.v2"
    assert plan("{}").name == "stdin"


def test_a_checkpoint_is_bound_to_input_windows_key_and_shards_and_to_nothing_else():
    text = WINDOW + "spark: {shards: 2}\npipeline: {processors: [%s]}\n"
    by_light = "{group_by_value: {value: '${! this.light }'}}"
    made = plan(text % by_light)
    assert made.fingerprint == {
        "input": "stdin",
        "window": made.window.fingerprint,
        "key": "${! this.light }",
        "shards": 2,
    }
    again = plan(text % (by_light + ", {mapping: root = this}") + "output: {drop: {}}\n")
    assert again.fingerprint == made.fingerprint
    assert plan(text % "").fingerprint["key"] is None
    assert plan(text.replace("10s", "20s") % by_light).fingerprint != made.fingerprint


def test_a_plan_carries_what_its_mappings_have_read(tmp_path):
    file = tmp_path / "m.blobl"
    file.write_text("map m {\n  root = 1\n}\n")
    processor = f"[{{mapping: 'import \"{file}\"'}}]"
    made = plan(f"pipeline: {{processors: {processor}}}\n")
    assert made.captured_inputs.read["file", str(file)] == file.read_bytes()
    assert made.captured_inputs.impure


def test_a_config_that_comes_back_takes_what_it_had_read(tmp_path):
    file = tmp_path / "m.blobl"
    file.write_text("map m {\n  root = 1\n}\n")
    text = f"buffer: {{system_window: {{size: 1s, timestamp_mapping: 'import \"{file}\"'}}}}"
    packed = pickle.dumps(parse_config(text))
    file.unlink()
    read = make_plan(pickle.loads(packed)).captured_inputs.read
    assert read == {("file", str(file)): b"map m {\n  root = 1\n}\n"}


def test_configs_in_one_process_do_not_see_what_others_have_read(tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMER_TEST", "s3cret")
    configs = []
    for name in ("a", "b"):
        (tmp_path / f"{name}.blobl").write_text("map m {\n  root = 1\n}\n")
        mapping = f'import "{tmp_path}/{name}.blobl"'
        if name == "b":
            mapping += '\nroot = env("STREAMER_TEST")'
        text = json.dumps({"pipeline": {"processors": [{"mapping": mapping}]}})
        configs.append(parse_config(text))
    first, second = configs
    read = [make_plan(config).captured_inputs.read for config in (second, first, second)]
    key = ("env", "STREAMER_TEST")
    imports = [("file", f"{tmp_path}/{name}.blobl") for name in ("a", "b")]
    assert [set(one) for one in read] == [{imports[1], key}, {imports[0]}, {imports[1], key}]
    assert "s3cret" in add_variable_values(second.secrets, second.inputs)
    assert "s3cret" not in add_variable_values(first.secrets, first.inputs)


@pytest.mark.parametrize(
    ("spark", "guesses"),
    [
        ("master: 'spark://host:7077'", True),
        ("master: 'spark://host:7077', shards: 4", False),
        ("master: 'spark://host:7077', conf: { spark.cores.max: '8' }", False),
        ("master: yarn", False),
        ("master: 'local[4]'", False),
    ],
)
def test_shards_of_a_cluster_are_guessed_only_where_nobody_says_its_size(spark, guesses):
    window = "tumbling_window: { size: 1s, timestamp_mapping: root = 1, key_mapping: root = 2 }"
    text = f"input: {{ stdin: {{}} }}\nbuffer: {{ {window} }}\nspark: {{ {spark} }}\n"
    config = parse_config(text, env={})
    assert guesses_shards(config, make_plan(config)) is guesses
