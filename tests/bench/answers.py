"""What the traffic-light job has to say, by numpy: nothing of the product is in here.

The workload's lines all have the same length, so that a file is a table of bytes. All answers are
checked, none is sampled. An event that is lost, doubled or in another window changes the passengers
of its light, since each car has one at least.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

Answers = dict[tuple[str, str], tuple[int, int]]
"""By window end and light: different plates, and passengers."""

Closed = Literal["left", "right"]
Column = np.ndarray[Any, Any]
_CHUNK = 500_000


@dataclass(frozen=True)
class Events:
    """All events in order: Unix seconds, number of the light and of the plate, passengers."""

    lights: list[str]
    plates: int
    second: Column
    light: Column
    plate: Column
    passengers: Column


class _Codes:
    """Numbers for texts whose first eight bytes tell them apart."""

    def __init__(self) -> None:
        self.texts: list[bytes] = []
        self._numbers: dict[int, int] = {}

    def of(self, cells: Column) -> Column:
        keys = np.ascontiguousarray(cells[:, :8]).view("<u8").ravel()
        found, first, place = np.unique(keys, return_index=True, return_inverse=True)
        if not (cells == cells[first][place]).all():
            raise ValueError("two texts begin alike")
        numbers = np.empty(len(found), np.int64)
        for i, (key, row) in enumerate(zip(found.tolist(), first.tolist(), strict=True)):
            number = self._numbers.setdefault(key, len(self.texts))
            if number == len(self.texts):
                self.texts.append(cells[row].tobytes())
            elif self.texts[number] != cells[row].tobytes():
                raise ValueError("two texts begin alike")
            numbers[i] = number
        return numbers[place]


def _seconds(cells: Column) -> Column:
    """Unix seconds of times such as `2026-11-21T10:00:00`, of which long runs are the same."""
    starts = np.flatnonzero((cells[1:] != cells[:-1]).any(axis=1)) + 1
    starts = np.concatenate([[0], starts])
    values = [
        int(datetime.fromisoformat(cells[row].tobytes().decode()).replace(tzinfo=UTC).timestamp())
        for row in starts.tolist()
    ]
    return np.repeat(values, np.diff(np.append(starts, len(cells))))


def read(paths: Iterable[Path]) -> Events:
    """Read the workload's files.

    Raises:
        ValueError: a file is not as the workload writes them.
    """
    lights, plates = _Codes(), _Codes()
    second: list[Column] = []
    light: list[Column] = []
    plate: list[Column] = []
    passengers: list[Column] = []
    for path in paths:
        with path.open("rb") as file:
            line = file.readline()

        def after(name: bytes, line: bytes = line) -> int:
            return line.index(name) + len(name)

        s, t = after(b'"created_at":"'), after(b'"traffic_light":"')
        p, n = after(b'"registration_plate":"'), after(b'"passengers":')
        table = np.memmap(path, np.uint8, "r").reshape(-1, len(line))
        for start in range(0, len(table), _CHUNK):
            part = np.asarray(table[start : start + _CHUNK])
            if (part[:, -1] != ord("\n")).any():
                raise ValueError(f"{path} has lines of different lengths")
            second.append(_seconds(part[:, s : s + 19]))
            light.append(lights.of(part[:, t : t + 36]))
            plate.append(plates.of(part[:, p : p + 8]))
            passengers.append(part[:, n].astype(np.int64) - ord("0"))
    names = [text.decode() for text in lights.texts]
    columns = [np.concatenate(column) for column in (second, light, plate, passengers)]
    if (columns[0][1:] < columns[0][:-1]).any():
        raise ValueError("the events are not in the order of their times")
    return Events(names, len(plates.texts), *columns)


def expected(
    events: Events, size: int, slide: int, *, closed: Closed = "right", distinct: bool = True
) -> Answers:
    """All windows that hold an event.

    Args:
        events: of all files.
        size: of a window, seconds.
        slide: between two ends, which are multiples of it, seconds.
        closed: which bound belongs to a window: `right` is (end - size, end], `left` the contrary.
        distinct: whether cars are different plates, or just events.
    """
    found: Answers = {}
    lights, times = len(events.lights), events.second
    first, last = int(times[0]), int(times[-1])
    end = -(-first // slide) * slide
    while end - size <= last:
        low, high = np.searchsorted(times, [end - size, end], closed)
        light = events.light[low:high]
        cars = _different(events, low, high) if distinct else np.bincount(light, None, lights)
        weights = events.passengers[low:high]
        passengers = np.bincount(light, weights, lights).astype(np.int64)
        at = datetime.fromtimestamp(end, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for number in np.flatnonzero(cars).tolist():
            found[at, events.lights[number]] = int(cars[number]), int(passengers[number])
        end += slide
    return found


def _different(events: Events, low: int, high: int) -> Column:
    """Return how many different plates each light has among the events from `low` to `high`."""
    lights = len(events.lights)
    seen = np.zeros(lights * events.plates, bool)
    seen[events.light[low:high] * events.plates + events.plate[low:high]] = True
    found: Column = seen.reshape(lights, -1).sum(axis=1)
    return found


def given(lines: Iterable[bytes]) -> Answers:
    """Read what a job wrote, a JSON object a line.

    Raises:
        ValueError: a window and light came twice.
    """
    found: Answers = {}
    for line in lines:
        document = json.loads(line)
        key = document["created_at"], document["traffic_light"]
        if key in found:
            raise ValueError(f"{key} came twice")
        found[key] = document["total_cars"], document["passengers"]
    return found


def differences(want: Mapping[Any, Any], got: Mapping[Any, Any]) -> str:
    """Return what is wrong with answers of any kind, or an empty text."""
    if want == got:
        return ""
    missing, extra = want.keys() - got.keys(), got.keys() - want.keys()
    wrong = [key for key in want.keys() & got.keys() if want[key] != got[key]]
    examples = [(key, want.get(key), got.get(key)) for key in [*missing, *extra, *wrong][:3]]
    return (
        f"{len(missing)} missing, {len(extra)} too many, {len(wrong)} wrong of {len(want)}; "
        f"such as (key, expected, found) {examples}"
    )
