"""kill -9 of windows that begin, end or take back their results by conditions: as if never killed.

One stream has a buffer of each: state windows, half-open windows with a delay, count windows with a
condition, sessions with limits, and sessions that are retracted. The oracles are those that the
rules were written down in; they share no code with the product.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.window.oracle.count import Count, CountOracle
from tests.window.oracle.events import Event, MicroBatch
from tests.window.oracle.session import Session, SessionOracle
from tests.window.oracle.sliding_event import EventOracle, EventSliding
from tests.window.oracle.state import State, StateOracle

from .program import Program, program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

# Ten are for a run by hand: STREAMER_KILLS=10 pytest tests/faults/test_conditions.py
KILLS = int(os.environ.get("STREAMER_KILLS", "1"))
SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))
PATIENCE_S = 240
LEAST_LINES = 200
"""Results of a run before it is killed."""
MORE = 400
"""Messages after the last kill, about."""

MS = 1_000_000
MAPPING = """
let n = count("n")
root = { "n": $n, "k": "k" + ($n % 5).string(), "at": ($n + $n * 7 % 5) * 0.1 }
"""
ROW = (
    'root = if batch_index() == 0 { { "buffer": "%s", "key": @window_key, %s } } else { deleted() }'
)
IDS = '"n": json("n").from_all()'
RESULT = (
    '"start": @window_start_unix_ms, "end": @window_end_unix_ms, '
    '"n": if @window_retracted.or(false) { null } else { json("n").from_all() }'
)
KEYED = {"key_mapping": "root = this.k"}
TIMED = {**KEYED, "timestamp_mapping": "root = this.at", "allowed_lateness": "1s"}
BUFFERS: dict[str, dict[str, Any]] = {
    "state": {
        "state_window": {
            **KEYED,
            "begin_when": "this.n % 4 == 0",
            "emit_when": "this.n % 7 == 0",
            "end_of_input": "flush",
        }
    },
    "delayed": {
        "sliding_window": {
            **TIMED,
            **{"size": "1s", "delay": "1s", "mode": "event", "closed": "right"},
            **{"emit_every": "500ms", "emit_when": "this.n % 3 == 0"},
        }
    },
    "counted": {
        "count_window": {
            **{**KEYED, "count": 12, "every": 5, "min_count": 3, "end_of_input": "flush"},
            "emit_when": "this.n % 3 == 0",
        }
    },
    "limited": {
        "session_window": {
            **{**TIMED, "gap": "1s", "max_count": 7},
            **{"max_duration": "3s", "max_duration_origin": "start"},
        }
    },
    "retracted": {
        "session_window": {
            **{**TIMED, "filter": "this.n % 30 < 25", "gap": "700ms"},
            **{"emit": "each", "emit_also": ["retractions"]},
        }
    },
}


def config_of(directory: Path) -> str:
    buffers = []
    for label, buffer in BUFFERS.items():
        row = ROW % (label, RESULT if label == "retracted" else IDS)
        buffers.append({"label": label, **buffer, "pipeline": {"processors": [{"mapping": row}]}})
    config = {
        "input": {"generate": {"interval": "20ms", "count": 0, "mapping": MAPPING}},
        "buffers": buffers,
        "output": {"file": {"path": str(directory / "out.jsonl"), "codec": "lines"}},
        "spark": {"master": "local[2]", "shards": 2},
    }
    return yaml.safe_dump(config, sort_keys=False)


def events_of(messages: int, **conditions: Any) -> tuple[Event, ...]:
    """Return the events of a stream, with what holds for each of them."""
    return tuple(
        Event(
            str(n),
            (n + n * 7 % 5) * 100 * MS,
            f"k{n % 5}",
            **{name: holds(n) for name, holds in conditions.items()},
        )
        for n in range(1, messages + 1)
    )


def windows_of(oracle: Any, events: tuple[Event, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield key and messages of each window, to the end of the input."""
    for emitted in oracle.step(MicroBatch(0, events, ended=True)).batches:
        yield emitted.key, tuple(map(int, emitted.ids))


def oracles(messages: int) -> dict[str, Counter[tuple[str, tuple[int, ...]]]]:
    """Return by buffer the windows that there must be; of retracted ones, those that are left."""
    times: dict[str, Any] = {"keyed": True, "allowed_lateness": 1000 * MS}
    third, filtered = events_of(messages, emits=lambda n: n % 3 == 0), lambda n: n % 30 < 25
    second = 1000 * MS
    delayed = EventSliding(
        **{**times, "size": second, "delay": second, "waits": True, "closed": "right"},
        **{"conditional": True, "every": 500 * MS},
    )
    counted = Count(
        **{"count": 12, "every": 5, "min_count": 3, "conditional": True, "keyed": True},
        end_of_input="flush",
    )
    limited = Session(**times, gap=second, max_count=7, max_duration=3 * second, from_start=True)
    retracted = Session(**times, gap=700 * MS, filtered=True)
    state = events_of(messages, begins=lambda n: n % 4 == 0, emits=lambda n: n % 7 == 0)
    found = {
        "state": windows_of(StateOracle(State(keyed=True, end_of_input="flush")), state),
        "delayed": windows_of(EventOracle(delayed), third),
        "counted": windows_of(CountOracle(counted), third),
        "limited": windows_of(SessionOracle(limited), events_of(messages)),
        "retracted": windows_of(SessionOracle(retracted), events_of(messages, filter=filtered)),
    }
    return {label: Counter(windows) for label, windows in found.items()}


def results_of(rows: list[dict[str, Any]]) -> dict[str, Counter[tuple[str, tuple[int, ...]]]]:
    """Return by buffer the windows that came; results that were taken back are gone."""
    found: dict[str, Counter[tuple[str, tuple[int, ...]]]] = {label: Counter() for label in BUFFERS}
    table: dict[tuple[str, int, int], tuple[int, ...]] = {}
    for row in rows:
        if row["buffer"] != "retracted":
            found[row["buffer"]][row["key"], tuple(row["n"])] += 1
            continue
        place = row["key"], row["start"], row["end"]
        if row["n"] is None:
            del table[place]  # It was there.
        else:
            table[place] = tuple(row["n"])
    found["retracted"].update((key, ids) for (key, _, _), ids in table.items())
    return found


def test_windows_of_conditions_are_as_if_the_driver_had_never_been_killed(tmp_path: Path) -> None:
    print(f"STREAMER_SEED={SEED}")
    rng = random.Random(SEED)
    config, out = tmp_path / "conditions.yaml", tmp_path / "out.jsonl"
    config.write_text(config_of(tmp_path))
    checkpoint = tmp_path / "checkpoint"

    def lines() -> list[bytes]:
        return out.read_bytes().splitlines() if out.exists() else []

    def wait(running: Program) -> None:
        wanted = len(lines()) + LEAST_LINES
        running.wait_for(lambda: len(lines()) > wanted, PATIENCE_S, "for results")

    for _ in range(KILLS):
        with program(config, checkpoint) as running:
            wait(running)
            time.sleep(rng.uniform(0, 3))
            running.kill()
    # It goes on for a while, and then its input ends.
    newest = max(max(json.loads(line)["n"] or [0]) for line in lines())
    with program(config, checkpoint, "-s", f"input.generate.count={newest + MORE}") as running:
        assert running.finish(PATIENCE_S) == 0
        messages = running.lines()[-1]["messages"]
    rows = [json.loads(line) for line in lines()]
    assert any(row["n"] is None for row in rows)
    expected, found = oracles(messages), results_of(rows)
    for label in BUFFERS:
        assert found[label] == expected[label], label
        assert len(expected[label]) > 20
