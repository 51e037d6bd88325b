"""The input and the cache `gcp_cloud_storage`, with fake-gcs-server."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.google.storage import EMULATOR
from streamer.connectors.google.storage_store import CloudStorageStore
from streamer.connectors.objects.store import StoreError, StoreUnavailableError
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import batches_of, built, planned
from tests.connectors.objects.reading import check_reading, check_store, everything, store_of
from tests.servers import lasting_port
from tests.servers.cloud_storage import CloudStorage, cloud_storage_server


def source(fields: str) -> Any:
    return built(f"input: {{gcp_cloud_storage: {{{fields}}}}}\n")


@pytest.mark.slow
class TestObjects:
    def test_ten_thousand_messages_each_once(
        self, gcs: CloudStorage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bucket = gcs.make_bucket("read-many")

        def put(objects: Mapping[str, bytes]) -> None:
            for name, data in objects.items():
                gcs.write(bucket, name, data)

        check_reading(lambda more: source(f"bucket: {bucket}, {more}"), put, monkeypatch)

    def test_the_store(self, gcs: CloudStorage) -> None:
        bucket = gcs.make_bucket("store")

        def put(objects: Mapping[str, bytes]) -> None:
            for name, data in objects.items():
                gcs.write(bucket, name, data)

        store = store_of(source(f"bucket: {bucket}"))
        assert isinstance(store, CloudStorageStore) and store.place == "gs://store"
        check_store(store, put)

    def test_the_metadata_of_messages(self, gcs: CloudStorage) -> None:
        bucket = gcs.make_bucket("described")
        gcs.write(bucket, "a/ü", b"one")
        of = source(f"bucket: {bucket}")
        assert of.probe() == "gs://described has objects, the first is 'a/ü'"
        [(start, latest), _] = planned(of, Limit())
        [[message]] = batches_of(of, start, latest.offset)
        meta = dict(message.meta)
        assert meta.pop("gcs_last_modified").endswith("Z")
        assert meta.pop("gcs_last_modified_unix") > 1_700_000_000
        assert meta.pop("gcs_content_type") in ("application/json", "application/octet-stream")
        assert {name: meta[name] for name in ("gcs_key", "gcs_bucket")} == {
            "gcs_key": "a/ü",
            "gcs_bucket": "described",
        }

    def test_objects_whose_encoding_is_gzip_are_read_by_ranges_as_they_are_stored(
        self, gcs: CloudStorage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bucket = gcs.make_bucket("encoded")
        lines = [b'{"n":%d}' % number for number in range(20_000)]
        stored = gzip.compress(b"\n".join(lines))
        gcs.write(bucket, "a.json.gz", stored, encoding="gzip")
        # A request without gzip gets all of it decompressed, whatever its range is.
        assert gcs.read(bucket, "a.json.gz") == b"\n".join(lines)
        monkeypatch.setattr("streamer.connectors.google.storage_store._RANGE_BYTES", 10_000)
        of = source(
            f"bucket: {bucket}, scanner: {{decompress: {{algorithm: gzip, into: {{lines: {{}}}}}}}}"
        )
        assert sorted(everything(of)) == sorted(lines)
        store = store_of(of)
        assert store.open("a.json.gz", 100, 250).stream.read(999) == stored[100:250]
        [(start, latest), _] = planned(of, Limit())
        [[message], *_] = batches_of(of, start, latest.offset)
        assert message.meta["gcs_content_encoding"] == "gzip"

    def test_a_bucket_that_is_not_there(self, gcs: CloudStorage) -> None:
        with pytest.raises(StoreError) as caught:
            source("bucket: nowhere").probe()
        assert not isinstance(caught.value, StoreUnavailableError)

    def test_a_server_that_was_killed_is_away_for_a_while(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        port = lasting_port()
        monkeypatch.setenv(EMULATOR, f"127.0.0.1:{port}")
        store = store_of(source("bucket: bbb"))
        with cloud_storage_server(tmp_path, port) as server:
            server.make_bucket("bbb")
            server.write("bbb", "a", b"1")
            assert store.open("a").stream.read(9) == b"1"
            server.process.kill()
            server.process.wait()
            with pytest.raises(StoreUnavailableError):
                store.list_page("", "")
        with cloud_storage_server(tmp_path, port) as server:
            assert store.open("a").stream.read(9) == b"1"
