"""One server of Cloud Storage for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streamer.connectors.google.storage import EMULATOR
from tests.servers.cloud_storage import CloudStorage, cloud_storage_server


@pytest.fixture(scope="session")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudStorage]:
    with cloud_storage_server(tmp_path_factory.mktemp("gcs")) as server:
        yield server


@pytest.fixture
def gcs(_server: CloudStorage, monkeypatch: pytest.MonkeyPatch) -> CloudStorage:
    """The server, which the environment names as the emulator."""
    monkeypatch.setenv(EMULATOR, _server.url)
    return _server
