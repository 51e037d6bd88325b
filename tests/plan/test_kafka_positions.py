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
    ("text", "what"),
    [
        (f"sequence: {{inputs: [{{{KAFKA}}}]}}", "what is in sequence"),
        (f"read_until: {{check: 'true', input: {{{KAFKA}}}}}", "what is in read_until"),
        (f"batched: {{child: {{{KAFKA}}}, policy: {{count: 3}}}}", "what is in batched"),
        (
            f"broker: {{inputs: [{{sequence: {{inputs: [{{{KAFKA}}}]}}}}]}}",
            "what is in sequence",
        ),
        (
            f"broker: {{copies: 2, inputs: [{{{KAFKA}}}]}}",
            "an input that is there more than once",
        ),
        (
            f"broker: {{inputs: [{{{KAFKA}}}], batching: {{count: 5}}}}",
            "what a broker puts into batches",
        ),
    ],
)
def test_a_kafka_input_within_another_than_a_plain_broker_is_refused(text, what):
    with pytest.raises(StreamerError, match=f"kafka is read by Spark itself, and {what} is not"):
        bound(f"input: {{{text}}}")
