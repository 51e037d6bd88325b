"""`aws_lambda`, with a function that a test answers for, and with a simulated Lambda."""

from __future__ import annotations

import io
import threading
from typing import Any

import pytest

from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import AwsError
from streamer.core.message import Message
from tests.connectors.aws.sending import process
from tests.servers.aws import Aws


class _Function:
    """A function that turns letters into capitals, and does not answer so often at first."""

    def __init__(self) -> None:
        self.failures = 0
        self.calls: list[bytes] = []
        self.together: threading.Barrier | None = None

    def invoke(self, FunctionName: str, Payload: bytes) -> Any:  # noqa: N803
        if self.together is not None:
            self.together.wait(60)
        self.calls.append(Payload)
        if self.failures:
            self.failures -= 1
            raise AwsError("busy", "TooManyRequestsException")
        if Payload == b"bad":
            raise AwsError("no JSON", "InvalidRequestContentException")
        if Payload == b"throws":
            text = io.BytesIO(b'{"errorMessage":"no"}')
            return {"Payload": text, "FunctionError": "Unhandled"}
        return {"Payload": io.BytesIO(Payload.upper())}


@pytest.fixture
def function(monkeypatch: pytest.MonkeyPatch) -> _Function:
    service = _Function()
    monkeypatch.setattr(AwsClient, "run", lambda self, work: work(service))
    return service


def test_answers_take_the_place_of_messages(function: _Function) -> None:
    batch = [Message(b"a", {"m": 1}), Message(b"throws"), Message(b"bad"), Message(b"d")]
    good, thrown, bad, last = process("aws_lambda: {function: f}", *batch)
    assert (good.raw, good.meta["m"], last.raw) == (b"A", 1, b"D")
    assert thrown.doc == {"errorMessage": "no"} and thrown.error is None
    assert thrown.meta["lambda_function_error"] == "Unhandled"
    assert bad.raw == b"bad" and bad.error == "no JSON"
    assert function.calls.count(b"bad") == 1


@pytest.mark.parametrize(("failures", "is_marked"), [(2, False), (3, True)])
def test_an_invocation_is_tried_again(function: _Function, failures: int, is_marked: bool) -> None:
    function.failures = failures
    [made] = process("aws_lambda: {function: f, retries: 2}", Message(b"a"))
    assert (made.error == "busy") is is_marked
    assert made.raw == (b"a" if is_marked else b"A")
    assert len(function.calls) == 3


def test_invocations_at_once(function: _Function) -> None:
    function.together = threading.Barrier(3)
    batch = [Message(b"a"), Message(b"b"), Message(b"c")]
    made = process("aws_lambda: {function: f, parallel: true}", *batch)
    assert [one.raw for one in made] == [b"A", b"B", b"C"]


@pytest.mark.slow
def test_a_function_that_is_not_there(aws: Aws) -> None:
    [made] = process(f"aws_lambda: {{function: nowhere, {aws.fields}, retries: 0}}", Message(b"{}"))
    assert "ResourceNotFoundException" in (made.error or "")
