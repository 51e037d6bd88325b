"""The traffic-light windows as one writes them by hand in Quix Streams.

`python in_quix.py BROKER TOPIC STATE OUT`: it reads a topic for ever, until it is ended. Messages
have their light as key, so that no repartitioning is needed.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from quixstreams import Application
from quixstreams.dataframe.windows import Collect, Sum


def event_time(value: dict[str, Any], *_: Any) -> int:
    """The event's time, Unix ms."""
    return int(datetime.fromisoformat(value["created_at"]).timestamp()) * 1000


def line(value: dict[str, Any], light: bytes | str) -> str:
    """A window of a light as a line."""
    end = datetime.fromtimestamp(value["end"] / 1000, UTC)
    document = {
        "traffic_light": light if isinstance(light, str) else light.decode(),
        "created_at": f"{end:%Y-%m-%dT%H:%M:%SZ}",
        "total_cars": len(set(value["plates"])),
        "passengers": value["passengers"],
    }
    return json.dumps(document) + "\n"


def main(broker: str, topic: str, state: str, out: str) -> None:
    """Run the job."""
    app = Application(
        broker_address=broker,
        consumer_group="compare",
        auto_offset_reset="earliest",
        state_dir=state,
    )
    events = app.topic(topic, value_deserializer="json", timestamp_extractor=event_time)
    windows = (
        app.dataframe(events)
        .tumbling_window(timedelta(seconds=10), grace_ms=timedelta(seconds=5))
        .agg(plates=Collect("registration_plate"), passengers=Sum("passengers"))
        .final(closing_strategy="partition")
    )
    with open(out, "a") as file:

        def write(value: dict[str, Any], key: Any, *_: Any) -> None:
            file.write(line(value, key))
            file.flush()

        windows.update(write, metadata=True)
        app.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
