"""The output `hdfs`, with a NameNode and a DataNode."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from streamer.core.errors import ConfigError
from streamer.core.message import Message
from streamer.core.permissions import NONE, NotPermittedError, limit_permissions
from streamer.sdk.output.each_message import ReceiverLostError
from streamer.sdk.output.rejection import Reason
from tests.components.outputs.scripted import Seen, built
from tests.servers import lasting_port
from tests.servers.hdfs import Hdfs


def deliver(output: Any, *batch: Message) -> Any:
    [error] = output.deliver([[*batch]], Seen().ex).errors
    return error


def send(fields: str, *batch: Message) -> Any:
    return deliver(built(f"hdfs: {{{fields}}}"), *batch)


@pytest.mark.slow
class TestFiles:
    def test_a_message_is_a_file_and_replaces_the_one_before(self, hdfs: Hdfs) -> None:
        fields = f"hosts: ['{hdfs.host}'], directory: '/out/${{! @k }}', path: 'a/${{! @k }} ä.txt'"
        large = bytes(range(256)) * 4096
        for text in (b"1", large):
            assert send(fields, Message(text, {"k": "v"})) is None
        assert hdfs.names("/out") == ["/out/v/a/v ä.txt"]
        assert hdfs.read("/out/v/a/v ä.txt") == large

    def test_paths_that_cannot_be_fail_alone(self, hdfs: Hdfs) -> None:
        assert send(f"hosts: ['{hdfs.host}'], directory: /bad, path: file", Message(b"1")) is None
        keys = ("a", "", "file/below", "b/", "x" * 300, "d")
        batch = [Message(b"1", {"k": key}) for key in keys]
        error = send(f"hosts: ['{hdfs.host}'], directory: /bad, path: '${{! @k }}'", *batch)
        assert {index: text.reason for index, text in error.errors.items()} == {
            1: Reason.INVALID,
            2: Reason.REFUSED,
            3: Reason.INVALID,
            4: Reason.REFUSED,
        }
        assert hdfs.names("/bad") == ["/bad/a", "/bad/d", "/bad/file"]

    def test_a_user_without_the_right_keeps_the_messages(self, hdfs: Hdfs) -> None:
        """Two users of one process write as themselves."""
        hdfs.client.mkdirs("/open", 0o777, False)
        hdfs.client.set_permission("/open", 0o777)
        own, other = (
            built(
                f"hdfs: {{hosts: ['{hdfs.host}'], user: '{user}', directory: '${{! @d }}', "
                f"path: '{user}-${{! counter() }}'}}"
            )
            for user in ("", "alice")
        )
        error = deliver(other, Message(b"1", {"d": "/closed"}))
        assert not error.is_rejected and "AccessControlException" in str(error)
        assert "user=alice" in str(error) and "\tat " not in str(error)
        for _ in range(2):
            assert deliver(own, Message(b"1", {"d": "/open"})) is None
            assert deliver(other, Message(b"1", {"d": "/open"})) is None
        owners = Counter(one.owner for one in hdfs.client.list_status("/open"))
        assert owners["alice"] == 1 and sum(owners.values()) == 2

    def test_several_hosts_are_one_cluster(self, hdfs: Hdfs) -> None:
        hosts = f"['127.0.0.1:{lasting_port()}', '{hdfs.host}']"
        assert send(f"hosts: {hosts}, directory: /second, path: a", Message(b"1")) is None
        assert hdfs.names("/second") == ["/second/a"]

    def test_nobody_answers(self) -> None:
        output = built(f"hdfs: {{hosts: ['127.0.0.1:{lasting_port()}'], directory: /}}")
        with pytest.raises(ReceiverLostError, match=r"hdfs://127\.0\.0\.1:\d+: "):
            output.probe()

    def test_ten_thousand_messages_each_once(self, hdfs: Hdfs) -> None:
        output = built(
            f"hdfs: {{hosts: ['{hdfs.host}'], directory: /many, path: '${{! counter() }}', "
            "batching: {count: 2500, processors: [{archive: {format: lines}}]}}"
        )
        batch = [Message(b'{"n":%d}' % number) for number in range(10_000)]
        assert deliver(output, *batch) is None
        lines = [line for name in hdfs.names("/many") for line in hdfs.read(name).splitlines()]
        assert Counter(lines) == Counter(message.raw for message in batch)

    def test_the_check_before_a_start(self, hdfs: Hdfs) -> None:
        assert built(f"hdfs: {{hosts: ['{hdfs.host}'], directory: /}}").probe() == (
            "the directory / is there"
        )
        assert built(f"hdfs: {{hosts: ['{hdfs.host}'], directory: /none}}").probe() == (
            "the directory /none will be made"
        )


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("hosts: [], directory: /", "is an empty list; expected at least one"),
        ("hosts: ['hdfs://a'], directory: /", "expected host:port of a NameNode"),
    ],
)
def test_fields_that_cannot_be(fields: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        built(f"hdfs: {{{fields}}}")


def test_the_identity_of_the_machine_is_out_of_reach_by_api() -> None:
    with limit_permissions(NONE), pytest.raises(NotPermittedError, match="set user"):
        built("hdfs: {hosts: ['localhost:9000'], directory: /}")
