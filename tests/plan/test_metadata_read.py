"""What of an input's metadata a stream can read, which decides what is made of Kafka's."""

import pytest

from streamer.config import parse_config
from streamer.plan import make_plan
from streamer.plan.metadata_read import find_read_metadata

WINDOW = """
buffer: {system_window: {timestamp_mapping: 'root = this.at', size: 30s}}
pipeline: {processors: [{mapping: 'root.end = @window_end_timestamp'}]}
"""


def read(text: str) -> frozenset[str] | None:
    return find_read_metadata(make_plan(parse_config(text, "test.yaml")))


def of_mapping(text: str) -> frozenset[str] | None:
    return read(f"pipeline:\n  processors:\n    - mapping: |\n        {text}\n")


@pytest.mark.parametrize(
    ("mapping", "keys"),
    [
        ("root = this.a", set()),
        ("meta a = this.b", set()),
        ("root = @a", {"a"}),
        ('root = meta("a").or(@b)', {"a", "b"}),
        ('root = this.x.map_each(i -> metadata("c"))', {"c"}),
        ('root = if this.x { content() } else { @d + "x" }', {"d"}),
        ('map m { root = @e }\n        root = this.apply("m")', {"e"}),
    ],
)
def test_a_mapping_reads_what_it_names(mapping, keys):
    assert of_mapping(mapping) == keys


@pytest.mark.parametrize(
    "mapping", ["root = @", "root = metadata()", "root = meta(this.a)", 'root = @.get("a")']
)
def test_a_mapping_that_does_not_name_it_may_read_all(mapping):
    assert of_mapping(mapping) is None


@pytest.mark.parametrize(
    "processor",
    ["schema_registry_decode: {url: 'http://a'}", "try: [{decompress: {algorithm: gzip}}]"],
)
def test_what_cannot_be_decoded_is_found_again_by_its_place(processor):
    text = f"pipeline: {{processors: [{{{processor}}}]}}"
    assert read(text) == {"kafka_topic", "kafka_partition", "kafka_offset"}


def test_what_stands_in_interpolations_and_in_other_components_counts():
    text = """
input:
  broker:
    inputs: [{stdin: {}, processors: [{mapping: root = @one}]}]
  processors: [{mapping: root = @two}]
pipeline:
  processors:
    - switch: [{check: '@three == "x"', processors: [{log: {message: '${! @four }'}}]}]
    - resource: r
processor_resources: [{label: r, mapping: root = @five}]
output: {file: {path: '/tmp/${! meta("six") }'}}
"""
    assert read(text) == {"one", "two", "three", "four", "five", "six"}


def test_what_batching_of_an_input_reads_counts():
    kafka = "kafka: {addresses: ['a:1'], topics: [t], batching: {check: '@a == 1', processors: %s}}"
    assert read(f"input: {{{kafka % '[{mapping: root = @b}]'}}}") == {"a", "b"}
    assert read(f"input: {{broker: {{inputs: [{{{kafka % '[]'}}}]}}}}") == {"a"}
    assert read(f"input: {{{kafka.replace('@a == 1', '@ == {}') % '[]'}}}") is None
    assert read(f"input: {{{kafka % '[{archive: {format: lines}}]'}}}") is None


@pytest.mark.parametrize(
    "text",
    [
        "pipeline: {processors: [{http: {url: 'http://localhost'}}]}",
        "output: {http_client: {url: 'http://localhost'}}",
        "output: {fallback: [{socket: {network: tcp, address: 'localhost:1'}}, {drop: {}}]}",
        "pipeline: {processors: [{try: [{unarchive: {format: lines}}]}]}",
    ],
)
def test_a_component_that_is_not_looked_into_may_read_all(text):
    assert read(text) is None


def test_the_end_of_a_window_is_no_metadata_of_its_messages():
    assert read(WINDOW) == set()


def test_a_message_that_may_pass_by_its_window_has_what_it_came_with():
    assert read("input: {stdin: {}, processors: [{noop: {}}]}" + WINDOW) == {"window_end_timestamp"}


def test_results_that_are_kept_are_kept_with_all_that_they_have():
    assert read(WINDOW.replace("size: 30s", "size: 30s, retention: 1h")) is None


FRANZ = "kafka_franz: {seed_brokers: ['a:1'], topic: x, key: '${! @k }'%s}"
TIMES = {"kafka_timestamp_ms", "kafka_tombstone_message"}


@pytest.mark.parametrize(
    ("output", "keys"),
    [
        (FRANZ % "", {"k"} | TIMES),
        (f"fallback: [{{{FRANZ % ''}}}, {{drop: {{}}}}]", {"k"} | TIMES),
        (FRANZ % ", metadata: {include_prefixes: [a]}", None),
        ("kafka: {addresses: ['a:1'], topic: x}", None),
    ],
)
def test_an_output_of_kafka_reads_the_times_of_records_and_what_becomes_headers(output, keys):
    assert read(f"output: {{{output}}}") == keys


def test_what_windows_make_has_times_of_its_own_and_what_is_late_has_not():
    output = f"output: {{{FRANZ % ''}}}\n"
    assert read(f"{WINDOW}{output}") == {"k"}
    late = (
        "buffer: {tumbling_window: {timestamp_mapping: root = this.at, size: 1s, late_output: l}}"
    )
    resource = "output_resources: [{label: l, redpanda: {seed_brokers: ['a:1'], topic: y}}]"
    assert read(f"{late}\n{output}{resource}") == {"k"} | TIMES
