"""One HDFS for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.hdfs import Hdfs, hdfs_cluster


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with hdfs_cluster(tmp_path_factory.mktemp("hdfs")) as cluster:
        yield cluster
