"""`limits.time`: what works too long on one message is interrupted, and only that message fails."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamer.bloblang import compile_interpolation, compile_mapping
from streamer.bloblang.analysis.pre_aggregation import PreAggregation, analyze_pre_aggregation
from streamer.bloblang.errors import QueryError
from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.connectors.generated.message_generator import MessageGenerator
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.limits import DEFAULT_LIMITS, current_limits, set_limits
from streamer.core.message import Message
from streamer.core.time_limit import (
    OVERDUE_EXIT_CODE,
    TimeLimitError,
    end_process_when_overdue,
    run_within_time,
)
from streamer.sdk.processing import run, run_each
from tests.components.inputs.rooms import lodging

MS = 1_000_000
LIMIT = 100 * MS
LOOP = (
    "(if this.n > 5 { range(0, 3000).fold(0, a -> a.tally + range(0, 3000).fold(0, b -> b.tally + "
    "range(0, 3000).fold(0, c -> c.tally + 1))) } else { this.n })"
)
NESTED = f"""
mapping: |
  root.n = {LOOP}
"""
TOO_LONG = "it takes longer than the 100ms that limits.time allows"
ENDLESS = "jq: {query: 'if .n > 5 then def f: f; f else .n end'}"


@pytest.fixture(autouse=True)
def limited() -> Iterator[None]:
    set_limits(DEFAULT_LIMITS._replace(time=LIMIT))
    yield
    set_limits(DEFAULT_LIMITS)


def made(yaml: str) -> list:
    indented = yaml.strip().replace("\n", "\n      ")
    caches = "cache_resources: [{label: c, memory: {}}]"
    config = parse_config(f"pipeline:\n  processors:\n    - {indented}\n{caches}\n", env={})
    return build_context(config.resources).build_all(config.processors)


def execution() -> Execution:
    return Execution(lambda: 0)


@pytest.mark.parametrize("way", ["each", "batches"])
def test_a_mapping_that_takes_too_long_is_interrupted(way: str) -> None:
    messages = [Message(b'{"n":0}'), Message(b'{"n":3000}'), Message(b'{"n":0}')]
    began = time.monotonic()
    if way == "each":
        found = [batch[0] for batch in run_each(made(NESTED), messages, execution())]
    else:
        batches = run(made(NESTED), [[message] for message in messages], execution())
        found = [batch[0] for batch in batches]
    assert time.monotonic() - began < 30  # without a limit it takes an hour
    assert [message.error is None for message in found] == [True, False, True]
    assert found[1].error == f"failed assignment (line 1): {TOO_LONG}"
    assert found[1].error.path == "pipeline.processors.0"  # type: ignore[union-attr]


DOORS = {
    "mutation": f"mutation: 'root.m = {LOOP}'",
    "bloblang() of a text": f"mapping: 'root = this.bloblang(\"root = {LOOP}\")'",
    "named maps, on a stack of their own": (
        "mapping: |\n"
        "  map again { root = if this.d > 2000 { 1 } else { "
        '{"d": this.d + 1}.apply("again") + {"d": this.d + 1}.apply("again") } }\n'
        '  root = {"d": 0}.apply("again")'
    ),
    "branch.request_map": f"branch: {{request_map: 'root = {LOOP}', processors: [noop: {{}}]}}",
    "branch.result_map": f"branch: {{processors: [noop: {{}}], result_map: 'root.m = {LOOP}'}}",
    "switch": f"switch: [{{check: '{LOOP} > 0', processors: [noop: {{}}]}}]",
    "while": f"while: {{check: '{LOOP} > 0', processors: [noop: {{}}]}}",
    "workflow": (
        f"workflow: {{branches: {{a: {{request_map: 'root = {LOOP}', processors: [noop: {{}}], "
        "result_map: root.a = this}}}"
    ),
    "group_by": f"group_by: [{{check: '{LOOP} > 0', processors: [noop: {{}}]}}]",
    "group_by_value": f"group_by_value: {{value: '${{! {LOOP} }}'}}",
    "insert_part": f"insert_part: {{content: '${{! {LOOP} }}'}}",
    "dedupe": f"dedupe: {{cache: c, key: '${{! {LOOP} }}'}}",
    "cache": f"cache: {{resource: c, operator: set, key: '${{! {LOOP} }}', value: a}}",
    "cached.skip_on": (
        f"cached: {{cache: c, key: a, skip_on: '{LOOP} > 0', processors: [noop: {{}}]}}"
    ),
    "log.fields_mapping": f"log: {{fields_mapping: 'root.m = {LOOP}'}}",
    "metric": f"metric: {{type: counter_by, name: m, value: '${{! {LOOP} }}'}}",
    "sleep": f"sleep: {{duration: '${{! {LOOP} }}ns'}}",
    "archive.path": f"archive: {{format: tar, path: '${{! {LOOP} }}'}}",
    "http.url": f"http: {{url: 'http://127.0.0.1:9/${{! {LOOP} }}', retries: 0}}",
    "command.args_mapping": f"command: {{name: echo, args_mapping: 'root = [{LOOP}]'}}",
    "sql_raw.args_mapping": (
        "sql_raw: {driver: sqlite, dsn: ':memory:', query: select ?, "
        f"args_mapping: 'root = [{LOOP}]'}}"
    ),
}


@pytest.mark.parametrize("yaml", DOORS.values(), ids=DOORS)
def test_wherever_a_mapping_stands_it_keeps_the_limit(yaml: str) -> None:
    said: list[str] = []
    ex = Execution(lambda: 0, lambda level, text, fields: said.append(text))
    began = time.monotonic()
    batches = list(run(made(yaml), [[Message(b'{"n":3000}')]], ex))
    assert time.monotonic() - began < 10
    found = [message.error or "" for batch in batches for message in batch]
    assert TOO_LONG in " ".join([*found, *said])


def test_what_windows_ask_of_each_message_keeps_the_limit() -> None:
    document = {"n": 3000}
    began = time.monotonic()
    for function in (
        compile_mapping(f"root = {LOOP}").doc_fn,
        compile_interpolation(f"${{! {LOOP} }}").doc_fn,
    ):
        assert function is not None
        with pytest.raises(QueryError, match=TOO_LONG):
            function(document)
    # Without a limit it is the plain function again.
    set_limits(DEFAULT_LIMITS)
    assert compile_mapping(f"root = {LOOP}").doc_fn({"n": 0}) == 0  # type: ignore[misc]
    assert time.monotonic() - began < 10


def test_what_windows_fold_keeps_the_limit() -> None:
    each = LOOP.replace("this.n", 'json("n")')
    fold = analyze_pre_aggregation(
        f"root = if batch_index() == 0 {{ {each}.from_all().sum() }} else {{ deleted() }}"
    )
    assert isinstance(fold, PreAggregation)
    element = next(part.expression for part in fold.aggregates if part.expression is not None)
    began = time.monotonic()
    found = element.evaluate([{"n": 0}, {"n": 3000}])
    assert found[0] == 0 and TOO_LONG in found[1].text
    assert time.monotonic() - began < 10


def test_a_mapping_of_a_whole_batch_has_the_time_of_all_its_messages() -> None:
    slow = "root = content().from_all().length() + range(0, 1000000).fold(0, a -> a.tally + 1)"
    set_limits(DEFAULT_LIMITS._replace(time=20 * MS))
    batch = [Message(b"{}")] * 1000
    assert compile_mapping(slow).query(batch, 0, execution()) == 1_001_000
    with pytest.raises(MessageError, match="longer than the 20ms"):
        compile_mapping(slow).query(batch[:1], 0, execution())


def test_generate_keeps_the_limit() -> None:
    said: list[str] = []
    ex = Execution(lambda: 0, lambda level, text, fields: said.append(text))
    mapping = 'root = if count("a") == 2 { ' + LOOP.replace("this.n", "3000") + " } else { 5 }"
    began = time.monotonic()
    assert [message.raw for message in MessageGenerator(mapping, ex).make_batch(range(3), 0)] == [
        b"5",
        b"5",
    ]
    assert said == [f"Failed to generate message: failed assignment (line 1): {TOO_LONG}"]
    assert time.monotonic() - began < 10


def test_the_driver_keeps_the_limit_of_each_stream(tmp_path: Path) -> None:
    set_limits(DEFAULT_LIMITS)
    mapping = compile_mapping(f"root = {LOOP}")
    found: list[str] = []

    def receive() -> None:
        with pytest.raises(MessageError) as caught:
            mapping.query([Message(b'{"n":3000}')], 0, execution())
        found.append(str(caught.value))

    with lodging(tmp_path) as lodged:
        lodged.house.limits = DEFAULT_LIMITS._replace(time=LIMIT)
        room = lodged.room
        room.start("a receiver", receive)
        lodged.house.threads[0].join(10)
        assert found == [f"failed assignment (line 1): {TOO_LONG}"]
        assert current_limits() == DEFAULT_LIMITS


def test_within_what_is_bounded_nothing_is_bounded_anew() -> None:
    def inner() -> int:
        try:
            return run_within_time(lambda: 1, LIMIT) + run_within_time(
                lambda: time.sleep(0.4) or 1, MS
            )
        except TimeLimitError:
            return 0

    assert run_within_time(inner, 5000 * MS) == 2
    with pytest.raises(TimeLimitError):
        run_within_time(lambda: run_within_time(_for_ever, 60_000 * MS), LIMIT)


def _for_ever() -> None:
    while True:
        pass


def test_what_ends_in_time_is_not_disturbed() -> None:
    for _ in range(2000):
        assert run_within_time(lambda: 5, LIMIT) == 5
    # An end just at the limit is either in time or not, and never comes later.
    for _ in range(20):
        try:
            run_within_time(lambda: time.sleep(0.01), 10 * MS)
        except TimeLimitError:
            continue
    time.sleep(0.1)


def test_code_in_c_that_does_not_come_back_ends_a_worker() -> None:
    child = os.fork()
    if child == 0:
        try:
            end_process_when_overdue()
            list(run(made(ENDLESS), [[Message(b'{"n":1}')], [Message(b'{"n":9}')]], execution()))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == OVERDUE_EXIT_CODE
