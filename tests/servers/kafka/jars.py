"""Where the jars of the broker are, and those with which Spark reads it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

from streamer.spark.jars.jar_directories import user_jar_directory
from streamer.spark.jars.kafka_jars import find_connector_jars
from tests.servers import skip_without

_POMS = "deploy/dev/broker-pom.xml", "deploy/jars/pom.xml"


def broker_jars() -> Path:
    """Return the directory of the broker's jars, or skip the test and say how to fetch them.

    It is STREAMER_BROKER_JARS, or else `~/.cache/streamer/broker`.
    """
    place = Path(
        os.environ.get("STREAMER_BROKER_JARS") or user_jar_directory(os.environ).with_name("broker")
    )
    if not list(place.glob("kafka_2.13-*.jar")):
        _missing("kafka-broker-jars", _POMS[0], place)
    return place


def connector_conf() -> dict[str, str]:
    """Return the Spark settings that name the jars of its Kafka connector; none if there are none.

    They are where a stream finds them: in STREAMER_JARS, `/opt/streamer/jars` or
    `~/.cache/streamer/jars`. Tests do not fetch them.
    """
    jars = find_connector_jars(os.environ)
    return {"spark.jars": ",".join(map(str, jars))} if jars else {}


def needs_connector() -> None:
    """Skip the test where Spark has no Kafka connector, and say how to fetch it."""
    if not connector_conf():
        place = user_jar_directory(os.environ)
        _missing("kafka-connector-jars", _POMS[1], place)


def _missing(what: str, pom: str, place: Path) -> NoReturn:
    skip_without(
        what,
        f"none in {place}; mvn -f {pom} dependency:copy-dependencies -DoutputDirectory={place}",
    )
