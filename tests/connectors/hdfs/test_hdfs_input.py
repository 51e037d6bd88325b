"""The input `hdfs`, with a NameNode and a DataNode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from streamer.connectors.hdfs.directory_store import HdfsStore, order_name
from streamer.connectors.objects.store import StoreUnavailableError
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import batches_of, built, planned
from tests.connectors.objects.reading import check_reading, check_store, store_of
from tests.servers import lasting_port
from tests.servers.hdfs import Hdfs


def source(fields: str) -> Any:
    return built(f"input: {{hdfs: {{{fields}}}}}\n")


def put_into(hdfs: Hdfs, directory: str) -> Any:
    hdfs.client.mkdirs(directory, 0o755, True)

    def put(objects: Mapping[str, bytes]) -> None:
        for name, data in objects.items():
            hdfs.write(f"{directory}/{name}", data)

    return put


@pytest.mark.slow
class TestFiles:
    def test_ten_thousand_messages_each_once(
        self, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put = put_into(hdfs, "/in")
        fields = f"hosts: ['{hdfs.host}'], directory: /in"
        check_reading(lambda more: source(f"{fields}, {more}"), put, monkeypatch)

    def test_the_store(self, hdfs: Hdfs) -> None:
        put = put_into(hdfs, "/store")
        # Directories are left out, with what is in them.
        hdfs.write("/store/a0/below", b"x")
        store = store_of(source(f"hosts: ['{hdfs.host}'], directory: /store"))
        assert isinstance(store, HdfsStore)
        check_store(store, put, order_name)

    def test_a_file_is_a_message_with_its_metadata(self, hdfs: Hdfs) -> None:
        put_into(hdfs, "/whole")({"a ü": b"1\n2"})
        of = source(f"hosts: ['{hdfs.host}'], directory: /whole")
        [(start, latest), _] = planned(of, Limit())
        [[message]] = batches_of(of, start, latest.offset)
        assert message.raw == b"1\n2"
        assert dict(message.meta) == {"hdfs_name": "a ü", "hdfs_path": "/whole/a ü"}


def test_nobody_answers() -> None:
    with pytest.raises(StoreUnavailableError):
        store_of(source(f"hosts: ['127.0.0.1:{lasting_port()}'], directory: /")).list_page("", "")
