"""The stores that URLs name, each with a place of its own for a test."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.servers.aws import KEY, REGION, SECRET, aws_server
from tests.servers.azurite import azurite_server
from tests.servers.cloud_storage import cloud_storage_server
from tests.servers.hdfs import hdfs_cluster

# By hand: STREAMER_PLACES=all. Else two of the four in each run, in turns.
_PAIRS = (("s3", "hdfs"), ("gs", "az"))
_NUMBER = int(os.environ.get("STREAMER_SEED", "0"))  # of each run in pytest, the hour by itself
_IS_ALL = os.environ.get("STREAMER_PLACES") == "all"
SCHEMES = (*_PAIRS[0], *_PAIRS[1]) if _IS_ALL else _PAIRS[_NUMBER % 2]


@dataclass(frozen=True)
class Store:
    """A store that runs.

    Attributes:
        environ: the variables by which a program finds it.
        make_root: makes a bucket; returns its URL, which ends with a slash.
    """

    environ: Mapping[str, str]
    make_root: Callable[[], str]


@contextmanager
def run_s3(directory: Path) -> Iterator[Store]:
    with aws_server() as aws:
        environ = {
            "AWS_ENDPOINT_URL": aws.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": REGION,
        }

        def make_root() -> str:
            name = f"bucket-{uuid.uuid4().hex}"
            constraint = {"LocationConstraint": REGION}
            aws.client("s3").create_bucket(Bucket=name, CreateBucketConfiguration=constraint)
            return f"s3://{name}/"

        yield Store(environ, make_root)


@contextmanager
def run_gs(directory: Path) -> Iterator[Store]:
    with cloud_storage_server(directory) as server:
        yield Store(
            {"STORAGE_EMULATOR_HOST": server.url},
            lambda: f"gs://{server.make_bucket(f'bucket-{uuid.uuid4().hex}')}/",
        )


@contextmanager
def run_az(directory: Path) -> Iterator[Store]:
    with azurite_server(directory) as server:

        def make_root() -> str:
            name = f"container-{uuid.uuid4().hex}"
            server.make_container(name)
            return f"az://{name}/"

        yield Store({"AZURE_STORAGE_CONNECTION_STRING": server.connection_string()}, make_root)


@contextmanager
def run_hdfs(directory: Path) -> Iterator[Store]:
    with hdfs_cluster(directory) as cluster:
        yield Store({}, lambda: f"hdfs://{cluster.host}/{uuid.uuid4().hex}/")


RUNNERS: Mapping[str, Any] = {"s3": run_s3, "gs": run_gs, "az": run_az, "hdfs": run_hdfs}


@pytest.fixture(scope="session", params=SCHEMES)
def _store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    with RUNNERS[request.param](tmp_path_factory.mktemp(request.param)) as store:
        yield store


@pytest.fixture
def root(_store: Store, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new bucket, which the environment's variables make reachable."""
    for name, text in _store.environ.items():
        monkeypatch.setenv(name, text)
    return _store.make_root()
