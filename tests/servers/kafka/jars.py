"""Where the jars of the broker are."""

from __future__ import annotations

import os
from pathlib import Path

from streamer.spark.jars.jar_directories import user_jar_directory
from tests.servers import skip_without

_POM = "deploy/dev/broker-pom.xml"


def broker_jars() -> Path:
    """Return the directory of the broker's jars, or skip the test and say how to fetch them.

    It is STREAMER_BROKER_JARS, or else `~/.cache/streamer/broker`.
    """
    place = Path(
        os.environ.get("STREAMER_BROKER_JARS") or user_jar_directory(os.environ).with_name("broker")
    )
    if not list(place.glob("kafka_2.13-*.jar")):
        skip_without(
            "kafka-broker-jars",
            f"none in {place}; mvn -f {_POM} dependency:copy-dependencies "
            f"-DoutputDirectory={place}",
        )
    return place
