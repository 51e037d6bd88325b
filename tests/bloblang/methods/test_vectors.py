from __future__ import annotations

from typing import Any

import pytest

from streamer.bloblang import compile_mapping
from streamer.connectors.sql import ArgumentsMapping
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.core.vector import Vector


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], "[]"),
        ([1, -2.5, 0.1], "[1,-2.5,0.1]"),
        ([1e-7, 16777217, 1e20], "[0.0000001,16777216,100000000000000000000]"),
    ],
)
def test_text_is_that_of_numbers_of_32_bits(numbers: list[Any], text: str) -> None:
    assert Vector(numbers).to_text() == text


def test_an_argument_of_a_statement_is_its_text() -> None:
    mapping = ArgumentsMapping(compile_mapping("root = [this.id, this.v.vector()]"))
    batch = [Message(b'{"id":7,"v":[1,0.5]}')]
    assert mapping.evaluate(batch, 0, Execution(lambda: 0)) == [7, "[1,0.5]"]


@pytest.mark.parametrize("value", ['"x"', '["x"]', "[true]", "[null]", "{}"])
def test_anything_else_is_an_error(value: str) -> None:
    mapping = compile_mapping("root = this.v.vector()")
    with pytest.raises(MessageError, match="expected (array|number) value"):
        mapping.query([Message(f'{{"v":{value}}}'.encode())], 0, Execution(lambda: 0))
