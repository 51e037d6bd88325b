"""fake-gcs-server: it speaks Google Cloud Storage's JSON API, with its objects in a directory.

It is a module of Go, of which `.ci/run` builds `deploy/dev/fake-gcs`. It takes everybody without
credentials, and knows neither rights nor quotas.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from streamer.spark.jars.jar_directories import user_jar_directory
from tests.servers import lasting_port, listens, missing, running, skip_without


@dataclass(frozen=True)
class CloudStorage:
    """Where it answers, and its process."""

    url: str
    process: subprocess.Popen[bytes]

    def make_bucket(self, name: str) -> str:
        """Make a bucket; return its name."""
        self._ask("POST", "/storage/v1/b?project=test", json.dumps({"name": name}).encode())
        return name

    def write(self, bucket: str, name: str, data: bytes, encoding: str = "") -> None:
        """Write an object, with a content encoding."""
        place = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(name, safe='')}"
        self._ask("POST", f"{place}&contentEncoding={encoding}" if encoding else place, data)

    def read(self, bucket: str, name: str) -> bytes:
        """Return the content of an object."""
        return self._ask("GET", f"/storage/v1/b/{bucket}/o/{quote(name, safe='')}?alt=media")

    def about(self, bucket: str, name: str) -> dict[str, Any]:
        """Return the description of an object."""
        text = self._ask("GET", f"/storage/v1/b/{bucket}/o/{quote(name, safe='')}")
        return json.loads(text)  # type: ignore[no-any-return]

    def names(self, bucket: str) -> list[str]:
        """Return the names of the objects of a bucket."""
        found: list[str] = []
        token = ""
        while True:
            more = f"&pageToken={quote(token, safe='')}" if token else ""
            page = json.loads(self._ask("GET", f"/storage/v1/b/{bucket}/o?maxResults=1000{more}"))
            found += [one["name"] for one in page.get("items", ())]
            token = page.get("nextPageToken", "")
            if not token:
                return found

    def _ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        kind = {"Content-Type": "application/json"}
        asked = urllib.request.Request(self.url + path, body, kind, method=method)
        with urllib.request.urlopen(asked, timeout=20) as answer:
            content: bytes = answer.read()
        return content


@contextmanager
def cloud_storage_server(directory: Path, port: int | None = None) -> Iterator[CloudStorage]:
    """Run one until the block ends, or its process before.

    Args:
        directory: of the objects.
        port: of loopback; one that is free if there is none.
    """
    program = user_jar_directory(os.environ).with_name("fake-gcs") / "fake-gcs"
    if not program.exists():
        how = f"none in {program.parent}; go build -C deploy/dev/fake-gcs -o {program}"
        if shutil.which("go") is None:
            pytest.skip(missing("fake-gcs-server", how))
        skip_without("fake-gcs-server", how)
    port = port or lasting_port()
    place = directory / "objects"
    place.mkdir(exist_ok=True)
    command = [str(program), "127.0.0.1", str(port), str(place)]
    with running(command, directory / "log", lambda: listens(port)) as process:
        yield CloudStorage(f"http://127.0.0.1:{port}", process)
