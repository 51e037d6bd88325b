"""A query that is false is explained by what it compares."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.tools.unit_tests.failed_comparison import explain_false_query

MESSAGE = Message(b'{"id":17,"name":"a == b","list":[1,2]}', {"k": "v"})


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ("this.id == 18", ["this.id: 17"]),
        ("  18 ==\n this.id", ["this.id: 17"]),
        ("this.id - 1 == this.list.length()", ["this.id - 1: 16", "this.list.length(): 2"]),
        ('this.id == 17 && @k == "w" && this.none == 1', ['@k: "v"']),
        ('this.name == "a == c" # why', ['this.name: "a == b"']),
        ("this.id < 3 || (this.id + 1) > 20", ["this.id: 17", "(this.id + 1): 18"]),
        ("this.id == 1 || this.id == 2", ["this.id: 17"]),
        ("this.none == 1", ["this.none: null"]),
        ("this.list.(this.length()) == 3", ["this.list.(this.length()): 2"]),
        (
            'content().string() == "x"',
            [
                r'content().string(): "{\"id\":17,\"name\":\"a == b\",'
                r'\"list\":[1,2]}"'
            ],
        ),
        ('this == {"id": 17}', ['this: {"id":17,"list":[1,2],"name":"a == b"}']),
        ("this.\n  id ==\n  3", ["this. id: 17"]),
        ("errored()", []),
        ("this.id == 17 && errored()", []),
        ("!(this.id == 17)", []),
        ("root = false", []),
        ("let x = 3\nroot = this.id == $x", []),
        ("random_int() == 3", []),
        ("this.name.number() == 1 || this.id == 3", []),
    ],
)
def test_the_sides_of_a_comparison_are_shown(query: str, lines: list[str]) -> None:
    found = explain_false_query(query, MESSAGE, Path(), Execution(lambda: 0))
    assert [line.text.strip() for line in found] == lines
