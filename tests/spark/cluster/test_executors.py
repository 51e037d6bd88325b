"""What is said of a cluster's executors, as they come and go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamer.spark.cluster.executors import Executor, ExecutorLog

THERE = Executor("1", "host-1", active=True, excluded=False)


def said_of(*looks: Executor) -> list[tuple[str, str, Mapping[str, Any]]]:
    said: list[tuple[str, str, Mapping[str, Any]]] = []
    roll = ExecutorLog(lambda *line: said.append(line), [THERE])
    for look in looks:
        roll.log_changes([look])
    return said


def test_nothing_is_said_of_those_that_stay() -> None:
    assert said_of(THERE, THERE) == []


def test_one_that_goes_is_named_once_and_why() -> None:
    gone = THERE._replace(active=False, reason="Executor heartbeat timed out after 36000 ms")
    fields = {"executor": "1", "host": "host-1", "reason": gone.reason}
    assert said_of(gone, gone) == [("WARN", "An executor is gone", fields)]


def test_one_that_comes_is_named() -> None:
    new = THERE._replace(name="2", host="host-2")
    assert said_of(new, new) == [
        ("INFO", "An executor has come", {"executor": "2", "host": "host-2"})
    ]


def test_one_that_comes_and_goes_between_two_looks_is_named() -> None:
    new = THERE._replace(name="2", active=False)
    assert [text for _, text, _ in said_of(new)] == ["An executor is gone"]


def test_one_that_is_passed_over_is_named_and_when_that_is_over() -> None:
    passed = THERE._replace(excluded=True)
    fields = {"executor": "1", "host": "host-1"}
    text = "An executor gets no tasks for a while: too many have failed there"
    assert said_of(passed, passed, THERE) == [
        ("WARN", text, fields),
        ("INFO", "An executor gets tasks again", fields),
    ]
