"""What holds for the whole suite."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from streamer.core import time_limit
from tests.examples import examples
from tests.long_lists import where_they_part
from tests.servers.clickhouse import clickhouse_server
from tests.servers.kafka import Broker, Kafka
from tests.servers.kafka.secured import Secured, secured_broker
from tests.servers.mariadb import mariadb_server
from tests.servers.postgres import postgres_server
from tests.servers.redis import redis_server
from tests.servers.registry import Registry, registry

# Tiers, the sample, workers and the report; `pytester` runs pytest in their tests.
pytest_plugins = ("tests.plugin.hooks", "pytester")

# Both look at the clock on the wall, and on a loaded machine find what is not there. What may take
# no longer than it should is held by tests of its own, which count work or processor time.
settings.register_profile(
    "streamer",
    deadline=None,
    max_examples=examples(40, 100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("streamer")


_SUITE = os.getpid()
_END_PROCESSES = time_limit._WATCH.end_processes


def _end_forks() -> None:
    """Let a task that is overdue end its process, but not the suite's, which runs tasks as well."""
    if os.getpid() != _SUITE:
        _END_PROCESSES()


time_limit._WATCH.end_processes = _end_forks  # type: ignore[method-assign]


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going through thousands of tests again and again."""
    gc.collect()
    gc.freeze()


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Say of two long lists where they part: in CI pytest prints all of both."""
    if op == "==" and isinstance(left, list) and isinstance(right, list):
        return where_they_part(left, right)
    return None


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real Redis; tests that share it use keys of their own."""
    with redis_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    """The DSN of a real PostgreSQL; tests that share it use tables of their own."""
    with postgres_server() as dsn:
        yield dsn


@pytest.fixture(scope="session")
def mysql_dsn() -> Iterator[str]:
    """The DSN of a real MariaDB; tests that share it use tables of their own."""
    with mariadb_server() as dsn:
        yield dsn


@pytest.fixture(scope="session")
def clickhouse_dsn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The DSN of a real ClickHouse; tests that share it use tables of their own."""
    with clickhouse_server(tmp_path_factory.mktemp("clickhouse")) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real Kafka broker that tests share: they must not stop it."""
    with Broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka(kafka_broker: Broker) -> Kafka:
    """A client of the shared broker; tests that share it use topics and groups of their own."""
    return kafka_broker.client()


@pytest.fixture(scope="session")
def schema_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A schema registry that tests share; their subjects are their own."""
    with registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture(scope="session")
def kafka_secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker with TLS, users and rights, that tests share."""
    with secured_broker(tmp_path_factory.mktemp("kafka-secured")) as secured:
        yield secured
