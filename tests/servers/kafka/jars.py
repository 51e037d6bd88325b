"""Where the broker's jars are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

POM = "deploy/dev/broker-pom.xml"


def broker_jars() -> Path:
    """Return the directory of the broker's jars, or skip the test and say how to fetch them.

    It is STREAMER_BROKER_JARS, or else `~/.cache/streamer/broker`.
    """
    place = Path(os.environ.get("STREAMER_BROKER_JARS") or Path.home() / ".cache/streamer/broker")
    if not list(place.glob("kafka_2.13-*.jar")):
        said = (
            f"no Kafka broker in {place} (fetch it: mvn -f {POM} dependency:copy-dependencies "
            f"-DoutputDirectory={place})"
        )
        assert os.environ.get("STREAMER_TEST_SERVERS") != "required", said
        pytest.skip(said)
    return place
