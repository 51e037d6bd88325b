"""Catalogs of every kind that a config may name: a commit, a rival and a replay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

from streamer.config import parse_config
from streamer.connectors.iceberg.iceberg_table import IcebergClient
from streamer.connectors.tables.table_client import (
    TableCommit,
    TableConflictError,
    TableUnavailableError,
)
from streamer.plan import make_plan
from tests.connectors.tables.table_kinds import replacing
from tests.servers.aws import KEY, REGION, SECRET, aws_server
from tests.servers.hive_metastore import hive_metastore
from tests.servers.iceberg_rest import iceberg_rest

BUCKET = "lake"


class Place(NamedTuple):
    """Where a catalog is: the fields of the output, in YAML's flow style."""

    catalog: str
    storage: str = "{}"


def make_client(place: Place, more: str = "") -> IcebergClient:
    text = (
        f"output: {{iceberg: {{catalog: {place.catalog}, namespace: demo, table: rows, "
        f"storage: {place.storage}{more}}}}}"
    )
    plan = make_plan(parse_config(text, "a.yaml"))
    client = plan.context().build(plan.outputs[0]).output.client
    assert isinstance(client, IcebergClient)
    return client


@pytest.fixture
def rest_place(tmp_path: Path) -> Iterator[Place]:
    with iceberg_rest(tmp_path) as rest:
        yield Place(f"{{url: '{rest.url}'}}")


@pytest.fixture
def glue_place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    with aws_server() as aws:
        monkeypatch.setenv("AWS_ENDPOINT_URL", aws.url)
        monkeypatch.setenv("AWS_REGION", REGION)
        monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        where = {"LocationConstraint": REGION}
        aws.client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration=where)
        storage = (
            f"{{aws_s3: {{region: {REGION}, endpoint: '{aws.url}', force_path_style_urls: true, "
            f"credentials: {{id: {KEY}, secret: {SECRET}}}}}}}"
        )
        yield Place(f"{{url: 'glue://', warehouse: 's3://{BUCKET}/warehouse'}}", storage)


@pytest.fixture
def sql_place(postgres_dsn: str, tmp_path: Path) -> Place:
    url = postgres_dsn.replace("postgres://", "postgresql://").replace("://", "+psycopg://", 1)
    return Place(f"{{url: '{url}', warehouse: '{tmp_path}', name: {tmp_path.name}}}")


@pytest.fixture
def hive_place(tmp_path: Path) -> Iterator[Place]:
    with hive_metastore() as (url, _):
        yield Place(f"{{url: '{url}', warehouse: '{tmp_path}/lake'}}")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rest", "glue", "sql", "hive"])
def test_a_table_of_each_catalog(kind: str, request: pytest.FixtureRequest) -> None:
    place = request.getfixturevalue(f"{kind}_place")
    client, rival = make_client(place), make_client(place)
    assert client.check() == "is not there yet, and is made with the first rows"
    client.commit(TableCommit("a", 7, pa.table({"n": [1], "x": ["a"]})))
    # Another program is faster between the look at the table and the commit.
    original, todo = client._open, [TableCommit("b", 3, pa.table({"n": [2], "x": ["b"]}))]

    def open_late() -> object:
        table = original()
        if todo:
            rival.commit(todo.pop())
        return table

    client._open = open_late  # type: ignore[method-assign, assignment]
    commit = TableCommit("a", 8, pa.table({"n": [3], "x": ["c"], "y": [1.5]}))
    try:
        client.commit(commit)
    except TableConflictError:
        client.commit(commit)
    seen = make_client(place)
    assert [seen.find_committed(name) for name in ("a", "b", "c")] == [8, 3, -1]
    upserting = make_client(place, ", row_operation: upsert, identifier_fields: [n]")
    rows = pa.table({"n": [3, 4], "x": ["d", "e"]})
    upserting.commit(replacing(TableCommit("a", 9, rows)))
    table = seen._open()
    assert table is not None
    read = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["n"])
    assert [(row["n"], row["x"]) for row in read] == [(1, "a"), (2, "b"), (3, "d"), (4, "e")]
    assert "3 columns" in make_client(place).check()


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1",
        "thrift://127.0.0.1:1",
        "postgresql+psycopg://a:pass-word@127.0.0.1:1/x",
    ],
)
def test_a_catalog_that_is_away_is_waited_for_and_no_password_told(
    url: str, tmp_path: Path
) -> None:
    client = make_client(Place(f"{{url: '{url}', warehouse: '{tmp_path}'}}"))
    with pytest.raises(TableUnavailableError) as error:
        client.commit(TableCommit("a", 0, pa.table({"n": [1]})))
    assert "the Iceberg table demo.rows: " in str(error.value)
    assert "pass-word" not in str(error.value)
