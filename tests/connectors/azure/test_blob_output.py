"""The outputs `azure_blob_storage`, with Azurite, and `azure_data_lake_gen2`, with a stand-in."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from streamer.core.errors import ConfigError, StreamerError
from streamer.core.message import Message
from streamer.core.permissions import NONE, limit_permissions
from streamer.sdk.output.rejection import Reason
from tests.components.outputs.scripted import Seen, built
from tests.servers import lasting_port
from tests.servers.azurite import ACCOUNT, KEY, Azurite, azurite_server
from tests.servers.data_lake import data_lake


def deliver(output: Any, *batch: Message) -> Any:
    [error] = output.deliver([[*batch]], Seen().ex).errors
    return error


def send(fields: str, *batch: Message) -> Any:
    return deliver(built(f"azure_blob_storage: {{{fields}}}"), *batch)


@pytest.mark.slow
class TestBlobs:
    def test_a_container_is_made_and_a_blob_replaced(self, azurite: Azurite) -> None:
        fields = f"{azurite.fields}, container: 'new-${{! @k }}', path: 'a b/${{! @k }}ä.json'"
        for text in (b"1", b"22"):
            assert send(fields, Message(text, {"k": "v"})) is None
        assert azurite.names("new-v") == ["a b/vä.json"]
        assert azurite.read("new-v", "a b/vä.json") == b"22"

    def test_a_public_container(self, azurite: Azurite) -> None:
        fields = f"{azurite.fields}, container: public, path: a, public_access_level: BLOB"
        assert send(fields, Message(b"1")) is None
        access = azurite.client.get_container_client("public").get_container_access_policy()
        assert access["public_access"] == "blob"

    def test_messages_are_put_behind_each_other(self, azurite: Azurite) -> None:
        fields = f"{azurite.fields}, container: log, path: all, blob_type: APPEND"
        large = b"x" * (5 << 20)
        assert send(fields, Message(b"1"), Message(large), Message(b"3")) is None
        assert azurite.read("log", "all") == b"1" + large + b"3"
        # A blob of the other type is no place to append to, and that message alone is refused.
        block = f"{azurite.fields}, container: log, path: block"
        assert send(block, Message(b"1")) is None
        error = send(f"{block}, blob_type: APPEND", Message(b"2"))
        assert [text.reason for text in error.errors.values()] == [Reason.REFUSED]

    def test_what_cannot_be_a_blob_fails_alone(self, azurite: Azurite) -> None:
        batch = [
            Message(b"1", {"c": container, "k": key, "t": kind})
            for container, key, kind in (
                ("good", "a", "BLOCK"),
                ("good", "", "BLOCK"),
                ("good", "x" * 1025, "BLOCK"),
                ("Not_A_Name", "a", "BLOCK"),
                ("good", "a", "PAGE"),
                ("good", "b", "BLOCK"),
            )
        ]
        fields = "container: '${! @c }', path: '${! @k }', blob_type: '${! @t }'"
        error = send(f"{azurite.fields}, {fields}", *batch)
        assert {index: text.reason for index, text in error.errors.items()} == {
            1: Reason.INVALID,
            2: Reason.INVALID,
            3: Reason.REFUSED,
            4: Reason.INVALID,
        }
        assert azurite.names("good") == ["a", "b"]

    def test_wrong_credentials_keep_the_messages_and_are_not_shown(self, azurite: Azurite) -> None:
        wrong = azurite.connection_string("d3Jvbmctc2VjcmV0LWtleQ==")
        fields = f"storage_connection_string: '{wrong}', container: ccc"
        error = send(fields, Message(b"1"))
        assert [*error.errors] == [0] and not error.is_rejected
        assert "AuthorizationFailure" in str(error) or "AuthenticationFailed" in str(error)
        assert "d3Jvbmct" not in str(error) and "\n" not in str(error)
        with pytest.raises(StreamerError, match="Auth"):
            built(f"azure_blob_storage: {{{fields}}}").probe()

    def test_a_signature_for_a_container_and_for_the_account(self, azurite: Azurite) -> None:
        from datetime import UTC, datetime, timedelta

        from azure.storage.blob import (
            AccountSasPermissions,
            ContainerSasPermissions,
            ResourceTypes,
            generate_account_sas,
            generate_container_sas,
        )

        azurite.make_container("signed")
        expiry = datetime.now(UTC) + timedelta(hours=1)
        tokens = (
            generate_container_sas(
                ACCOUNT,
                "signed",
                account_key=KEY,
                permission=ContainerSasPermissions(write=True, create=True),
                expiry=expiry,
            ),
            generate_account_sas(
                ACCOUNT,
                KEY,
                ResourceTypes(object=True),
                AccountSasPermissions(write=True, create=True),
                expiry,
            ),
        )
        for number, token in enumerate(tokens):
            text = f"BlobEndpoint={azurite.url};SharedAccessSignature={token}"
            fields = f"storage_account: {ACCOUNT}, storage_connection_string: '{text}'"
            assert send(f"{fields}, container: signed, path: '{number}'", Message(b"1")) is None
            assert azurite.read("signed", str(number)) == b"1"
            error = send(f"{fields}, container: unsigned, path: a", Message(b"1"))
            assert not error.is_rejected and "sig=" not in str(error)

    def test_ten_thousand_messages_each_once(self, azurite: Azurite) -> None:
        output = built(
            f"azure_blob_storage: {{{azurite.fields}, container: many, path: '${{! @n }}', "
            "blob_type: APPEND}"
        )
        lines = [b'{"n":%d}\n' % number for number in range(10_000)]
        batch = [
            Message(b"".join(lines[start : start + 100]), {"n": str(start % 7)})
            for start in range(0, 10_000, 100)
        ]
        assert deliver(output, *batch) is None
        found = b"".join(azurite.read("many", name) for name in azurite.names("many"))
        assert Counter(found.splitlines(keepends=True)) == Counter(lines)

    def test_it_goes_on_after_the_server_was_killed(self, tmp_path: Path) -> None:
        port = lasting_port()
        with azurite_server(tmp_path, port) as server:
            output = built(
                f"azure_blob_storage: {{{server.fields}, container: ccc, "
                "path: '${! content() }'}"
            )
            assert deliver(output, Message(b"1")) is None
            server.process.kill()
            server.process.wait()
            error = deliver(output, Message(b"2"))
            assert [*error.errors] == [0] and not error.is_rejected
        with azurite_server(tmp_path, port) as server:
            assert deliver(output, Message(b"2")) is None
            assert server.read("ccc", "2") == b"2"

    def test_the_emulator_of_this_machine(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, azurite: Azurite
    ) -> None:
        monkeypatch.setenv("AZURITE_BLOB_ENDPOINT_PORT", str(azurite.port))
        output = built(
            "azure_blob_storage: {storage_connection_string: 'UseDevelopmentStorage=true;', "
            "container: ccc}"
        )
        # This one knows another account, so it answers that it does not know this one.
        with pytest.raises(StreamerError, match="ResourceNotFound"):
            output.probe()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("container: c", "needs storage_account or storage_connection_string"),
        (
            "container: c, storage_connection_string: AccountKey=a",
            "the connection string has no AccountName",
        ),
        ("container: c, storage_connection_string: a", "is no connection string"),
        ("container: c, storage_account: a, blob_type: PAGE", "expected BLOCK or APPEND"),
    ],
)
def test_fields_that_cannot_be(fields: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        built(f"azure_blob_storage: {{{fields}}}")


def test_credentials_of_the_machine_are_out_of_reach_by_api() -> None:
    with limit_permissions(NONE):
        output = built("azure_blob_storage: {storage_account: a, container: c}")
    error = deliver(output, Message(b"1"))
    assert "out of reach for configs that come by API" in str(error)


def lake_send(fields: str, *batch: Message) -> Any:
    return deliver(built(f"azure_data_lake_gen2: {{{fields}}}"), *batch)


def test_a_message_is_a_file_of_the_lake() -> None:
    with data_lake() as lake:
        fields = f"storage_connection_string: '{lake.connection_string}', filesystem: lake"
        large = bytes(range(256)) * 1024
        assert lake_send(f"{fields}, path: 'a b/${{! @k }}'", Message(large, {"k": "ä"})) is None
        assert lake.files == {"lake/a b/ä": large}
        assert all(key.startswith("SharedKey streamertest:") for key in lake.keys)
        for text in (b"1", b"22"):
            assert lake_send(f"{fields}, path: again", Message(text)) is None
        assert lake.files["lake/again"] == b"22"
        output = built(f"azure_data_lake_gen2: {{{fields}}}")
        assert output.probe() == "the filesystem is there"


def test_files_that_the_lake_refuses_fail_alone() -> None:
    with data_lake() as lake:
        lake.refused = {"dir": "PathConflict"}
        fields = f"storage_connection_string: '{lake.connection_string}'"
        batch = [Message(b"1", {"k": key}) for key in ("a", "dir", "/", "d")]
        error = lake_send(f"{fields}, filesystem: lake, path: '${{! @k }}'", *batch)
        assert {index: text.reason for index, text in error.errors.items()} == {
            1: Reason.REFUSED,
            2: Reason.INVALID,
        }
        assert {*lake.files} == {"lake/a", "lake/d"}
        batch = [Message(b"1", {"f": name}) for name in ("lake", "none", "lake")]
        error = lake_send(f"{fields}, filesystem: '${{! @f }}', path: x", *batch)
        assert [*error.errors] == [1] and error.is_rejected
        error = lake_send(f"{fields}, filesystem: none, path: x", *batch)
        assert [*error.errors] == [0, 1, 2] and not error.is_rejected
        with pytest.raises(StreamerError, match="there is no filesystem 'none'"):
            built(f"azure_data_lake_gen2: {{{fields}, filesystem: none}}").probe()
