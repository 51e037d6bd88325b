"""Outputs that pass batches on, where some of those that they pass them on to fail."""

from __future__ import annotations

import threading

import pytest

from streamer.components.outputs.broker import FanOut, Greedy, RoundRobin, SequentialFanOut
from streamer.components.outputs.drop_on import DropOnOutput
from streamer.components.outputs.reject_errored import RejectErroredOutput
from streamer.core.errors import ConfigError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.backoff import Backoff
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.output.retry import RetryingOutput
from streamer.sdk.output.sender import Sender
from streamer.sdk.regex_field import compile_pattern
from tests.components.outputs.scripted import PLACE, Scripted, Seen, batches, built, sender
from tests.servers.http import Reply, http_server


def texts(sent) -> list[str | None]:
    return [error and error.text for error in sent.errors]


def test_all_outputs_of_a_fan_out_get_everything_and_one_that_fails_fails_it():
    first, second = Scripted(), Scripted({"b": 1})
    output = FanOut([sender(first), sender(second)], None)
    assert texts(output.deliver(batches("a", "b"), Seen().ex)) == [None, "no b"]
    assert (first.taken, second.taken) == (["a", "b"], ["a"])


def test_an_output_of_a_fan_out_is_tried_again_by_itself():
    bodies = iter([500, 500])
    with http_server() as good, http_server(lambda a: Reply(next(bodies, 200))) as bad:
        output = built(
            f"broker: {{outputs: [http_client: {{url: '{good.url}'}}, "
            f"http_client: {{url: '{bad.url}', retries: 0}}]}}"
        )
        seen = Seen()
        assert texts(output.deliver(batches("a"), seen.ex)) == [None]
    assert (good.bodies, bad.bodies) == ([b"a"], [b"a"] * 3)
    assert len([line for line in seen.lines if line[0] == "WARN"]) == 2


def test_in_sequence_an_output_gets_what_the_one_before_it_has_taken():
    first, second = Scripted({"b": 9}, whole=False), Scripted()
    sent = SequentialFanOut([sender(first), sender(second)], None).deliver(
        batches("abc", "d"), Seen().ex
    )
    assert sent.errors[0] is not None and sent.errors[0].errors == {1: "no b"}
    assert second.taken == ["ac", "d"]


def test_outputs_take_turns_also_with_what_is_sent_again():
    outputs = [Scripted({"a": 1}), Scripted(), Scripted()]
    robin = RoundRobin([sender(output) for output in outputs], None)
    retrying = RetryingOutput(robin.deliver, Backoff(1, 1))
    assert texts(retrying.deliver(batches("a", "b", "c"), Seen().ex)) == [None] * 3
    assert outputs[0].tries[0] == "a"
    assert sorted("".join("".join(output.taken) for output in outputs)) == ["a", "b", "c"]


def test_whoever_is_free_takes_a_batch():
    blocked = threading.Event()

    class Slow(Scripted):
        def send(self, batch: Batch, ex: Execution) -> None:
            blocked.wait(60)
            super().send(batch, ex)

    class Quick(Scripted):
        def send(self, batch: Batch, ex: Execution) -> None:
            super().send(batch, ex)
            if len(self.taken) == 5:
                blocked.set()

    slow, quick = Slow(), Quick()
    greedy = Greedy([sender(slow), sender(quick)], None)
    assert texts(greedy.deliver(batches(*"abcdef"), Seen().ex)) == [None] * 6
    assert (len(slow.taken), len(quick.taken)) == (1, 5)


def test_copies_of_an_output_take_turns():
    with http_server() as server:
        output = built(
            "broker: {copies: 2, pattern: round_robin, batching: {count: 2}, "
            f"outputs: [http_client: {{url: '{server.url}/${{! batch_size() }}', "
            "batch_as_multipart: true}]}"
        )
        assert texts(output.deliver(batches(*"abcd"), Seen().ex)) == [None] * 4
    assert [asked.path for asked in server.asked] == ["/2", "/2"]


@pytest.mark.parametrize(
    ("pattern", "at_first"), [(FanOut, list("abcdbb")), (SequentialFanOut, list("abbbcd"))]
)
def test_the_others_get_nothing_again_but_what_one_has_not_taken(pattern, at_first):
    first, second = Scripted(), Scripted({"b": 2})
    output = pattern([sender(first), sender(second)], None)
    retrying = RetryingOutput(output.deliver, Backoff(1, 1))
    assert texts(retrying.deliver(batches(*"abcd"), Seen().ex)) == [None] * 4
    assert first.taken == at_first
    assert sorted(second.taken) == ["a", "b", "c", "d"]


SWITCH = (
    "switch: {strict_mode: %s, cases: ["
    "{check: 'content() == \"a\"', output: {file: {path: a}}}, "
    "{check: 'content().string().contains(\"b\")', continue: true, output: {file: {path: b}}}, "
    "{check: 'content().number() > 1', output: {file: {path: n}}}]}"
)


def test_a_message_goes_to_the_first_case_that_it_meets_and_on_if_that_says_so():
    seen = Seen()
    batch = [Message(raw) for raw in (b"a", b"b", b"7", b"c")]
    sent = built(SWITCH % "false").deliver([batch], seen.ex)
    assert texts(sent) == [None]
    assert [(one.leaf, one.route, one.body) for one in sent.written] == [
        ("output.switch.cases.0.output", "a", b"a\n"),
        ("output.switch.cases.1.output", "b", b"b\n"),
        ("output.switch.cases.2.output", "n", b"7\n"),
    ]
    failed = [text for level, text in seen.lines if level == "ERROR"]
    assert len(failed) == 2 and failed[0].startswith("Failed to test case 2: ")


def test_in_strict_mode_a_message_that_meets_no_case_has_failed():
    sent = built(SWITCH % "true").deliver(batches("a", "c"), Seen().ex)
    assert texts(sent) == [None, "no switch output conditions were met by message"]


def test_what_goes_to_several_outputs_is_sent_again_to_all_of_them_alone():
    with http_server(lambda asked: Reply(500 if asked.body == b"b" else 200)) as bad:
        output = built(
            "switch: {cases: [{continue: true, output: {file: {path: all}}}, "
            f"{{output: {{http_client: {{url: '{bad.url}', retries: 0, max_in_flight: 1}}}}}}]}}"
        )
        sent = output.deliver(batches("a", "b", "c"), Seen().ex, hold=True)
    assert [error is not None for error in sent.errors] == [False, True, False]


def test_only_the_messages_of_the_case_that_failed_have_failed():
    with http_server(lambda asked: Reply(500)) as bad, http_server() as good:
        output = built(
            "switch: {cases: [{check: 'content() == \"b\"', "
            f"output: {{http_client: {{url: '{bad.url}', retries: 0}}}}}}, "
            f"{{output: {{http_client: {{url: '{good.url}'}}}}}}]}}"
        )
        sent = output.deliver(batches("abc"), Seen().ex)
    assert sent.errors[0] is not None and list(sent.errors[0].errors) == [1]
    assert sorted(good.bodies) == [b"a", b"c"]


@pytest.mark.parametrize(
    ("yaml", "text"),
    [
        ("switch: {cases: [{output: {drop: {}}}]}", "expected two cases at least"),
        (
            "switch: {retry_until_success: true, cases: [{output: {reject: x}}, "
            "{output: {drop: {}}}]}",
            "which would be tried again for ever",
        ),
        ("broker: {outputs: []}", "is empty; expected one output"),
        ("broker: {copies: 0, outputs: [drop: {}]}", "is 0; expected 1 or more"),
        ("fallback: []", "is empty; expected one output"),
        ("reject: ''", "an error message must be provided"),
        ("drop_on: {error: true, error_patterns: [x], output: {drop: {}}}", "is ineffective"),
        ("drop_on: {error_patterns: ['('], output: {drop: {}}}", "not a regular expression"),
    ],
)
def test_what_is_wrong_is_told(yaml, text):
    with pytest.raises(ConfigError, match=text):
        built(yaml)


def test_what_processors_have_failed_on_is_rejected():
    batch = [Message(b"a"), Message(b"b", error="bad"), Message(b"c")]
    taken = Scripted({"c": 1}, whole=False)
    sent = RejectErroredOutput(sender(taken)).deliver(
        [batch, [Message(b"d", error="worse")]], Seen().ex
    )
    assert taken.tries == ["ac"]
    assert [error and error.errors for error in sent.errors] == [
        {1: "rejecting due to failed processing: bad", 2: "no c"},
        {0: "rejecting due to failed processing: worse"},
    ]


def test_what_is_rejected_says_why():
    seen = Seen()
    sent = built("reject: 'no ${! content() }'").deliver(batches("a"), seen.ex)
    assert texts(sent) == ["no a"]
    # That a config asks for it is no news.
    assert seen.lines == [("DEBUG", "Rejecting message: no a")]


def test_a_rejected_message_falls_back_with_its_reason():
    sent = built(
        "fallback: [{reject: 'no ${! content() }'}, "
        "{stdout: {}, processors: [mapping: root = @fallback_error]}]"
    ).deliver(batches("a"), Seen().ex)
    assert texts(sent) == [None]
    assert [one.body for one in sent.written] == [b"no a\n"]


def test_an_output_is_retried_as_often_as_is_said():
    with http_server(lambda asked: Reply(500)) as server:
        output = built(
            "retry: {max_retries: 3, backoff: {initial_interval: 1ms, max_interval: 2ms}, "
            f"output: {{http_client: {{url: '{server.url}', retries: 0}}}}}}"
        )
        sent = output.deliver(batches("a"), Seen().ex)
    assert texts(sent) == ["message failed to reach a target destination"]
    assert len(server.asked) == 4


def drop_on(output, *, error=False, patterns=(), back_pressure=None) -> DropOnOutput:
    compiled = [compile_pattern(text) for text in patterns]
    return DropOnOutput(Sender(output, PLACE), error, compiled, back_pressure, ComponentRef(PLACE))


def test_what_fails_is_dropped():
    seen = Seen()
    output = drop_on(Scripted({"b": 9}), error=True)
    assert texts(output.deliver(batches("a", "b", "c"), seen.ex, hold=True)) == [None] * 3
    assert ("WARN", "Message dropped due to: no b") in seen.lines


def test_what_fails_for_a_named_reason_is_dropped():
    scripted = Scripted({"b": 9, "c": 9})
    output = drop_on(scripted, patterns=["^no b$", "x"])
    assert texts(output.deliver(batches("b", "c", "d"), Seen().ex)) == [None, "no c", None]
    held = output.deliver(batches("b", "c", "d"), Seen().ex, hold=True)
    assert held.errors[2] is not None and held.errors[2].not_tried


@pytest.mark.parametrize("error", [True, False])
def test_what_takes_too_long_is_dropped_until_the_output_is_ready_again(error):
    class Slow(Scripted):
        def __init__(self) -> None:
            super().__init__()
            self.ready = threading.Event()

        def send(self, batch: Batch, ex: Execution) -> None:
            self.ready.wait(60)
            super().send(batch, ex)

    slow, seen = Slow(), Seen()
    output = drop_on(slow, error=error, back_pressure=10**7)
    reason = None if error else "experienced back pressure beyond: 10ms"
    assert texts(output.deliver(batches("a", "b"), seen.ex)) == [reason] * 2
    assert seen.lines == [("WARN", "Message dropped due to back pressure.")] * 2
    slow.ready.set()
    assert output._late_batch is not None and output._late_batch.result(60).errors == [None]
    output._max_wait = 60 * 10**9
    assert texts(output.deliver(batches("c"), seen.ex)) == [None]
    assert slow.taken == ["a", "c"]


def test_messages_are_stored_under_their_keys(tmp_path):
    output = built(
        "cache: {target: here, key: '${! content() }'}",
        f"cache_resources: [{{label: here, file: {{directory: {tmp_path}}}}}]\n",
    )
    assert texts(output.deliver(batches("ab", "c"), Seen().ex)) == [None, None]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        name: name.encode() for name in "abc"
    }


def test_what_cannot_be_stored_has_failed(tmp_path):
    output = built(
        "cache: {target: here, key: '${! content() }', ttl: '${! content() }'}",
        f"cache_resources: [{{label: here, file: {{directory: {tmp_path}}}}}]\n",
    )
    [error] = output.deliver(batches("a"), Seen().ex).errors
    assert error is not None and error.text.startswith("ttl field: ")


def test_a_resource_gets_what_the_processors_beside_the_reference_have_made():
    sent = built(
        "broker: {outputs: [{resource: kept, processors: [mapping: 'root = content() + \"1\"']}, "
        "{resource: kept}]}",
        "output_resources: [{label: kept, stdout: {}, "
        "processors: [mapping: 'root = content() + \"2\"']}]\n",
    ).deliver(batches("a"), Seen().ex)
    assert [(one.leaf, one.body) for one in sent.written] == [
        ("output_resources.0", b"a12\n"),
        ("output_resources.0", b"a2\n"),
    ]
