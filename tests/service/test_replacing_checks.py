"""What is looked at before a revision may take the place of another one."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from streamer.config import parse_config
from streamer.plan import Plan, make_plan
from streamer.service.run.revision_switch import DeployError, check_connections


def plan(text: str) -> Plan:
    return make_plan(parse_config(text, "a.yaml"))


@pytest.fixture
def taken() -> Iterator[str]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield f"127.0.0.1:{server.getsockname()[1]}"


def served(address: str, path: str = "/a") -> str:
    return (
        f"input: {{http_server: {{address: '{address}', path: {path}}}}}\noutput: {{drop: {{}}}}\n"
    )


def test_what_runs_is_not_tried_again(taken: str) -> None:
    check_connections(plan(served(taken)), plan(served(taken)))


def test_an_address_that_the_stream_itself_listens_on_is_no_obstacle(taken: str) -> None:
    check_connections(plan(served(taken, "/b")), plan(served(taken)))


def test_an_address_that_somebody_else_listens_on_is_one(taken: str) -> None:
    with pytest.raises(DeployError, match=f"does not connect.*{taken}"):
        check_connections(plan(served(taken)), plan(served("127.0.0.1:0")))


def test_a_file_that_is_missing_is_one() -> None:
    missing = "input: {file: {paths: [/nope.jsonl]}}\noutput: {drop: {}}\n"
    with pytest.raises(DeployError, match="/nope.jsonl"):
        check_connections(plan(missing), plan("input: {stdin: {}}\n"))


def test_the_standard_input_is_read_in_one_way() -> None:
    lines, words = "input: {stdin: {}}\n", "input: {stdin: {scanner: {re_match: {pattern: ' '}}}}\n"
    check_connections(plan(lines + "output: {drop: {}}\n"), plan(lines))
    with pytest.raises(DeployError, match="standard input.*start it again"):
        check_connections(plan(words), plan(lines))
