"""Azurite: Azure's own emulator of Blob Storage. It checks keys and signatures as Azure does.

It is a package of npm, which `.ci/run` installs by `deploy/dev/azurite`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from streamer.spark.jars.jar_directories import user_jar_directory
from tests.servers import lasting_port, listens, missing, running, skip_without

ACCOUNT = "streamertest"
KEY = "YS1rZXktb2YtdGhlLXRlc3RzLW9mLXRoaXMtcHJvZ3JhbQ=="


@dataclass(frozen=True)
class Azurite:
    """Where it answers, and its process."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        """The account's endpoint."""
        return f"http://127.0.0.1:{self.port}/{ACCOUNT}"

    def connection_string(self, key: str = KEY) -> str:
        """Return what a component is told."""
        return f"AccountName={ACCOUNT};AccountKey={key};BlobEndpoint={self.url};"

    @property
    def fields(self) -> str:
        """The fields of a component that uses it, in YAML's flow style."""
        return f"storage_connection_string: '{self.connection_string()}'"

    @property
    def client(self) -> Any:
        """A client of the suite's own."""
        from azure.storage.blob import BlobServiceClient

        return BlobServiceClient.from_connection_string(self.connection_string())

    def make_container(self, name: str) -> Any:
        """Make a container; return the suite's client of it."""
        return self.client.create_container(name)

    def read(self, container: str, name: str) -> bytes:
        """Return the content of a blob."""
        content: bytes = self.client.get_blob_client(container, name).download_blob().readall()
        return content

    def names(self, container: str) -> list[str]:
        """Return the names of the blobs of a container."""
        return list(self.client.get_container_client(container).list_blob_names())


@contextmanager
def azurite_server(directory: Path, port: int | None = None) -> Iterator[Azurite]:
    """Run one until the block ends, or its process before.

    Args:
        directory: of the blobs.
        port: of loopback; one that is free if there is none.
    """
    place = user_jar_directory(os.environ).with_name("azurite")
    program = place / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    node = shutil.which("node")
    if node is None or not program.exists():
        how = f"npm install --prefix {place} azurite, by deploy/dev/azurite/package.json"
        if shutil.which("npm") is None:
            pytest.skip(missing("azurite", how))
        skip_without("azurite", how)
    port = port or lasting_port()
    blobs = directory / "blobs"
    blobs.mkdir(exist_ok=True)
    accounts = f"AZURITE_ACCOUNTS={ACCOUNT}:{KEY}"
    command = [
        *("env", accounts, node, str(program), "--blobHost", "127.0.0.1", "--blobPort", str(port)),
        *("--location", str(blobs), "--silent", "--skipApiVersionCheck", "--disableTelemetry"),
    ]
    with running(command, directory / "log", lambda: listens(port)) as process:
        yield Azurite(port, process)
