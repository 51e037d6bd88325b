"""What `explain` says, as whole texts: it is what a user reads before a stream is started."""

from pathlib import Path

import pytest

from streamer.config import load_config, parse_config
from streamer.plan import make_plan
from streamer.plan.explain import explain

CONFIGS = Path(__file__).parents[2] / "configs"

DIRECT = """\
stream cars
  master      local[1] (1 core)
  checkpoint  /state
  buffer      none; data waits 500ms at most for a micro-batch

stage 1 (workers): read, process, encode
    input [cars] file
    input.processors.0 noop
    pipeline.processors.0 [sum] mapping
    output.processors.0 log
    output stdout: encode
driver
    output stdout: prints; a micro-batch may repeat after a crash
"""

DIRECT_CONFIG = """
input:
  label: cars
  file: {paths: [cars.jsonl]}
  processors: [{noop: {}}]
pipeline:
  processors: [{label: sum, mapping: root = this}]
output:
  stdout: {}
  processors: [{log: {message: x}}]
spark: {master: "local[1]"}
"""

WINDOWED = """\
stream cars
  master      local[2] (2 cores)
  checkpoint  /state
  window      system_window: size 10h, slide 10m, offset -5m, (end - size, end]
              closes by the system clock at its end + 30s
              under back pressure, overdue by more than 10m: emitted late
              when the input ends: emits open windows at once
  shards      3 shards, by '${! this.light }' of pipeline.processors.0
  keeps       messages whole; late_output wants the messages that are dropped
  data        waits 2s at most for a micro-batch; windows close on time anyway
  reads       columns of light; a line of an unusual shape is parsed by itself

stage 1 (workers): read stdin, pack by shard and pane
    input stdin
    buffer timestamp_mapping, once per message
    pipeline.processors.0 its expression, once per message, for the shard
shuffle: a few rows of packed messages per micro-batch
stage 2 (workers, 3 shards): keep packs, release windows
    pipeline.processors.0 group_by_value
    pipeline.processors.1 mapping
    output file: encode
    output_resources.0 [late] drop: encode
driver
    output file: appends, exactly once
    late_output drop: nothing comes back
"""

WINDOWED_CONFIG = """
buffer:
  system_window:
    size: 10h
    slide: 10m
    offset: -5m
    allowed_lateness: 30s
    on_expired: keep
    end_of_input: flush
    late_output: late
pipeline:
  processors:
    - group_by_value: {value: '${! this.light }'}
    - mapping: root = this
output: {file: {path: out}}
output_resources: [{label: late, drop: {}}]
spark: {master: "local[2]", shards: 3}
"""


def explained(text: str) -> str:
    return explain(make_plan(parse_config(text, "cars.yaml")), "/state") + "\n"


def test_a_stream_without_windows_has_one_stage():
    assert explained(DIRECT_CONFIG) == DIRECT


def test_a_windowed_stream_says_its_window_its_shards_and_both_outputs():
    assert explained(WINDOWED_CONFIG) == WINDOWED


def test_an_unkeyed_window_says_that_it_uses_one_shard_and_how_to_use_more():
    said = explained("buffer: {system_window: {size: 10s}}\nspark: {shards: 4}\n")
    assert "4 shards, of which one is used" in said
    assert "group_by_value or group_by" in said
    assert "size 10s, tumbling, (end - size, end]" in said
    assert "overdue by more than 10s: dropped" in said
    assert "when the input ends: waits for open windows" in said


REDUCED = """
buffer: {system_window: {size: 10s}}
pipeline:
  processors:
    - group_by_value: {value: '${! this.light }'}
    - mapping: |
        root = if batch_index() == 0 {
          {"cars": json("plate").from_all().unique().length(), "all": %s}
        } else { deleted() }
"""


def test_it_says_what_a_window_keeps_of_its_messages():
    said = explained(REDUCED % "batch_size()")
    kept = "of each group: the first message, distinct of plate, count"
    assert f"  keeps       {kept} (pre-aggregated for pipeline.processors.1)" in said


def test_it_says_which_fields_are_read_as_columns_or_why_none_are():
    said = explained(REDUCED % "batch_size()")
    assert "  reads       columns of light, plate; a line of an unusual shape" in said
    said = explained(REDUCED.replace("this.light", "this.light.trim()") % "1")
    assert "  reads       messages one by one; the key is more than the name of a field" in said
    said = explained(REDUCED % 'json("items").from_all().map_each(i -> i.price).top_k(3)')
    assert "top_k(3) needs more than a field" in said
    said = explained("buffer: {system_window: {size: 10s}}\n")
    assert "  reads       no fields of messages" in said


def test_it_says_in_the_mappings_own_words_what_a_window_keeps_of_expressions():
    said = explained(REDUCED % 'json("items").from_all().map_each(i -> i.price).top_k(3)')
    kept = 'distinct of plate, json("items").from_all().map_each(i -> i.price).top_k(3)'
    assert f"the first message, {kept} (pre-aggregated for pipeline.processors.1)" in said


def test_it_says_which_expression_stops_a_mapping_from_folding():
    said = explained(REDUCED % 'json("plate").from_all().sort()')
    place = "pipeline.processors.1: line 2, column 88"
    assert f"keeps       messages whole; {place}: sort() needs all values at once" in said
    said = explained(REDUCED.replace("batch_index() == 0", "this.first") % "1")
    place = "pipeline.processors.1: line 1, column 1"
    assert f"keeps       messages whole; {place}: it does not say that it keeps" in said
    said = explained("buffer: {system_window: {size: 10s}}\n")
    assert "keeps       messages whole; there is no mapping that makes one of many" in said


@pytest.mark.parametrize(
    ("buffer", "reason"),
    [
        ("state_window: {begin_when: this.a}", "a state window that does not end drops its"),
        ("count_window: {count: 5}", "messages of count windows are in several windows, or"),
        ("sliding_window: {size: 5s, mode: event}", "messages of sliding windows are in several"),
    ],
)
def test_it_says_why_windows_of_a_kind_keep_messages(buffer: str, reason: str):
    said = explained(REDUCED.replace("system_window: {size: 10s}", buffer) % "1")
    assert f"keeps       messages whole; {reason}" in said
    # Only windows that have times ask for them.
    assert ("timestamp_mapping, once" in said) == ("sliding" in buffer)


def test_sessions_of_a_largest_size_are_pre_aggregated_at_each_message():
    buffer = "session_window: {gap: 5s, max_count: 3, emit: each}"
    said = explained(REDUCED.replace("system_window: {size: 10s}", buffer) % "1")
    assert "messages whole" in said and "max_count" not in said
    one = "group_by_value: {value: '${! this.light }'}"
    said = explained(
        (REDUCED % "1").replace(f"    - {one}\n", "").replace("system_window: {size: 10s}", buffer)
    )
    assert "of each group: the first message, distinct of plate (pre-aggregated" in said


def test_every_example_is_explained():
    for path in sorted(CONFIGS.glob("*.yaml")):
        config = load_config(path)
        said = explain(make_plan(config), "/state")
        names = [config.input, *config.processors, config.output]
        assert all(f" {component.name}" in said for component in names), path


SENDING = """\
    output broker: passes on
    output.broker.outputs.0.processors.0 noop
    output.broker.outputs.0 http_client: sends, at least once; 5 batches at once
    output_resources.0 [copies] switch: passes on
    output_resources.0.switch.cases.0.output file: encode
    output_resources.0.switch.cases.1.output drop: encode
driver
    output_resources.0.switch.cases.0.output file: appends, exactly once
"""


def test_what_sends_and_what_passes_on_is_told() -> None:
    config = parse_config(
        "output:\n"
        "  broker:\n"
        "    outputs:\n"
        "      - http_client: { url: 'http://x', max_in_flight: 5 }\n"
        "        processors: [ { noop: {} } ]\n"
        "      - resource: copies\n"
        "output_resources:\n"
        "  - label: copies\n"
        "    switch:\n"
        "      cases:\n"
        "        - { check: 'true', output: { file: { path: x } } }\n"
        "        - { output: { drop: {} } }\n"
    )
    assert explain(make_plan(config), "/state").endswith(SENDING.rstrip("\n"))


def test_a_driver_with_nothing_to_write_says_so() -> None:
    config = parse_config("output: { http_client: { url: 'http://x' } }\n")
    assert explain(make_plan(config), "/state").endswith("driver\n    nothing to write")


def test_it_says_which_topics_get_the_log_and_the_status() -> None:
    config = parse_config(
        "output: { drop: {} }\n"
        "redpanda: { seed_brokers: [ 'a:1', 'b:1' ], pipeline_id: cars, logs_topic: logs, "
        "logs_level: warn, status_topic: status }\n"
    )
    assert explain(make_plan(config), "/state").splitlines()[-2:] == [
        "    redpanda: lines of the log from WARN on go to the topic logs at a:1,b:1 "
        "with the key 'cars'",
        "    redpanda: the status goes to the topic status at a:1,b:1 with the key 'cars'",
    ]


def test_it_says_that_results_are_kept() -> None:
    text = "buffer: {system_window: {size: 10s, retention: 7d}}\noutput: {drop: {}}\n"
    shown = explain(make_plan(parse_config(text, "kept.yaml")), "/state").splitlines()
    assert shown[shown.index("driver") + 2 :] == [
        "    results for queries, for 168h after the end of their window, exactly once, beside the "
        "checkpoint"
    ]


def test_tables_are_named_with_how_often_they_are_looked_at() -> None:
    text = (
        DIRECT_CONFIG
        + """
table_resources:
  - {label: cities, csv: {path: cities.csv, key: city, refresh_interval: 30s}}
  - {label: kinds, inline: {rows: [], key: kind}}
"""
    )
    said = explain(make_plan(parse_config(text, "cars.yaml")), "/state").splitlines()
    assert said[-2:] == [
        "    table cities: csv, looked at every 30s; a micro-batch looks up one version of it",
        "    table kinds: inline, loaded at a start only; a micro-batch looks up one version of it",
    ]


STATE = """
buffer:
  tumbling_window:
    key_mapping: root = this.k
    size: 10s
    state_ttl: 7d
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {
          { "n": %s }
        } else { deleted() }
    - label: change
      mapping: root = this.n - lag(this.n, 1, 0)
"""


def test_what_keeps_state_by_key_is_listed_and_what_is_before_it_folds() -> None:
    text = explained(STATE % "batch_size()")
    assert "state       of each key, for 168h after it was last written" in text
    assert "pipeline.processors.1 (change): lag(this.n,1,0)" in text
    assert "(pre-aggregated for pipeline.processors.0)" in text
    text = explained(STATE % "acc_sum(batch_size())")
    assert "it keeps state by key, acc_sum(batch_size()); do that in a mapping behind it" in text


@pytest.mark.parametrize(
    ("first", "second", "more", "order"),
    [
        (1, 1, "", "; cases that send one batch at a time keep the order among each other"),
        (1, 64, "", "; its cases keep no order among each other"),
        (1, 1, "keep_order: false, ", "; its cases keep no order among each other"),
    ],
)
def test_it_says_whether_cases_keep_the_order(
    first: int, second: int, more: str, order: str
) -> None:
    http = "http_client: {{url: 'http://x', max_in_flight: {}}}"
    cases = (
        f"[{{check: 'true', output: {{{http.format(first)}}}}}, "
        f"{{output: {{{http.format(second)}}}}}]"
    )
    config = parse_config(f"output: {{switch: {{{more}cases: {cases}}}}}\n")
    assert f"    output switch: passes on{order}\n" in explain(make_plan(config), "/state")


def test_tables_say_what_is_read_and_what_is_made() -> None:
    text = """
input: {delta: {path: ./from, start_from: latest, on_change: skip}}
output:
  broker:
    outputs:
      - delta: {path: ./to, mode: upsert, key: [light], partition_by: [day]}
      - iceberg:
          catalog: {url: 'sqlite:///c.db', warehouse: ./lake}
          namespace: demo
          table: rows
          columns: {light: string}
          schema_evolution: {partition_spec: (day(at))}
      - delta: {path: ./old, schema_evolution: {enabled: false}}
"""
    lines = explain(make_plan(parse_config(text, "t.yaml")), "/state").splitlines()
    begin = lines.index("    input delta")
    assert lines[begin + 1 : begin + 3] == [
        "      reads        no row that is there, then those that are added; polled every 5s",
        "      changes      are left out; compactions are left out",
    ]
    made = [line.strip() for line in lines[lines.index("driver") + 1 :]]
    assert made == [
        "output.broker.outputs.0 delta: commits rows, exactly once",
        "output.broker.outputs.1 iceberg: commits rows, exactly once",
        "output.broker.outputs.2 delta: commits rows, exactly once",
        "table        made with the first rows where it is not there, partitioned by day",
        "columns      further fields of messages are added",
        "rows         replace the row of the same light; a micro-batch is one commit",
        "table        made with the first rows where it is not there, partitioned by day(at)",
        "columns      light string; further fields of messages are added",
        "rows         are appended; a micro-batch is one commit",
        "table        must be there; a message with another field is rejected",
        "rows         are appended; a micro-batch is one commit",
    ]
