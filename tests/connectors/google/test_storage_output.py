"""The output `gcp_cloud_storage`, with fake-gcs-server."""

from __future__ import annotations

import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from streamer.connectors.google.storage import EMULATOR
from streamer.core.errors import StreamerError
from streamer.core.message import Message
from streamer.sdk.output.rejection import Reason
from tests.components.outputs.scripted import Seen, built
from tests.servers import lasting_port
from tests.servers.cloud_storage import CloudStorage, cloud_storage_server
from tests.servers.http import Asked, Reply, http_server


def send(fields: str, *batch: Message) -> Any:
    [error] = built(f"gcp_cloud_storage: {{{fields}}}").deliver([[*batch]], Seen().ex).errors
    return error


@pytest.mark.slow
class TestObjects:
    def test_a_message_is_an_object_with_its_metadata(self, gcs: CloudStorage) -> None:
        bucket = gcs.make_bucket("objects")
        fields = f"bucket: {bucket}, path: 'a/${{! @k }} b.json', content_type: application/json"
        meta = {"k": "vä", "n": 7}
        assert send(f"{fields}, content_encoding: identity", Message(b'{"id":1}', meta)) is None
        assert gcs.read(bucket, "a/vä b.json") == b'{"id":1}'
        about = gcs.about(bucket, "a/vä b.json")
        assert about["contentType"] == "application/json"
        assert about["contentEncoding"] == "identity"
        assert about["metadata"] == {"k": "vä", "n": "7"}

    @pytest.mark.parametrize("size", [0, 262144, 262145, 1_000_000])
    def test_a_large_message_is_sent_in_parts(self, gcs: CloudStorage, size: int) -> None:
        data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
        bucket = gcs.make_bucket(f"large{size}")
        assert send(f"bucket: {bucket}, path: large, chunk_size: 262144", Message(data)) is None
        assert gcs.read(bucket, "large") == data

    def test_the_ways_to_treat_an_object_that_is_there(self, gcs: CloudStorage) -> None:
        bucket = gcs.make_bucket("collisions")
        fields = f"bucket: {bucket}, path: '${{! @m }}', collision_mode: '${{! @m }}'"
        modes = ("overwrite", "append", "ignore", "error-if-exists", "other")
        batches = [[Message(text, {"m": mode}) for mode in modes] for text in (b"1", b"2")]
        first, second = (send(fields, *batch) for batch in batches)
        assert {index: text.reason for index, text in first.errors.items()} == {4: Reason.INVALID}
        assert {index: text.reason for index, text in second.errors.items()} == {
            3: Reason.REFUSED,
            4: Reason.INVALID,
        }
        assert "'error-if-exists' is there already" in second.errors[3]
        contents = {mode: gcs.read(bucket, mode) for mode in modes[:4]}
        assert contents == {
            "overwrite": b"2",
            "append": b"12",
            "ignore": b"1",
            "error-if-exists": b"1",
        }
        # Nothing that was on its way is left.
        assert sorted(gcs.names(bucket)) == sorted(modes[:4])

    def test_names_that_cannot_be_fail_alone(self, gcs: CloudStorage) -> None:
        bucket = gcs.make_bucket("names")
        batch = [Message(b"1", {"k": key}) for key in ("a", "", "x" * 1025, "d")]
        error = send(f"bucket: {bucket}, path: '${{! @k }}'", *batch)
        assert {index: text.reason for index, text in error.errors.items()} == {
            1: Reason.INVALID,
            2: Reason.INVALID,
        }
        assert sorted(gcs.names(bucket)) == ["a", "d"]

    def test_a_bucket_that_a_message_names_wrongly(self, gcs: CloudStorage) -> None:
        bucket = gcs.make_bucket("there")
        batch = [Message(b"1", {"b": name}) for name in (bucket, "nowhere", bucket)]
        error = send("bucket: '${! @b }', path: '${! counter() }'", *batch)
        assert [*error.errors] == [1] and error.is_rejected
        assert len(gcs.names(bucket)) == 2

    def test_a_bucket_that_is_not_there_is_waited_for(self, gcs: CloudStorage) -> None:
        error = send("bucket: later", Message(b"1"), Message(b"2"))
        assert [*error.errors] == [0, 1] and not error.is_rejected
        with pytest.raises(StreamerError, match="there is no bucket 'later'"):
            built("gcp_cloud_storage: {bucket: later}").probe()
        gcs.make_bucket("later")
        assert built("gcp_cloud_storage: {bucket: later}").probe() == "the bucket is there"

    def test_ten_thousand_messages_each_once(self, gcs: CloudStorage) -> None:
        bucket = gcs.make_bucket("many")
        output = built(
            f"gcp_cloud_storage: {{bucket: {bucket}, path: 'p/${{! counter() }}', batching: "
            "{count: 500, processors: [{archive: {format: lines}}]}}"
        )
        batch = [Message(b'{"n":%d}' % number) for number in range(10_000)]
        [error] = output.deliver([batch], Seen().ex).errors
        assert error is None
        lines = [line for name in gcs.names(bucket) for line in gcs.read(bucket, name).splitlines()]
        assert Counter(lines) == Counter(message.raw for message in batch)

    def test_it_goes_on_after_the_server_was_killed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        port = lasting_port()
        monkeypatch.setenv(EMULATOR, f"127.0.0.1:{port}")
        output = built("gcp_cloud_storage: {bucket: bbb, path: '${! content() }'}")

        def deliver(text: bytes) -> Any:
            [error] = output.deliver([[Message(text)]], Seen().ex).errors
            return error

        with cloud_storage_server(tmp_path, port) as server:
            server.make_bucket("bbb")
            assert deliver(b"1") is None
            server.process.kill()
            server.process.wait()
            error = deliver(b"2")
            assert [*error.errors] == [0] and not error.is_rejected
        with cloud_storage_server(tmp_path, port) as server:
            assert deliver(b"2") is None
            assert sorted(server.names("bbb")) == ["1", "2"]


def answering(status: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what a message comes to where the API answers a status."""

    def answer(asked: Asked) -> Reply:
        return Reply(status, b'{"error":{"code":%d,"message":"the reason"}}' % status)

    with http_server(answer) as server:
        monkeypatch.setenv(EMULATOR, server.url)
        return send("bucket: b, path: '${! @k }'", *(Message(b"x", {"k": key}) for key in "ab"))


def test_a_refusal_of_the_content_is_a_rejection(monkeypatch: pytest.MonkeyPatch) -> None:
    error = answering(400, monkeypatch)
    assert [text.reason for text in error.errors.values()] == [Reason.REFUSED] * 2
    error = answering(413, monkeypatch)
    assert [text.reason for text in error.errors.values()] == [Reason.TOO_LARGE] * 2


@pytest.mark.parametrize("status", [401, 403, 429, 503])
def test_other_refusals_keep_the_messages(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    error = answering(status, monkeypatch)
    assert [*error.errors] == [0, 1] and not error.is_rejected


def test_appending_starts_again_where_another_one_was_faster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two conditions fail before the third attempt; the part is deleted in any case."""
    composed: list[str] = []

    def answer(asked: Asked) -> Reply:
        if "/compose" in asked.path:
            composed.append(asked.path.rpartition("=")[2])
            return Reply(200 if len(composed) == 3 else 412, b"{}")
        if asked.method == "GET":
            return Reply(200, b'{"generation":"%d"}' % (len(composed) + 5))
        if asked.method == "DELETE":
            composed.append("deleted")
            return Reply(204)
        return Reply(412 if "ifGenerationMatch=0" in asked.path else 200, b"{}")

    with http_server(answer) as server:
        monkeypatch.setenv(EMULATOR, server.url)
        assert send("bucket: b, path: a, collision_mode: append", Message(b"x")) is None
    assert composed == ["5", "6", "7", "deleted"]


class GenerationalObjects:
    """Objects with generations and the conditions on them, which fake-gcs-server leaves out.

    Joining reads the generation that the request names, as Cloud Storage does: a writer that does
    not look at the object as it is now overwrites what another has put behind it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest = 0
        self.objects: dict[str, dict[int, bytes]] = {}
        self.conflicts = 0

    def answer(self, asked: Asked) -> Reply:
        url = urlsplit(asked.path)
        query = dict(parse_qsl(url.query))
        with self._lock:
            if url.path.startswith("/upload/"):
                head, _, rest = asked.body.partition(b"\r\n\r\n")[2].partition(b"\r\n--")
                data = rest.partition(b"\r\n\r\n")[2].rpartition(b"\r\n--")[0]
                return self._put(json.loads(head)["name"], data, query)
            name = unquote(url.path.partition("/o/")[2].removesuffix("/compose"))
            if asked.method == "DELETE":
                return Reply(204 if self.objects.pop(name, None) else 404)
            if asked.method == "POST":
                sources = json.loads(asked.body)["sourceObjects"]
                contents = [self._content(one) for one in sources]
                if None in contents:
                    return Reply(404, b"{}")
                return self._put(name, b"".join(filter(None, contents)), query)
            if name not in self.objects:
                return Reply(404, b"{}")
            return Reply(200, json.dumps({"generation": str(max(self.objects[name]))}).encode())

    def _content(self, source: dict[str, str]) -> bytes | None:
        generations = self.objects.get(source["name"], {})
        if "generation" in source:
            return generations.get(int(source["generation"]))
        return generations[max(generations)] if generations else None

    def _put(self, name: str, data: bytes, query: dict[str, str]) -> Reply:
        generations = self.objects.setdefault(name, {})
        wanted = query.get("ifGenerationMatch")
        if wanted is not None and int(wanted) != max(generations, default=0):
            self.conflicts += 1
            return Reply(412, b"{}")
        self._newest += 1
        generations[self._newest] = data
        return Reply(200, b"{}")

    def read(self, name: str) -> bytes:
        return self.objects[name][max(self.objects[name])]


def test_many_writers_append_to_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    store = GenerationalObjects()
    texts = [b"<%d>" % number for number in range(24)]
    with http_server(store.answer) as server, ThreadPoolExecutor(4) as pool:
        monkeypatch.setenv(EMULATOR, server.url)
        fields = "bucket: shared, path: log, collision_mode: append"
        errors = list(pool.map(lambda text: send(fields, Message(text)), texts))
    assert errors == [None] * len(texts)
    assert Counter(store.read("log").replace(b">", b"> ").split()) == Counter(texts)
    assert list(store.objects) == ["log"]
    # Nobody would be lost without conflicts, whatever the output does.
    assert store.conflicts > 0
