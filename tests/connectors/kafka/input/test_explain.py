"""What `explain` says of Kafka inputs; no broker is asked."""

from __future__ import annotations

import pytest

from streamer.config import parse_config
from streamer.connectors.kafka.input.explain import explain_input
from streamer.plan import make_plan
from streamer.plan.explain import explain
from tests.components.inputs.reading import built


def said(fields: str) -> str:
    return "\n".join(explain_input(built(f"input: {{{fields}}}").source))


def test_an_input_says_what_it_reads_from_where_how_much_and_who_hears_of_it() -> None:
    assert said("redpanda: {seed_brokers: ['a:1', 'b:2'], topics: [t], consumer_group: g}") == (
        "reads        the topic t at a:1,b:2\n"
        "begins       where the group is, else with the oldest message; then the checkpoint says "
        "where\n"
        "group        'g' gets the committed offsets every 5s: tools show its lag\n"
        "micro-batch  what waits, at most 1,000,000 messages, fewer when they are large; each "
        "partition in order\n"
        "data loss    messages that are gone before they were read end the stream"
    )


def test_an_input_says_when_its_batches_are_closed() -> None:
    batching = "count: 1000, byte_size: 2000, check: this.end, period: 1s"
    text = "input: {kafka: {addresses: ['a:1'], topics: [t], batching: {%s}}}"
    assert (
        "      batches      of one partition each, closed by 1,000 messages, 2,000 bytes, when "
        "check is true, the end of a micro-batch; collects for 1s\n"
    ) in explain(make_plan(parse_config(text % batching)), "")
    assert "batches      " not in explain(make_plan(parse_config(text % "count: 1")), "")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("topics: [t, u]", "the topics t, u at a"),
        ("topics: ['t:0-1', 'u:3']", "the partitions t:0, t:1, u:3 at a"),
        ("topics: ['t:0-9']", "the partitions t:0, t:1, t:2, t:3, t:4, 5 more at a"),
        ("topics: ['t:0:7']", "begins       at the offsets that topics names, else with the old"),
        ("regexp_topics_include: [a, b]", "topics with a or b in their names, also those that co"),
        ("regexp_topics_include: [a], regexp_topics_exclude: [b]", "a in their names, and not b"),
        ("topics: [t]", "none gets its offsets: consumer_group names one"),
        ("topics: [t], start_offset: latest", "begins       with the next message; then"),
        ("topics: [t], start_offset: '1500'", "first message of 1970-01-01T00:00:01.500000Z or"),
        ("topics: [t], consumer_group: g, start_offset: committed", "must have read every part"),
        ("topics: [t], max_messages_per_trigger: 5000", "at most 5,000 messages; each"),
        ("topics: [t], min_partitions: 8", "in 8 parts at least, so that no order is kept"),
        ("topics: [t], fail_on_data_loss: false", "without what is gone, which redpanda_lost"),
        ("topics: [t], transaction_isolation_level: read_committed", "(committed transactions on"),
        ("topics: [t], tls: {enabled: true}", "at a (by TLS)"),
        (
            "topics: [t], tls: {enabled: true, skip_cert_verify: true}, "
            "sasl: [{mechanism: PLAIN, username: u, password: hush}]",
            "at a (by TLS, certificates not verified; 'u', PLAIN)",
        ),
    ],
)
def test_each_field_that_matters_is_said(fields: str, expected: str) -> None:
    text = said(f"redpanda: {{seed_brokers: [a], {fields}}}")
    assert expected in text and "hush" not in text


def test_explain_says_it_below_each_input() -> None:
    one = "{label: L, kafka: {addresses: [a], topics: [T], consumer_group: T}}"
    both = ", ".join(one.replace("L", name).replace("T", name) for name in ("x", "y"))
    config = f"input: {{broker: {{inputs: [{both}]}}}}"
    output = "\noutput: {redpanda: {seed_brokers: [a], topic: t, transactional: true}}"
    lines = explain(make_plan(parse_config(config + output, "a.yaml")), "/state").split("\n")
    at = next(n for n, line in enumerate(lines) if "[y] kafka" in line)
    assert lines[at + 1] == "      reads        the topic y at a"
    assert lines[at + 3].startswith("      group        'y' gets the committed offsets every 1s")
    assert any("sends, exactly once, in transactions" in line for line in lines)
