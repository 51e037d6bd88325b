"""Messages are sharded by the first grouping, when that looks at one message only."""

import pytest

from streamer.config import parse_config
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.plan import make_plan

BASE = "buffer: {system_window: {size: 10s}}\npipeline:\n  processors:\n"


def key(processor: str):
    return make_plan(parse_config(BASE + processor)).key


@pytest.mark.parametrize(
    ("value", "keyed"),
    [
        ('${! json("light") }', True),
        ('${! meta("kafka_key") }', True),
        ("${! @kafka_key }", True),
        ("always the same", True),
        ('${! meta("window_end_timestamp") }', False),
        ("${! @window_end_timestamp }", False),
        ("${! meta() }", False),
        ('${! json("light").from(0) }', False),
        ("${! batch_index() }", False),
        ('${! count("x") }', False),
        ("${! uuid_v4() }", False),
        ("${! now() }", False),
    ],
)
def test_group_by_value(value, keyed):
    assert (key(f"    - group_by_value: {{value: '{value}'}}\n") is not None) == keyed


def test_group_by_is_keyed_by_its_first_true_check():
    found = key("    - group_by:\n        - check: this.n > 10\n        - check: this.n > 5\n")
    assert found is not None and not found.replaces_grouping
    compiled = found.compile()
    ex = Execution(lambda: 0)
    numbers = [
        compiled.query([Message(b'{"n":%s}' % n)], 0, ex) for n in (b"11", b"6", b"1", b'"x"')
    ]
    assert numbers == [0, 1, -1, -1]


def test_group_by_over_a_batch_has_no_key():
    assert key("    - group_by:\n        - check: batch_index() == 0\n") is None


def test_another_first_processor_has_no_key():
    grouping = "    - group_by_value: {value: '${! this.a }'}\n"
    assert key(grouping) is not None
    assert key("    - mapping: root = this\n" + grouping) is None
