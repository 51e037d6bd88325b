"""`table_join`: its settings, and which of them are refused."""

from __future__ import annotations

import pytest

from streamer.config import parse_config
from streamer.core.durations import DAY, SECOND
from streamer.core.errors import ConfigError
from streamer.plan import make_plan
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window_types import TableJoin

INPUT = """
input:
  broker:
    inputs:
      - { label: rates, generate: { mapping: 'root = {}' } }
      - { label: payments, generate: { mapping: 'root = {}' } }
"""
SIDES = "stream: payments, table: rates, key_mapping: root = this.k"


def window_of(fields: str) -> EventWindow:
    plan = make_plan(parse_config(f"{INPUT}\nbuffer: {{ table_join: {{ {fields} }} }}"))
    assert isinstance(plan.window, EventWindow)
    return plan.window


def test_the_defaults_are_those_of_a_plain_table() -> None:
    window = window_of(SIDES)
    assert window.kind == TableJoin("payments", "rates")
    assert (window.keyed, window.time.clock_scope) == (True, "stream")


def test_all_settings_are_taken() -> None:
    fields = "type: LEFT, history: 1d, allowed_lateness: 5s, clock_scope: input, table_ttl: 30d"
    window = window_of(f"{SIDES}, {fields}, delete_when: this.gone")
    assert window.kind == TableJoin("payments", "rates", "left", DAY, 30 * DAY, "this.gone")
    assert (window.time.allowed_lateness, window.time.clock_scope) == (5 * SECOND, "input")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("stream: payments, table: rates", "key_mapping"),
        ("stream: payments, table: rates, key_mapping: ''", "is empty; expected what a message"),
        ("stream: payments, table: payments, key_mapping: root = 1", "is the stream already"),
        ("stream: payments, table: rate, key_mapping: root = 1", r"did you mean rates\?"),
        (f"{SIDES}, allowed_lateness: 1s", "has no meaning without history"),
        (f"{SIDES}, history: 1s, allowed_lateness: 2s", "need the rows of their time"),
        (f"{SIDES}, history: 0s", "must be longer than 0s"),
        (f"{SIDES}, table_ttl: 0s", "must be longer than 0s"),
        (f"{SIDES}, source_idle_timeout: 5m", "has no meaning without clock_scope"),
        (f"{SIDES}, type: outer", "inner"),
        (f"{SIDES}, within: 1h", "a row is valid until the next one"),
    ],
)
def test_what_cannot_be_is_refused(fields: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        window_of(fields)


def test_other_buffers_read_its_results_and_its_sides_name_what_it_reads() -> None:
    join = f"{{ label: joined, table_join: {{ {SIDES} }} }}"
    totals = "{ label: totals, from: joined, tumbling_window: { size: 1h } }"
    parse_config(f"{INPUT}\nbuffers: [ {join}, {totals} ]")
    behind = join.replace("joined,", "joined, from: totals,")
    totals = totals.replace("from: joined, ", "")
    with pytest.raises(ConfigError, match="a table_join names what it takes by its sides"):
        parse_config(f"{INPUT}\nbuffers: [ {behind}, {totals} ]")
