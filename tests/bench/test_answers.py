"""The benchmark's own oracle, against the plainest possible Python."""

import json
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.bench import answers, traffic


@pytest.mark.parametrize(("size", "slide"), [(10, 10), (10, 1)])
def test_the_oracle_says_what_a_loop_over_dicts_says(tmp_path: Path, size: int, slide: int) -> None:
    paths = traffic.write(tmp_path, 5_000, 3, origin=1_700_000_003, pace=150)
    plates: dict[tuple[int, str], set[str]] = defaultdict(set)
    passengers: dict[tuple[int, str], int] = defaultdict(int)
    for path in paths:
        for line in path.read_bytes().splitlines():
            event = json.loads(line)
            at = int(datetime.fromisoformat(event["created_at"]).timestamp())
            for end in range(at, at + size):
                if end % slide == 0:
                    key = end, event["traffic_light"]
                    plates[key].add(event["registration_plate"])
                    passengers[key] += event["passengers"]
    want = {
        (f"{datetime.fromtimestamp(end, UTC):%Y-%m-%dT%H:%M:%SZ}", light): (
            len(seen),
            passengers[end, light],
        )
        for (end, light), seen in plates.items()
    }
    assert answers.expected(answers.read(paths), size, slide) == want
    assert len(want) > 2_000


def test_one_event_less_is_noticed(tmp_path: Path) -> None:
    paths = traffic.write(tmp_path, 2_000, 2, origin=1_700_000_000, pace=100)
    want = answers.expected(answers.read(paths), 10, 10)
    whole = paths[1].read_bytes().splitlines(keepends=True)
    paths[1].write_bytes(b"".join(whole[:500] + whole[501:]))
    got = answers.expected(answers.read(paths), 10, 10)
    assert answers.differences(want, got)
    assert not answers.differences(want, dict(want))
