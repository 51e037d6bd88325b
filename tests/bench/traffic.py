"""The traffic-light workload: 1,000 lights, 50,000 plates, about 115 bytes of JSON an event."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

LIGHTS, PLATES = 1_000, 50_000
_CHUNK = 200_000


def plates(rng: random.Random) -> list[str]:
    """British number plates: `AB1C DEF`."""
    letters = "ABCDEFGHJKLMNOPRSTUVWXY"

    def some(count: int) -> str:
        return "".join(rng.choices(letters, k=count))

    return [f"{some(2)}{rng.randrange(10)}{some(1)} {some(3)}" for _ in range(PLATES)]


@cache
def halves(count: int) -> tuple[list[bytes], list[bytes]]:
    """What stands before and behind an event's time: always the same lights and plates."""
    rng = random.Random(1)
    lights = [str(uuid.UUID(int=rng.getrandbits(128), version=4)) for _ in range(count)]
    heads = [f'{{"traffic_light":"{light}","created_at":"'.encode() for light in lights]
    tails = [
        f'","registration_plate":"{plate}","passengers":{passengers}}}\n'.encode()
        for plate in plates(rng)
        for passengers in range(1, 6)
    ]
    return heads, tails


def chunks(
    events: int, origin: float, pace: float, seed: int = 7, lights: int = LIGHTS
) -> Iterator[bytes]:
    """Give events as lines, in the order of their times.

    Args:
        events: how many.
        origin: Unix time of the first, in seconds.
        pace: events in a second of event time.
        seed: of the random choices.
        lights: how many there are.
    """
    heads, tails = halves(lights)
    rng = random.Random(seed)
    done = 0
    while done < events:
        count = min(_CHUNK, events - done)
        chosen_heads = rng.choices(heads, k=count)
        chosen_tails = rng.choices(tails, k=count)
        out: list[bytes] = []
        i = 0
        while i < count:
            second = int(origin + (done + i) / pace)
            until = min(count, max(i + 1, int((second + 1 - origin) * pace) - done))
            at = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ").encode()
            out += [
                head + at + tail
                for head, tail in zip(chosen_heads[i:until], chosen_tails[i:until], strict=True)
            ]
            i = until
        yield b"".join(out)
        done += count


def write(
    directory: Path, events: int, files: int, origin: float, pace: float, lights: int = LIGHTS
) -> list[Path]:
    """Write the workload into numbered files, one after another in time."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"traffic-{number:03d}.jsonl" for number in range(files)]
    share = -(-events // files)
    for number, path in enumerate(paths):
        first = number * share
        with path.open("wb") as out:
            out.writelines(
                chunks(min(share, events - first), origin + first / pace, pace, number, lights)
            )
    return paths
