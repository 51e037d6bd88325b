"""The traffic-light windows as one writes them by hand in Pathway.

`python in_pathway.py DIRECTORY OUT`: it reads a directory for ever, its files by their age, until
it is ended. `exactly_once_behavior` is what keeps it from writing a window again at each change.
"""

from __future__ import annotations

import sys

import pathway as pw

TIME = "%Y-%m-%dT%H:%M:%SZ"


class Crossing(pw.Schema):
    """What a car is seen with."""

    traffic_light: str
    created_at: str
    registration_plate: str
    passengers: int


def main(directory: str, out: str) -> None:
    """Run the job."""
    events = pw.io.jsonlines.read(directory, schema=Crossing, mode="streaming")
    timed = events.with_columns(at=pw.this.created_at.dt.strptime(TIME))
    windows = timed.windowby(
        pw.this.at,
        window=pw.temporal.tumbling(duration=pw.Duration(seconds=10)),
        behavior=pw.temporal.exactly_once_behavior(shift=pw.Duration(seconds=5)),
        instance=pw.this.traffic_light,
    ).reduce(
        traffic_light=pw.this._pw_instance,
        created_at=pw.this._pw_window_end.dt.strftime(TIME),
        total_cars=pw.reducers.count_distinct(pw.this.registration_plate),
        passengers=pw.reducers.sum(pw.this.passengers),
    )
    pw.io.jsonlines.write(windows, out)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)


if __name__ == "__main__":
    main(*sys.argv[1:])
