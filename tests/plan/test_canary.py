"""What a canary may run a second time, and what it must not."""

from __future__ import annotations

import pytest

from streamer.components.catalog import COMPONENTS
from streamer.config import parse_config
from streamer.plan import make_plan
from streamer.plan.canary import (
    CALLING_PROCESSORS,
    QUIET_PROCESSORS,
    CanaryRefusedError,
    check_calls,
    check_change,
    list_output_changes,
    make_canary_plan,
)
from streamer.plan.change_impact import judge
from streamer.plan.plan import Plan
from streamer.sdk.spec import Kind

BASE = """
input: {{ http_server: {{ path: /post }} }}
buffer: {{ {buffer} }}
pipeline: {{ processors: [ {processors} ] }}
cache_resources:
  - {{ label: near, memory: {{}} }}
  - {{ label: far, redis: {{ url: 'redis://127.0.0.1:6379' }} }}
output: {{ http_client: {{ url: 'http://127.0.0.1:9/' }} }}
"""
TUMBLING = "tumbling_window: { timestamp_mapping: root = this.at, size: 1s }"


def plan(processors: str = "", buffer: str = TUMBLING) -> Plan:
    return make_plan(parse_config(BASE.format(processors=processors, buffer=buffer), env={}))


def test_each_processor_is_known_to_be_seen_outside_or_not() -> None:
    names = set(COMPONENTS[Kind.PROCESSOR])
    assert names == QUIET_PROCESSORS | CALLING_PROCESSORS
    assert not QUIET_PROCESSORS & CALLING_PROCESSORS


@pytest.mark.parametrize(
    "processors",
    [
        "{ mapping: root = this }",
        "{ http: { url: 'http://127.0.0.1:9/', verb: GET } }",
        "{ cache: { resource: far, operator: get, key: a } }",
        "{ dedupe: { cache: near, key: a } }",
    ],
)
def test_what_changes_nothing_outside_may_run_twice(processors: str) -> None:
    notes = check_calls(plan(processors))
    assert bool(notes) == ("near" in processors)


@pytest.mark.parametrize(
    ("processors", "problem"),
    [
        ("{ label: pay, http: { url: 'http://127.0.0.1:9/' } }", "http may change something"),
        ("{ redis: { url: 'redis://a', command: incr, args_mapping: 'root = []' } }", "redis may"),
        ("{ dedupe: { cache: far, key: a } }", "dedupe changes the cache far"),
        ("{ cache: { resource: far, operator: set, key: a, value: b } }", "changes the cache far"),
        ("{ branch: { processors: [ { command: { name: a } } ] } }", "command may change"),
        ("{ for_each: [ { switch: [ { processors: [ { http: { url: 'http://a' } } ] } ] } ] }", ""),
    ],
)
def test_what_may_be_seen_outside_is_refused_wherever_it_stands(
    processors: str, problem: str
) -> None:
    with pytest.raises(CanaryRefusedError, match="--allow-calls NAME") as raised:
        check_calls(plan(processors))
    assert problem in str(raised.value)


def test_calls_that_are_allowed_by_name_or_label_may_be_made_twice() -> None:
    paying = plan("{ label: pay, http: { url: 'http://127.0.0.1:9/' } }")
    assert check_calls(paying, ["pay"]) == check_calls(paying, ["http"]) == []


@pytest.mark.parametrize(
    "buffer", ["none: {}", "memory: {}", "keyed_state: {key_mapping: root = 1}"]
)
def test_messages_without_windows_are_refused(buffer: str) -> None:
    with pytest.raises(CanaryRefusedError, match="compares windows"):
        check_calls(plan(buffer=buffer))


def test_count_windows_are_compared_by_the_numbers_of_their_messages() -> None:
    assert check_calls(plan(buffer="count_window: { count: 3 }")) == []
    with pytest.raises(CanaryRefusedError, match="keep a state for each key"):
        check_calls(
            plan(
                "{ mapping: root = lag(this.v) }",
                "count_window: { count: 3, key_mapping: root = this.k }",
            )
        )


def test_the_outputs_of_a_canary_are_dropped() -> None:
    late = TUMBLING.replace("size: 1s", "size: 1s, late_output: aside")
    text = BASE.format(processors="", buffer=late)
    text += "output_resources: [ { label: aside, file: { path: late.jsonl } } ]\n"
    original = make_plan(parse_config(text, env={}))
    canary = make_canary_plan(original)
    assert [one.name for one in original.outputs] == ["http_client", "file"]
    assert [one.name for one in canary.outputs] == ["drop", "drop"]
    assert canary.fingerprint == original.fingerprint
    assert [one.path for one in canary.outputs] == [one.path for one in original.outputs]


def test_a_change_that_loses_windows_has_no_canary() -> None:
    before = parse_config(BASE.format(processors="", buffer=TUMBLING), env={})
    after = parse_config(BASE.format(processors="", buffer=TUMBLING.replace("1s", "2s")), env={})
    with pytest.raises(CanaryRefusedError, match="the change loses"):
        check_change(judge(before, after))
    check_change(judge(before, before))


def test_a_change_of_the_output_is_said_not_to_be_compared() -> None:
    text = BASE.format(processors="", buffer=TUMBLING)
    before, after = parse_config(text, env={}), parse_config(text.replace("9/", "8/"), env={})
    assert list_output_changes(before, before) == []
    [note] = list_output_changes(after, before)
    assert "is not compared" in note
