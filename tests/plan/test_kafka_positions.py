"""Where Kafka inputs may stand, and what a checkpoint is bound to by them."""

import pytest

from streamer.config import parse_config
from streamer.core.errors import StreamerError
from streamer.plan import make_plan

KAFKA = "kafka: {addresses: ['localhost:9092'], topics: [a], consumer_group: g}"


def bound(text: str) -> str:
    return make_plan(parse_config(text, "test.yaml")).fingerprint["input"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"input: {{{KAFKA}}}", "kafka"),
        (f"input: {{resource: q}}\ninput_resources: [{{label: q, {KAFKA}}}]", "kafka"),
        ("input: {broker: {inputs: [{stdin: {}}]}}", "broker"),
        (
            f"input: {{broker: {{inputs: [{{label: x, {KAFKA}}}, {{stdin: {{}}}}, "
            f"{{broker: {{inputs: [{{{KAFKA}}}]}}}}]}}}}",
            "broker with x/kafka, 2/0/kafka",
        ),
    ],
)
def test_a_checkpoint_is_bound_to_the_kafka_inputs_and_their_places(text, name):
    assert bound(text) == name


@pytest.mark.parametrize(
    "text",
    [
        f"sequence: {{inputs: [{{{KAFKA}}}]}}",
        f"read_until: {{check: 'true', input: {{{KAFKA}}}}}",
        f"batched: {{child: {{{KAFKA}}}, policy: {{count: 3}}}}",
        f"broker: {{inputs: [{{{KAFKA}}}], batching: {{count: 5}}}}",
    ],
)
def test_a_kafka_input_within_another_is_read_on_the_driver(text):
    assert bound(f"input: {{{text}}}") == text.partition(":")[0]


@pytest.mark.parametrize(
    "text",
    [
        f"broker: {{copies: 2, inputs: [{{{KAFKA}}}]}}",
        f"broker: {{copies: 2, inputs: [{{{KAFKA}}}], batching: {{count: 5}}}}",
        f"broker: {{copies: 2, inputs: [{{sequence: {{inputs: [{{{KAFKA}}}]}}}}]}}",
        f"sequence: {{inputs: [{{broker: {{copies: 2, inputs: [{{{KAFKA}}}]}}}}]}}",
    ],
)
def test_a_kafka_input_that_is_there_several_times_is_refused(text):
    with pytest.raises(StreamerError, match="copies is 2, and each copy of kafka would read all"):
        bound(f"input: {{{text}}}")
