"""A stand-in for Azure's Data Lake: what its client sends for a file, over a dictionary."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from tests.servers.http import Asked, Reply, Server, http_server

ACCOUNT = "streamertest"


@dataclass
class DataLake:
    """What it holds, and how it behaves.

    Attributes:
        files: the content of each file, by `filesystem/path`; only what was flushed.
        filesystems: those that are there.
        refused: paths that it refuses, with the code.
        keys: the headers `authorization` of requests.
    """

    filesystems: set[str] = field(default_factory=lambda: {"lake"})
    files: dict[str, bytes] = field(default_factory=dict)
    unflushed: dict[str, bytearray] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    server: Server | None = None

    @property
    def connection_string(self) -> str:
        assert self.server is not None
        key = "YS1rZXktb2YtdGhlLXRlc3Rz"
        return f"AccountName={ACCOUNT};AccountKey={key};DfsEndpoint={self.server.url}/{ACCOUNT};"

    def answer(self, asked: Asked) -> Reply:
        url = urlsplit(asked.path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        place = unquote(url.path).removeprefix(f"/{ACCOUNT}/")
        filesystem, _, path = place.partition("/")
        with self.lock:
            self.keys.append(asked.headers.get("authorization", ""))
            if filesystem not in self.filesystems:
                return _error(404, "FilesystemNotFound")
            if path in self.refused:
                return _error(409, self.refused[path])
            if query.get("resource") == "file" and asked.method == "PUT":
                self.unflushed[place] = bytearray()
                self.files[place] = b""
                return Reply(201, headers=_HEADERS)
            if query.get("action") == "append":
                data = self.unflushed[place]
                assert int(query["position"]) == len(data)
                data += asked.body
                return Reply(202, headers=_HEADERS)
            if query.get("action") == "flush":
                assert int(query["position"]) == len(self.unflushed[place])
                self.files[place] = bytes(self.unflushed[place])
                return Reply(200, headers=_HEADERS)
        return Reply(200, headers=_HEADERS)


_HEADERS = {"ETag": '"1"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT", "x-ms-version": "1"}


def _error(status: int, code: str) -> Reply:
    body = f'{{"error":{{"code":"{code}","message":"no"}}}}'.encode()
    return Reply(status, body, {"x-ms-error-code": code, "Content-Type": "application/json"})


@contextmanager
def data_lake() -> Iterator[DataLake]:
    """Run one."""
    lake = DataLake()
    with http_server(lake.answer) as server:
        lake.server = server
        yield lake
