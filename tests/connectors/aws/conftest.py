"""One simulated AWS for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.aws import Aws, aws_server


@pytest.fixture(scope="session")
def aws() -> Iterator[Aws]:
    with aws_server() as server:
        yield server
