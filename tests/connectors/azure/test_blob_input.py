"""The input `azure_blob_storage`, with Azurite."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.azure.blob_store import BlobStore
from streamer.connectors.objects.store import StoreError, StoreUnavailableError
from streamer.core.errors import ConfigError
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import batches_of, built, planned
from tests.connectors.objects.reading import check_reading, check_store, store_of
from tests.servers import lasting_port
from tests.servers.azurite import Azurite, azurite_server


def source(fields: str) -> Any:
    return built(f"input: {{azure_blob_storage: {{{fields}}}}}\n")


def put_into(container: Any) -> Any:
    def put(objects: Mapping[str, bytes]) -> None:
        for name, data in objects.items():
            container.upload_blob(name, data, overwrite=True)

    return put


@pytest.mark.slow
class TestBlobs:
    def test_ten_thousand_messages_each_once(
        self, azurite: Azurite, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put = put_into(azurite.make_container("read-many"))
        fields = f"{azurite.fields}, container: read-many"
        check_reading(lambda more: source(f"{fields}, {more}"), put, monkeypatch)

    def test_the_store(self, azurite: Azurite) -> None:
        put = put_into(azurite.make_container("store"))
        store = store_of(source(f"{azurite.fields}, container: store"))
        assert isinstance(store, BlobStore) and store.place == "azure://store"
        check_store(store, put)

    def test_the_metadata_of_messages(self, azurite: Azurite) -> None:
        container = azurite.make_container("described")
        container.upload_blob("a/ü", b"one", metadata={"who": "me"})
        of = source(f"{azurite.fields}, container: described")
        assert of.probe() == "azure://described has objects, the first is 'a/ü'"
        [(start, latest), _] = planned(of, Limit())
        [[message]] = batches_of(of, start, latest.offset)
        meta = dict(message.meta)
        assert meta.pop("blob_storage_last_modified").endswith("Z")
        assert meta.pop("blob_storage_last_modified_unix") > 1_700_000_000
        assert meta == {
            "blob_storage_key": "a/ü",
            "blob_storage_container": "described",
            "blob_storage_content_type": "application/octet-stream",
            "who": "me",
        }

    def test_wrong_credentials_and_containers_that_are_not_there(self, azurite: Azurite) -> None:
        wrong = azurite.connection_string("d3Jvbmctc2VjcmV0LWtleQ==")
        for fields in (
            f"storage_connection_string: '{wrong}', container: nowhere",
            f"{azurite.fields}, container: nowhere",
        ):
            with pytest.raises(StoreError) as caught:
                source(fields).probe()
            assert not isinstance(caught.value, StoreUnavailableError)
            assert "d3Jvbmct" not in str(caught.value)

    def test_a_server_that_was_killed_is_away_for_a_while(self, tmp_path: Path) -> None:
        port = lasting_port()
        with azurite_server(tmp_path, port) as server:
            server.make_container("ccc").upload_blob("a", b"1")
            store = store_of(source(f"{server.fields}, container: ccc"))
            assert store.open("a").stream.read(9) == b"1"
            server.process.kill()
            server.process.wait()
            with pytest.raises(StoreUnavailableError):
                store.list_page("", "")
        with azurite_server(tmp_path, port) as server:
            # It writes what it has every few seconds only.
            if "ccc" not in [one.name for one in server.client.list_containers()]:
                server.make_container("ccc").upload_blob("a", b"1")
            assert store.open("a").stream.read(9) == b"1"


def test_a_container_by_message_is_no_place_to_read() -> None:
    with pytest.raises(ConfigError, match="an input reads one container"):
        source("storage_account: a, container: '${! @c }'")
