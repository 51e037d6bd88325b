"""A cluster that the tests of this directory share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.servers.spark_cluster import Cluster, spark_cluster

# By hand: STREAMER_WORKERS=4.
WORKERS = int(os.environ.get("STREAMER_WORKERS", "2"))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with spark_cluster(tmp_path_factory.mktemp("spark"), WORKERS) as found:
        yield found
