"""Tables in S3 and behind a REST catalog: read as local ones, and written while tokens expire."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import Catalog, load_catalog

from streamer.config import parse_config
from streamer.connectors.tables.table_client import TableUnavailableError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.engine.driver.writers import Writer, make_writers
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.plan import make_plan
from streamer.sdk.input.replayable import Limit
from tests.connectors.tables.table_reading import TableStream
from tests.servers.expiring_s3 import ExpiringS3, expiring_s3
from tests.servers.iceberg_rest import iceberg_rest
from tests.servers.s3 import BUCKET, KEY, S3, SECRET, s3_server

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("remote tables")]

REGION = "eu-west-1"


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


def delta_options(url: str) -> dict[str, str]:
    return {
        "aws_endpoint": url,
        "aws_region": REGION,
        "aws_access_key_id": KEY,
        "aws_secret_access_key": SECRET,
        "aws_allow_http": "true",
    }


def yaml_of(options: dict[str, str]) -> str:
    return "{" + ", ".join(f"{name}: '{text}'" for name, text in options.items()) + "}"


def s3_storage(url: str) -> str:
    return (
        f"{{aws_s3: {{region: {REGION}, endpoint: '{url}', force_path_style_urls: true, "
        f"credentials: {{id: {KEY}, secret: {SECRET}}}}}}}"
    )


def s3_catalog(directory: Path, url: str, name: str) -> Catalog:
    properties = {
        "uri": f"sqlite:///{directory}/catalog.db",
        "warehouse": f"s3://{BUCKET}/{name}",
        "s3.endpoint": url,
        "s3.region": REGION,
        "s3.access-key-id": KEY,
        "s3.secret-access-key": SECRET,
        "s3.force-virtual-addressing": "false",
    }
    return load_catalog("default", type="sql", **properties)


class RemoteTable(NamedTuple):
    """A table elsewhere: the config of an input, and how another program appends to it."""

    config: str
    append: Callable[[pa.Table], object]


def make_delta_in_s3(s3: S3, directory: Path) -> Iterator[RemoteTable]:
    options, place = delta_options(s3.url), f"s3://{BUCKET}/read/delta"
    config = f"{{delta: {{path: '{place}', storage_options: {yaml_of(options)}}}}}"
    yield RemoteTable(
        config, lambda rows: write_deltalake(place, rows, mode="append", storage_options=options)
    )


def make_iceberg_in_s3(s3: S3, directory: Path) -> Iterator[RemoteTable]:
    catalog = s3_catalog(directory, s3.url, "read/iceberg")
    yield make_iceberg(
        catalog,
        f"catalog: {{url: 'sqlite:///{directory}/catalog.db', "
        f"warehouse: 's3://{BUCKET}/read/iceberg'}}, storage: {s3_storage(s3.url)}",
    )


def make_iceberg_by_rest(s3: S3, directory: Path) -> Iterator[RemoteTable]:
    with iceberg_rest(directory) as rest:
        catalog = load_catalog("rest", type="rest", uri=rest.url)
        yield make_iceberg(catalog, f"catalog: {{url: '{rest.url}'}}")


def make_iceberg(catalog: Catalog, place: str) -> RemoteTable:
    catalog.create_namespace("demo")
    table = catalog.create_table("demo.t", pa.schema([("n", pa.int64()), ("s", pa.string())]))
    config = f"{{iceberg: {{{place}, namespace: demo, table: t}}}}"
    return RemoteTable(config, lambda rows: table.refresh().append(rows))


def rows_of(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64()), "s": [f"row {one}" for one in numbers]})


def documents(*numbers: int) -> list[dict[str, Any]]:
    return [{"n": one, "s": f"row {one}"} for one in numbers]


@pytest.mark.parametrize("make", [make_delta_in_s3, make_iceberg_in_s3, make_iceberg_by_rest])
def test_rows_of_tables_elsewhere_come_and_then_those_that_are_appended(
    make: Callable[[S3, Path], Iterator[RemoteTable]], s3: S3, tmp_path: Path
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table in make(s3, tmp_path):
            table.append(rows_of(1, 2, 3))
            table.append(rows_of(4))
            reading = TableStream(table.config)
            # Each batch is read twice, as after a crash, by another process.
            snapshot = reading.read(Limit(2))
            assert sorted(snapshot, key=lambda row: row["n"]) == documents(1, 2, 3, 4)
            assert reading.read() == []
            table.append(rows_of(5, 6))
            table.append(rows_of(7))
            assert reading.read(parts=2) == documents(5, 6, 7)


class Writing(NamedTuple):
    """A writer of a table in S3 behind a proxy, and how its rows are read without that."""

    writer: Writer
    encoder: Any
    read: Callable[[], list[Any]]

    def write(self, batch: int, *numbers: int) -> None:
        messages = [Message.from_value({"n": one}) for one in numbers]
        frames = [
            Frame(FrameKind.DATA, 0, 0, 0, 0, *one)
            for one in self.encoder.encode(messages, Execution(lambda: 0))
        ]
        self.writer.write(batch, frames)


def open_writing(kind: str, s3: S3, proxy: ExpiringS3, directory: Path) -> Writing:
    if kind == "delta":
        place = f"s3://{BUCKET}/write/delta"
        output = f"delta: {{path: '{place}', storage_options: {yaml_of(delta_options(proxy.url))}}}"
        direct = delta_options(s3.url)

        def read() -> list[Any]:
            return DeltaTable(place, storage_options=direct).to_pyarrow_table()["n"].to_pylist()

    else:
        catalog = s3_catalog(directory, s3.url, "write/iceberg")
        output = (
            f"iceberg: {{catalog: {{url: 'sqlite:///{directory}/catalog.db', "
            f"warehouse: 's3://{BUCKET}/write/iceberg'}}, namespace: demo, table: t, "
            f"storage: {s3_storage(proxy.url)}}}"
        )

        def read() -> list[Any]:
            return catalog.load_table("demo.t").scan().to_arrow()["n"].to_pylist()

    plan = make_plan(parse_config(f"output: {{{output}}}", "a.yaml"))
    [writer] = make_writers(plan, directory, None, stream=lambda: "s")  # type: ignore[arg-type]
    encoder = plan.context().build(plan.outputs[0]).output
    # Endpoints in the metadata of a table are none: readers bring their own.
    return Writing(writer, encoder, lambda: sorted(read()))


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_token_that_expires_is_waited_for(kind: str, s3: S3, tmp_path: Path) -> None:
    with expiring_s3(s3.url) as proxy, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        writing = open_writing(kind, s3, proxy, tmp_path)
        writing.write(0, 1, 2)
        with proxy.expire("PUT", "POST"), pytest.raises(TableUnavailableError) as error:
            writing.write(1, 10, 11)
        assert "xpired" in str(error.value)
        assert SECRET not in str(error.value)
        assert proxy.refused > 0
        for _ in range(2):
            writing.write(1, 10, 11)
        assert writing.read() == [1, 2, 10, 11]
