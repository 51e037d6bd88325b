"""What lint says of the two inputs of a join."""

from __future__ import annotations

import pytest

from streamer.config import parse_config
from streamer.core.errors import ConfigError

ORDERS = "{label: orders, stdin: {}}"
SHIPMENTS = "{label: shipments, generate: {mapping: 'root = {}'}}"
JOIN = "buffer: {window_join: {left: orders, right: shipments, within: 1s}}"


def broker(*inputs: str) -> str:
    return f"input: {{broker: {{inputs: [{', '.join(inputs)}]}}}}"


def test_two_labelled_inputs_are_right() -> None:
    parse_config(f"{broker(ORDERS, SHIPMENTS)}\n{JOIN}")


def test_labels_of_resources_and_of_inner_brokers_count() -> None:
    inner = f"broker: {{inputs: [{SHIPMENTS}]}}"
    parse_config(f"input_resources: [{ORDERS}]\n{broker('resource: orders', inner)}\n{JOIN}")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (broker(ORDERS, "{label: shipment, stdin: {}}"), r"right is 'shipments', but no input"),
        (broker(ORDERS, "{label: shipment, stdin: {}}"), r"did you mean shipment\?"),
        (broker(ORDERS, "{stdin: {}}"), "the inputs' labels are orders"),
        ("input: {label: orders, stdin: {}}", r"read two inputs with `input: \{broker"),
        (broker(ORDERS, SHIPMENTS, "{label: more, stdin: {}}"), "there is another input: 'more'"),
        (broker(ORDERS, SHIPMENTS, "{stdin: {}}"), "another input: one without a label"),
    ],
)
def test_other_inputs_are_refused(source: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_config(f"{source}\n{JOIN}")


def test_the_finding_stands_at_the_field() -> None:
    text = f"{broker(ORDERS, SHIPMENTS)}\nbuffer:\n  window_join:\n    left: order\n"
    with pytest.raises(ConfigError, match=r"join.yaml\(4,11\)"):
        parse_config(text + "    right: shipments\n    within: 1s\n", "join.yaml")
