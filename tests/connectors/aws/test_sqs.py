"""`aws_sqs`: the input and the output, with a simulated SQS."""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.aws.errors import AwsError
from streamer.connectors.aws.output_base import RecordFailure
from streamer.connectors.aws.queue import Queue, VisibilityKeeper
from streamer.core.errors import ConfigError
from streamer.core.message import Message
from streamer.sdk.output.rejection import Reason, Rejection
from tests.components.inputs.landing import receiving
from tests.components.outputs.scripted import Seen, batches, built
from tests.connectors.aws.sending import send
from tests.servers import lasting_port
from tests.servers.aws import Aws, aws_server


def make_queue(aws: Aws, name: str, **attributes: str) -> str:
    answer = aws.client("sqs").create_queue(QueueName=name, Attributes=attributes)
    return str(answer["QueueUrl"])


def left(aws: Aws, url: str) -> tuple[int, int]:
    """Return how many messages of a queue wait, and how many are held by a receiver."""
    names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
    client = aws.client("sqs")
    found = client.get_queue_attributes(QueueUrl=url, AttributeNames=list(names))["Attributes"]
    return int(found[names[0]]), int(found[names[1]])


@pytest.mark.slow
class TestQueue:
    def test_what_is_sent_is_received_once_and_deleted(self, aws: Aws, tmp_path: Path) -> None:
        url = make_queue(aws, "round")
        output = f"aws_sqs: {{url: '{url}', {aws.fields}, metadata: {{exclude_prefixes: [x_]}}}}"
        given = [
            Message(f"{n}".encode(), {"n": n, "x_no": "x", "bad name": "x", "empty": ""})
            for n in range(25)
        ]
        assert send(output, given) is None
        config = f"aws_sqs: {{url: '{url}', {aws.fields}}}"
        with receiving(tmp_path, config) as taken:
            assert sorted(map(int, taken.raws(25))) == list(range(25))
            taken.until(lambda _: left(aws, url) == (0, 0))
            first = dict(taken.messages[0].meta)
            assert first.pop("sqs_message_id") and first.pop("sqs_receipt_handle")
            assert first == {
                "n": taken.messages[0].raw.decode(),
                "sqs_approximate_receive_count": "1",
            }

    def test_what_could_not_be_deleted_is_left_out_when_it_comes_again(
        self, aws: Aws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(self: Any, messages: Any) -> dict[str, str]:
            raise AwsError("the connection is lost")

        url = make_queue(aws, "again")
        output = f"aws_sqs: {{url: '{url}', {aws.fields}}}"
        config = f"aws_sqs: {{url: '{url}', {aws.fields}, message_timeout: 1s}}"
        assert send(output, [Message(b"a"), Message(b"b")]) is None
        with monkeypatch.context() as patched, receiving(tmp_path, config) as taken:
            patched.setattr(Queue, "delete", fail)
            assert sorted(taken.raws(2)) == ["a", "b"]
            taken.counted("input_connection_lost")
        # The next start knows them by their IDs, and deletes them.
        assert send(output, [Message(b"c")]) is None
        with receiving(tmp_path, config) as taken:
            assert sorted(taken.raws(3)) == ["a", "b", "c"]
            taken.until(lambda _: left(aws, url) == (0, 0))
            assert len(taken.messages) == 3

    def test_messages_stay_that_are_not_to_be_deleted(self, aws: Aws, tmp_path: Path) -> None:
        url = make_queue(aws, "stay")
        assert send(f"aws_sqs: {{url: '{url}', {aws.fields}}}", [Message(b"a")]) is None
        fields = "message_timeout: 1s, delete_message: false"
        with receiving(tmp_path, f"aws_sqs: {{url: '{url}', {aws.fields}, {fields}}}") as taken:
            assert taken.raws(2) == ["a", "a"]
        assert taken.messages[1].meta["sqs_approximate_receive_count"] == "2"

    def test_a_bad_message_fails_alone(self, aws: Aws) -> None:
        url = make_queue(aws, "bad")
        batch = [Message(one) for one in (b"0", b"", b"\xff", b"\x00", b"x" * 1_100_000, b"5")]
        error = send(f"aws_sqs: {{url: '{url}', {aws.fields}}}", batch)
        assert error.is_rejected
        assert {index: text.reason for index, text in error.errors.items()} == {
            1: Reason.INVALID,
            2: Reason.INVALID,
            3: Reason.INVALID,
            4: Reason.TOO_LARGE,
        }
        assert left(aws, url) == (2, 0)

    def test_groups_of_a_fifo_queue(self, aws: Aws, tmp_path: Path) -> None:
        url = make_queue(aws, "order.fifo", FifoQueue="true")
        fields = "message_group_id: '${! @g }', message_deduplication_id: '${! content() }'"
        batch = [Message(f"{n}".encode(), {"g": f"{n % 2}"}) for n in (0, 1, 2, 3, 2, 5)]
        batch.append(Message(b"6", {"g": ""}))
        error = send(f"aws_sqs: {{url: '{url}', {aws.fields}, {fields}}}", batch)
        assert [*error.errors.values()] == ["message_group_id is empty"] and error.is_rejected
        with receiving(tmp_path, f"aws_sqs: {{url: '{url}', {aws.fields}}}") as taken:
            raws = taken.raws(5)
        assert [raw for raw in raws if int(raw) % 2] == ["1", "3", "5"]
        assert [raw for raw in raws if not int(raw) % 2] == ["0", "2"]

    def test_a_server_that_comes_back(self, tmp_path: Path) -> None:
        port = lasting_port()
        aws = Aws(port)
        with aws_server(port):
            url = make_queue(aws, "back")
        fields = f"{aws.fields}, backoff: {{max_elapsed_time: 1ns}}"
        output = built(f"aws_sqs: {{url: '{url}', {fields}}}")
        with receiving(tmp_path, f"aws_sqs: {{url: '{url}', {aws.fields}}}") as taken:
            with aws_server(port):
                taken.counted("input_connection_up")
                assert output.deliver(batches("a"), Seen().ex).errors == [None]
                assert taken.raws(1) == ["a"]
            taken.counted("input_connection_lost")
            with pytest.raises(AwsError, match="Could not connect"):
                output.probe()
            with aws_server(port):
                taken.counted("input_connection_up", 2)
                assert output.deliver(batches("c"), Seen().ex).errors == [None]
                assert taken.raws(2) == ["a", "c"]
                assert output.probe() == "the queue is there"

    def test_a_queue_that_is_not_there(self, aws: Aws) -> None:
        fields = f"url: '{aws.url}/1/nowhere', {aws.fields}"
        with pytest.raises(AwsError, match="(?i)does not exist") as caught:
            built(f"aws_sqs: {{{fields}}}").probe()
        assert caught.value.absent


class _ScriptedSqs:
    """A queue that answers as it is told: for each request, what fails by payload."""

    def __init__(self) -> None:
        self.answers: list[dict[str, str]] = []
        self.requests: list[list[str]] = []
        self.waiting: deque[str] = deque()
        self.held: dict[str, str] = {}

    def get_queue_attributes(self, **_: Any) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        pass

    def receive_message(self, MaxNumberOfMessages: int, **_: Any) -> Any:  # noqa: N803
        found = []
        while self.waiting and len(found) < MaxNumberOfMessages:
            body = self.waiting.popleft()
            self.held[f"handle {body}"] = body
            found.append({"MessageId": body, "ReceiptHandle": f"handle {body}", "Body": body})
        return {"Messages": found}

    def delete_message_batch(self, Entries: Any, **_: Any) -> Any:  # noqa: N803
        for one in Entries:
            del self.held[one["ReceiptHandle"]]
        return {}

    def send_message_batch(self, QueueUrl: str, Entries: Any) -> Any:  # noqa: N803
        self.requests.append([one["MessageBody"] for one in Entries])
        failed = self.answers.pop(0) if self.answers else {}
        bodies = {one["MessageBody"]: one["Id"] for one in Entries}
        self.waiting += [body for body in bodies if body not in failed]
        return {"Failed": [{"Id": bodies[b], "Code": c} for b, c in failed.items()]}


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> _ScriptedSqs:
    from streamer.connectors.aws.client import AwsClient

    service = _ScriptedSqs()
    monkeypatch.setattr(AwsClient, "run", lambda self, work: work(service))
    return service


def test_what_a_queue_does_not_take_for_now_is_sent_again_alone(scripted: _ScriptedSqs) -> None:
    scripted.answers = [{"b": "InternalError", "c": "InvalidMessageContents"}, {"b": "Throttled"}]
    error = send("aws_sqs: {url: 'http://a/1/q'}", [Message(b"a"), Message(b"b"), Message(b"c")])
    assert scripted.requests == [["a", "b", "c"], ["b"], ["b"]]
    assert [*error.errors] == [2] and error.is_rejected


def test_the_end_of_the_tries_leaves_what_was_not_taken(scripted: _ScriptedSqs) -> None:
    scripted.answers = [{"b": "InternalError"}] * 3
    yaml = "aws_sqs: {url: 'http://a/1/q', max_retries: 2, max_records_per_request: 2}"
    error = send(yaml, [Message(b"a"), Message(b"b"), Message(b"c")])
    assert scripted.requests == [["a", "b"], ["b"], ["b"], ["c"]]
    assert error.errors == {1: "InternalError"} and not error.is_rejected


def test_ten_thousand_messages(scripted: _ScriptedSqs, tmp_path: Path) -> None:
    # The simulated SQS takes a time that grows with the square of the messages in a queue.
    batch = [Message(f"{n}".encode()) for n in range(10_000)]
    assert send("aws_sqs: {url: 'http://a/1/q'}", batch) is None
    assert len(scripted.requests) == 1_000
    with receiving(tmp_path, "aws_sqs: {url: 'http://a/1/q'}") as taken:
        assert taken.raws(10_000) == [f"{n}" for n in range(10_000)]
        taken.until(lambda _: not scripted.held)


def test_requests_stay_below_the_limits(scripted: _ScriptedSqs) -> None:
    batch = [Message(b"%d" % n * 100_000) for n in range(5)] + [
        Message(b"y" * 300_000),
        Message(b"z"),
    ]
    assert send("aws_sqs: {url: 'http://a/1/q'}", batch) is None
    assert [len(request) for request in scripted.requests] == [2, 2, 1, 1, 1]


def test_the_timeout_of_what_is_held_is_renewed_after_half_of_it() -> None:
    renewed: list[list[str]] = []
    seen = threading.Event()

    def renew(handles: Any) -> None:
        renewed.append(list(handles))
        seen.set()

    keeper = VisibilityKeeper(renew, 0.2)
    keeper.hold(["a", "b"])
    keeper.release(["a"])
    assert seen.wait(60)
    keeper.close()
    assert renewed[0] == ["b"]
    assert RecordFailure("x").is_content is False


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ("input: {aws_sqs: {url: 'http://a/b', wait_time_seconds: 21}}", "expected 0 to 20"),
        ("input: {aws_sqs: {url: 'http://a/b', message_timeout: 0s}}", "from 1s to 12h"),
        ("input: {aws_sqs: {url: 'a b'}}", "expected a URL such as http"),
        ("input: {aws_sqs: {url: 'http://a/b', credentials: {id: x}}}", "need each other"),
        ("output: {aws_sqs: {url: 'http://a/b', endpoint: 'a'}}", "expected a URL such as http"),
        ("output: {aws_sqs: {url: 'http://a/b', max_records_per_request: 11}}", "expected 1 to 10"),
    ],
)
def test_what_cannot_work_is_refused_before_it_runs(config: str, text: str) -> None:
    from streamer.config import parse_config

    with pytest.raises(ConfigError, match=text):
        parse_config(config)


def test_a_delay_is_a_whole_number(scripted: _ScriptedSqs) -> None:
    yaml = "aws_sqs: {url: 'http://a/1/q', delay_seconds: '${! content() }'}"
    error = send(yaml, [Message(b"x")])
    text = error.errors[0]
    assert isinstance(text, Rejection) and "expected a whole number from 0 to 900" in text
