"""What a service's streams must be after calls that overlapped."""

from __future__ import annotations

import pytest

from tests.proof.scenarios.calls import Call, check_answer, check_end
from tests.proof.verdict import ProofError


def call(number: int, method: str, sent: float, answered: float, status: int = 200) -> Call:
    return Call(number, "a", method, sent, answered, status, "")


MADE, REMOVED = call(1, "POST", 0, 3), call(2, "DELETE", 2, 5)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (None, []),
        ("call-1-", [MADE]),
        (None, [MADE, REMOVED]),
        ("call-3-", [MADE, REMOVED, call(3, "POST", 4, 9)]),
        # They overlap: either may have been the last.
        ("call-3-", [MADE, call(3, "PUT", 4, 9), call(4, "PUT", 5, 8)]),
        ("call-4-", [MADE, call(3, "PUT", 4, 9), call(4, "PUT", 5, 8)]),
    ],
)
def test_what_calls_may_have_come_to(text: str | None, calls: list[Call]) -> None:
    check_end("a", text, calls)


@pytest.mark.parametrize(
    ("text", "calls", "why"),
    [
        (None, [MADE], "made 1 times and removed 0 times, and is not there"),
        ("call-1-", [MADE, REMOVED], "and is there"),
        ("call-3-", [MADE, call(3, "PUT", 4, 5, 404)], "what no call has made it"),
        ("call-1-", [MADE, call(3, "PUT", 4, 5)], "not what the last calls"),
        (None, [MADE, REMOVED, call(3, "PUT", 6, 7)], "not what the last calls"),
    ],
)
def test_what_they_cannot_have_come_to(text: str | None, calls: list[Call], why: str) -> None:
    with pytest.raises(ProofError, match=why):
        check_end("a", text, calls)


def test_an_answer_that_a_call_cannot_have() -> None:
    for status in (500, 502, 404):
        with pytest.raises(ProofError, match=f"POST /streams/a: {status}"):
            check_answer(call(1, "POST", 0, 1, status))
