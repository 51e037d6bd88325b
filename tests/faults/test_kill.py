"""kill -9 of the driver at random moments: every event is in exactly its windows, once.

The oracle below is plain Python and shares no code with the product: it reads what came out, and
knows that events are numbered without gaps and carry their time.
"""

import json
import os
import random
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from streamer.config import parse_config
from streamer.plan import make_plan

from .program import program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

# Twenty are for a run by hand: STREAMER_KILLS=20 pytest tests/faults/test_kill.py
KILLS = int(os.environ.get("STREAMER_KILLS", "1"))
SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))
SIZE = 10
FOLDED = pytest.mark.sample("folded")

CONFIG = """
input:
  generate:
    interval: 1ms
    mapping: |
      root.id = count("id") - {first}
      root.at = now()
      root.light = "light-" + (root.id % 7).string()
      root.stamp = root.id.string() + "@" + root.at
buffer:
  system_window:
    timestamp_mapping: root = this.at
    size: {size}s
    # A machine that stands still for so long that windows expire loses nothing either.
    on_expired: keep
    {slide}
pipeline:
  processors:
    - group_by_value:
        value: ${{! json("light") }}
    - mapping: |
        root = if batch_index() == 0 {{
          {{
            "end": meta("window_end_timestamp"),
            "light": this.light,
            "ids": json("id").from_all(){all},
            "ats": json("stamp").from_all(){all},
            "sum": json("id").from_all().sum(),
          }}
        }} else {{ deleted() }}
output:
  {output}
spark:
  master: local[2]
"""


def nanoseconds(text: str) -> int:
    """Read RFC 3339 to the nanosecond."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    seconds = int(datetime.fromisoformat(whole).replace(tzinfo=UTC).timestamp())
    return seconds * 10**9 + int(fraction.ljust(9, "0") or 0)


def check(lines: list[bytes], slides: int, repeats: bool) -> int:
    """Hold the output against what must be; return the number of events.

    Args:
        lines: the output.
        slides: how many windows an event is in.
        repeats: whether a window may be there more than once.
    """
    windows: dict[tuple[str, str], dict] = {}
    for line in lines:
        found = json.loads(line)
        key = (found["end"], found["light"])
        if key in windows:
            assert repeats, f"{key} was written twice"
            assert windows[key] == found, f"{key} was emitted with two different contents"
        windows[key] = found
    seen: Counter[int] = Counter()
    times: dict[int, str] = {}
    for (end, light), window in windows.items():
        last = nanoseconds(end)
        assert window["sum"] == sum(window["ids"])
        assert window["ids"] == sorted(window["ids"]), "arrival order is kept"
        for event, at in zip(window["ids"], window["ats"], strict=True):
            event_again, _, at = at.partition("@")
            assert event_again == str(event)
            assert light == f"light-{event % 7}"
            assert last - SIZE * 10**9 < nanoseconds(at) <= last, f"event {event} is not in {end}"
            assert times.setdefault(event, at) == at
            seen[event] += 1
    assert sorted(seen) == list(range(len(seen))), "an event is missing"
    wrong = {event: number for event, number in seen.items() if number != slides}
    assert not wrong, f"events in the wrong number of windows: {wrong}"
    return len(seen)


@pytest.mark.parametrize(
    ("slide", "output", "repeats", "folds"),
    [
        pytest.param("", "file", False, False, id="file", marks=pytest.mark.smoke),
        pytest.param("", "file", False, True, id="folded-file", marks=FOLDED),
        pytest.param("slide: 5s", "stdout", True, True, id="folded-sliding-stdout", marks=FOLDED),
    ],
)
def test_every_event_is_in_exactly_its_windows(tmp_path, slide, output, repeats, folds):
    print(f"STREAMER_SEED={SEED}")
    rng = random.Random(f"{SEED}{slide}{folds}")
    out = tmp_path / "out.jsonl"
    config = tmp_path / "kill.yaml"
    target = f"file: {{path: {out}, codec: lines}}" if output == "file" else "stdout: {}"
    # No value comes twice, so that `unique` leaves none out: but it folds.
    every = ".unique()" if folds else ""
    text = CONFIG.format(size=SIZE, slide=slide, output=target, first=1, all=every)
    config.write_text(text)
    assert (make_plan(parse_config(text, "kill.yaml")).aggregation.text is not None) == folds
    checkpoint = tmp_path / "checkpoint"

    def run(*more: str):
        return program(config, checkpoint, *more, stdout=out.open("ab"))

    for kill in range(KILLS):
        with run() as running:
            running.wait_running()
            # The first run goes on until there are windows; later ones die whenever.
            if kill == 0:
                running.wait_for(lambda: out.stat().st_size > 0, 240, "for the first window")
            time.sleep(rng.uniform(0.1, 14))
            print(f"kill {kill}: {out.stat().st_size} bytes of output")
            running.kill()
        time.sleep(rng.choice([0, 0, 5, 15]))
    with run("-s", "input.generate.count=1") as running:
        assert running.finish(240) == 0
        farewell = running.lines()[-1]
    events = check([line for line in read_whole_lines(out) if line], 2 if slide else 1, repeats)
    assert events > 1000
    assert farewell["messages"] == events, "the counters agree with what came out"
    assert "dropped" not in farewell


def read_whole_lines(path: Path) -> list[bytes]:
    """Read lines; a process that was killed while it printed leaves half a one behind."""
    found = []
    for line in path.read_bytes().split(b"\n"):
        start = line.rfind(b'{"ats"')
        if start > 0:
            line = line[start:]
        found.append(line)
    return found
