"""One Azurite for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.azurite import Azurite, azurite_server


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    with azurite_server(tmp_path_factory.mktemp("azurite")) as server:
        yield server
