"""Expectations judge messages and batches by name, and mark, drop, warn of or end on what fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.core.errors import StreamAbortedError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.engine.report.failed_messages import FailureSampler
from tests.components.processors.conftest import Make, messages


class CountingRun:
    """An execution that keeps log lines, counts by expectation, and samples of failures."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.counts: dict[tuple[str, str], int] = {}
        self.ex = Execution(lambda: 0, self._log, self._count)
        self.ex.failures = self.sampler = FailureSampler()

    def _log(self, level: str, text: str, fields: Any) -> None:
        self.lines.append((level, text))

    def _count(self, name: str, by: int = 1, **labels: str) -> None:
        key = (
            name.removeprefix("expectation_").removesuffix("_total"),
            labels.get("expectation", ""),
        )
        self.counts[key] = self.counts.get(key, 0) + by

    def samples(self) -> list[dict[str, Any]]:
        body = self.sampler.encode_samples()
        return [] if body is None else json.loads(body)


@pytest.fixture
def run() -> CountingRun:
    return CountingRun()


def expect(*expectations: str) -> str:
    """The YAML of a processor with expectations in flow style."""
    return "label: q\nexpect:\n  expectations:\n" + "".join(
        f"    - {{ {one} }}\n" for one in expectations
    )


def judge(make: Make, run: CountingRun, batch: Batch, *expectations: str) -> list[Any]:
    """Return by message that goes on its document, or its document and error."""
    made = make(expect(*expectations)).process(batch, run.ex)
    return [
        one.raw.decode() if one.error is None else (one.raw.decode(), str(one.error))
        for one in (made[0] if made else [])
    ]


def passes(make: Make, run: CountingRun, rule: str, *payloads: str) -> list[bool]:
    """Return by message of one batch whether it passes a rule for messages."""
    made = judge(make, run, messages(*payloads), f"name: x, {rule}")
    return [isinstance(one, str) for one in made]


@pytest.mark.parametrize(
    ("rule", "payload", "reason"),
    [
        ("check: this.v > 1", '{"v":1}', "check is false"),
        ("check: this.v", '{"v":null}', "check gives null, not true"),
        ("check: this.v", "{}", "check gives null, not true"),
        ("check: this.v", '{"v":1}', "check gives 1, a number, not true"),
        ("check: this.v", '{"v":"true"}', 'check gives "true", a string, not true'),
        ("check: 'root = deleted()'", "{}", "the query deletes the message"),
        ("check: 'if false { true }'", "{}", "check gives null, not true"),
        ("value: this.v, not_null: true", "{}", "the value is null"),
        ("value: this.v, min: 0", '{"v":-1}', "-1 is below the minimum 0"),
        ("value: this.v, max: 5", '{"v":5.5}', "5.5 is above the maximum 5"),
        ("value: this.v, min: 0", '{"v":"1"}', '"1" is a string, not a number'),
        ("value: this.v, min: 0", '{"v":true}', "true is a bool, not a number"),
        ("value: '\"NaN\".number()', min: 0", "{}", "nan is not comparable with the minimum 0"),
        (
            "value: this.v, max: 9007199254740992",
            '{"v":9007199254740993}',
            "9007199254740993 is above the maximum 9007199254740992",
        ),
        (
            "value: this.v, max: 1",
            f'{{"v":{"9" * 80}}}',
            f"{'9' * 60}… is above the maximum 1",
        ),
        (
            "value: this.v, accepted_values: [a, 1]",
            '{"v":"1"}',
            '"1" is none of the accepted values "a", 1',
        ),
        ("value: this.v, pattern: ^a+$", '{"v":"ab"}', '"ab" does not match ^a+$'),
        ("value: this.v, pattern: ^a+$", '{"v":7}', "7 is a number, not a string"),
    ],
)
def test_the_error_of_a_message_says_which_expectation_it_fails_and_why(
    make, run, rule, payload, reason
) -> None:
    ((content, error),) = judge(make, run, messages(payload), f"name: x, {rule}")
    assert (content, error) == (payload, f"expectation x failed: {reason}")
    assert run.counts == {("failed", "x"): 1, ("processor_error", ""): 1}


@pytest.mark.parametrize("payload", ["", "no json", "\x00\xff", '{"v":', "[" * 5_000])
@pytest.mark.parametrize("rule", ["check: this.v == 1", "value: this.v, min: 0"])
def test_a_message_that_cannot_be_read_fails_and_the_others_pass(make, run, payload, rule) -> None:
    batch = [Message(payload.encode("latin-1")), *messages('{"v":1}')]
    made = make(expect(f"name: x, {rule}")).process(batch, run.ex)[0]
    assert [one.error is None for one in made] == [False, True]
    assert "expectation x failed: failed assignment (line 1)" in str(made[0].error)
    assert run.counts["passed", "x"] == run.counts["failed", "x"] == 1


@pytest.mark.parametrize(
    "rule",
    ["min: 0, max: 1", "accepted_values: [a]", "pattern: ^a$", "unique: true"],
)
def test_null_and_what_is_missing_pass_all_tests_but_not_null(make, run, rule) -> None:
    payloads = ('{"v":null}', "{}", '{"v":null}')
    assert passes(make, run, f"value: this.v, {rule}", *payloads) == [True] * 3
    assert passes(make, run, f"value: this.v, not_null: true, {rule}", *payloads) == [False] * 3


def test_values_are_unique_by_type_and_number_and_the_first_passes(make, run) -> None:
    values = ["1", "1.0", '"1"', "1e0", "true", "[1]", "[1.0]", '{"a":1,"b":2}', '{"b":2,"a":1}']
    huge = ["100000000000000000000001", "100000000000000000000002", "100000000000000000000001"]
    result = passes(
        make, run, "value: this.v, unique: true", *[f'{{"v":{v}}}' for v in values + huge]
    )
    assert result == [True, False, True, False, True, True, False, True, False, True, True, False]


def test_messages_of_batches_of_one_are_not_compared(make, run) -> None:
    processor = make(expect("name: x, value: this.v, unique: true"))
    assert [
        one.error for one in processor.process_each(messages('{"v":1}', '{"v":1}'), run.ex)
    ] == [
        None,
        None,
    ]


def test_several_expectations_judge_what_came_in_and_the_hardest_effect_counts(make, run) -> None:
    made = judge(
        make,
        run,
        messages('{"v":1}', '{"v":-1}', '{"v":-1,"w":1}', '{"v":3}'),
        "name: low, value: this.v, min: 0",
        "name: odd, check: this.v % 2 == 0, on_fail: warn",
        "name: w, check: this.w == null, on_fail: drop",
        "name: few, per: batch, count: true, max: 3, on_fail: warn",
    )
    assert made == [
        '{"v":1}',
        ('{"v":-1}', "expectation low failed: -1 is below the minimum 0"),
        '{"v":3}',
    ]
    assert run.counts == {
        ("passed", "low"): 2,
        ("failed", "low"): 2,
        ("failed", "odd"): 4,
        ("passed", "w"): 3,
        ("failed", "w"): 1,
        ("dropped", "w"): 1,
        ("failed", "few"): 1,
        ("processor_error", ""): 1,
    }


def test_a_message_names_all_expectations_that_mark_it(make, run) -> None:
    processor = make(expect("name: a, check: 'false'", "name: b, check: 'null'"))
    (one,) = processor.process([Message(b"1", {"k": "v"})], run.ex)[0]
    assert str(one.error) == (
        "expectation a failed: check is false; expectation b failed: check gives null, not true"
    )
    assert one.meta == {"k": "v", "failed_expectations": ["a", "b"]}
    assert (one.error.name, one.error.label) == ("expect", "q")


def test_messages_that_failed_before_are_not_judged_and_keep_their_place(make, run) -> None:
    batch = messages('{"v":-1}', '{"v":-2}', '{"v":3}')
    batch[1] = batch[1].with_error("earlier")
    made = judge(make, run, batch, "name: x, value: this.v, min: 0, on_fail: drop")
    assert made == [('{"v":-2}', "earlier"), '{"v":3}']
    dropped = judge(make, run, batch, "name: y, per: batch, count: true, min: 3, on_fail: drop")
    assert dropped == [('{"v":-2}', "earlier")]
    assert run.counts["dropped", "y"] == 2 and run.counts["failed", "y"] == 1


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("count: true, min: 5", "4 is below the minimum 5"),
        ("count: true, max: 3", "4 is above the maximum 3"),
        ("check: batch_size() > 4", "check is false"),
        ("measure: 'json(\"v\").from_all().sum()', max: 9", "10 is above the maximum 9"),
        ("measure: '\"x\"', max: 9", '"x" is a string, not a finite number'),
        ("measure: this.nothing, max: 9", "it is null, not a finite number"),
        (
            "value: this.v, max: 2, min_pass_rate: 0.6",
            "2 of 4 messages fail, the pass rate 0.5 is below 0.6; the first: 3 is above the "
            "maximum 2",
        ),
        (
            "value: this.k, unique: true",
            '1 of 4 messages fail, the pass rate 0.75 is below 1; the first: "a" is there more '
            "than once",
        ),
    ],
)
@pytest.mark.parametrize("per", ["batch", "Batch"])
def test_a_batch_that_fails_marks_all_of_its_messages(make, run, rule, reason, per) -> None:
    batch = messages(*[f'{{"v":{n},"k":"{k}"}}' for n, k in zip((1, 2, 3, 4), "abac", strict=True)])
    made = judge(make, run, batch, f"name: x, per: {per}, {rule}")
    assert {error for _, error in made} == {f"expectation x failed: {reason}"} and len(made) == 4
    assert run.counts == {("failed", "x"): 1, ("processor_error", ""): 4}


def test_a_pass_rate_is_exact_where_no_float_is(make, run) -> None:
    batch = messages(*['{"v":1}'] * 55, *["{}"] * 45)
    rule = "name: x, per: batch, value: this.v, not_null: true, min_pass_rate: 0.55"
    assert len(judge(make, run, batch, rule)) == 100
    assert run.counts == {("passed", "x"): 1}


def test_fail_ends_the_stream_with_the_name_the_reason_and_a_sample(make, run) -> None:
    processor = make(expect("name: x, value: this.v, min: 0, on_fail: fail"))
    assert processor.process(messages('{"v":1}'), run.ex)
    with pytest.raises(StreamAbortedError) as caught:
        processor.process(messages('{"v":1}', '{"v":-1}', '{"v":-2}'), run.ex)
    assert str(caught.value) == (
        'expectation x failed: -1 is below the minimum 0; message: {"v":-1}'
    )
    assert (caught.value.label, caught.value.path) == ("q", "root.pipeline.processors.0")


@pytest.mark.parametrize(
    ("on_fail", "fate"),
    [("mark", "marked"), ("drop", "expectation_dropped"), ("warn", "expectation_warned")],
)
def test_each_expectation_has_samples_of_its_own(make, run, on_fail, fate) -> None:
    processor = make(
        expect(
            f"name: often, check: 'false', on_fail: {on_fail}",
            f"name: seldom, check: this != 7, on_fail: {on_fail}",
        )
    )
    for number in range(50):
        processor.process([Message.from_value(number), Message.from_value(number)], run.ex)
    samples = run.samples()
    names = [one["expectation"] for one in samples]
    assert (names.count("often"), names.count("seldom")) == (3, 1)
    (seldom,) = (one for one in samples if one["expectation"] == "seldom")
    assert (seldom["fate"], seldom["content"], seldom["messages"]) == (fate, "7", 2)
    assert seldom["error"] == "expectation seldom failed: check is false"


JSON_SCHEMA = 'schema: { json_schema: { schema: \'{"type":"object"}\' } }'
AVRO = (
    "schema: { avro: { operator: from_json, schema: "
    '\'{"type":"record","name":"P","fields":[{"name":"x","type":"long"}]}\' } }'
)


@pytest.mark.parametrize(
    ("rule", "good", "bad", "reason"),
    [
        (
            JSON_SCHEMA,
            "{}",
            "7",
            "json_schema: (root) invalid type. expected: object, given: integer",
        ),
        (AVRO, '{"x":1}', '{"x":"no"}', "avro: "),
    ],
)
def test_a_schema_judges_and_leaves_messages_as_they_came(
    make, run, rule, good, bad, reason
) -> None:
    made = judge(make, run, messages(good, bad, good, "no json"), f"name: fits, {rule}")
    assert [one if isinstance(one, str) else one[0] for one in made] == [good, bad, good, "no json"]
    assert [isinstance(one, str) for one in made] == [True, False, True, False]
    assert made[1][1].startswith(f"expectation fits failed: {reason}")
    # The processor's own failures are not counted or logged beside those of the expectation.
    assert run.counts["processor_error", ""] == 2
    assert [level for level, _ in run.lines] == ["WARN"]


PROTO = 'syntax = "proto3"; message Car { int64 speed = 1; }'


@pytest.mark.parametrize(
    ("operator", "good", "bad"),
    [("from_json", b'{"speed":"7"}', b'{"speed":"fast"}'), ("to_json", b"\x08\x07", b"\x08")],
)
@pytest.mark.parametrize("per", ["message", "batch"])
def test_a_protobuf_schema_judges_and_leaves_messages_as_they_came(
    make, run, tmp_path, operator, good, bad, per
) -> None:
    (tmp_path / "car.proto").write_text(PROTO)
    schema = f"{{ operator: {operator}, message: Car, import_paths: [ '{tmp_path}' ] }}"
    rule = f"name: fits, per: {per}, schema: {{ protobuf: {schema} }}"
    batch = [Message(one) for one in (good, bad, good)]
    [made] = make(expect(rule)).process(batch, run.ex)
    assert [one.raw for one in made] == [good, bad, good]
    reasons = [str(one.error or "") for one in made]
    if per == "message":
        assert [bool(one) for one in reasons] == [False, True, False]
        assert reasons[1].startswith("expectation fits failed: protobuf: ")
        assert (run.counts["passed", "fits"], run.counts["failed", "fits"]) == (2, 1)
    else:
        assert len(set(reasons)) == 1
        assert reasons[0].startswith("expectation fits failed: 1 of 3 messages fail, the pass rate")


def test_a_window_without_messages_has_a_count_of_nought(make, run) -> None:
    empty = [Message(b"null", {"window_emit": "empty"})]
    made = judge(
        make,
        run,
        empty,
        "name: speed, value: this.v, not_null: true",
        "name: rate, per: batch, value: this.v, not_null: true",
        "name: some, per: batch, count: true, min: 1",
    )
    assert made == [("null", "expectation some failed: 0 is below the minimum 1")]
    assert run.counts == {("passed", "rate"): 1, ("failed", "some"): 1, ("processor_error", ""): 1}
