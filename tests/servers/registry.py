"""A schema registry: Apicurio's, in memory, by the API of Confluent's."""

from __future__ import annotations

import json
import os
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamer.spark.jars.jar_directories import user_jar_directory
from streamer.spark.jvm.java import find_java
from tests.servers import free_port, running, skip_without

_POM = "deploy/dev/registry-pom.xml"
_JAVA_OPTIONS = (
    *("-Xmx256m", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
    *("-Dquarkus.http.host=127.0.0.1", "-Dquarkus.log.level=WARN"),
)


@dataclass(frozen=True)
class Registry:
    """A running registry, by its URL."""

    url: str

    def register(
        self, subject: str, schema: Any, kind: str = "AVRO", references: Sequence[Any] = ()
    ) -> int:
        """Register a schema as the newest one of a subject; return its id."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        body = {"schema": text, "schemaType": kind, "references": list(references)}
        request = urllib.request.Request(
            f"{self.url}/subjects/{subject}/versions",
            json.dumps(body).encode(),
            {"Content-Type": "application/vnd.schemaregistry.v1+json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(json.load(answer)["id"])


def _unpacked() -> Path:
    place = Path(
        os.environ.get("STREAMER_REGISTRY") or user_jar_directory(os.environ).with_name("registry")
    )
    archive = next(iter(sorted(place.glob("apicurio-registry-app-*-all.tar.gz"))), None)
    if archive is None:
        skip_without(
            "schema-registry",
            f"none in {place}; mvn -f {_POM} dependency:copy-dependencies "
            f"-DoutputDirectory={place}",
        )
    home = place / archive.name.removesuffix(".tar.gz")
    if not home.exists():
        # Several workers may come here at once: the first one's directory stays.
        made = place / f".{home.name}-{os.getpid()}"
        with tarfile.open(archive) as packed:
            packed.extractall(made, filter="data")
        try:
            made.rename(home)
        except OSError:
            assert home.exists()
    return home


@contextmanager
def registry(directory: Path) -> Iterator[Registry]:
    """Run one until the block ends."""
    home, port = _unpacked(), free_port()
    (jar,) = home.glob("*-runner.jar")
    url = f"http://127.0.0.1:{port}/apis/ccompat/v7"

    def is_up() -> bool:
        try:
            with urllib.request.urlopen(f"{url}/subjects", timeout=5):
                return True
        except (OSError, urllib.error.URLError):
            return False

    java = str(find_java(os.environ).home / "bin" / "java")
    command = [java, *_JAVA_OPTIONS, f"-Dquarkus.http.port={port}", "-jar", str(jar)]
    with running(command, directory / "registry.log", is_up):
        yield Registry(url)
