"""A micro-batch that comes again: what a transaction has committed is left out, the rest is named.

A checkpoint without the newest of Spark's commits is what a program leaves behind that was killed
when its output had everything and Spark did not know yet.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.connectors.kafka.reader import first_times
from tests.servers.kafka.client import Kafka, Record

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_LINES = 400
_WINDOW = """
buffer:
  tumbling_window:
    timestamp_mapping: root = this.t
    size: 10s
    allowed_lateness: 5s
    end_of_input: flush
"""


def _config(source: Path, kafka: Kafka, topic: str, buffer: str, promise: str) -> str:
    return f"""
input: {{file: {{paths: ["{source}"]}}}}
{buffer}
output:
  kafka_franz:
    seed_brokers: ["{kafka.bootstrap}"]
    topic: {topic}
    key: ${{! this.n }}
    {promise}: true
spark: {{master: "local[2]", shards: 2}}
"""


def _forget_the_newest_commit(checkpoint: Path) -> None:
    commits = checkpoint / "spark" / "commits"
    newest = max(int(one.name) for one in commits.iterdir() if one.name.isdigit())
    (commits / str(newest)).unlink()
    (commits / f".{newest}.crc").unlink(missing_ok=True)


def _read(kafka: Kafka, topic: str) -> list[Record]:
    """Return what is committed: a moment after it is, readers see the records."""
    until = time.monotonic() + 60
    while len(found := kafka.consume(topic)) < _LINES and time.monotonic() < until:
        time.sleep(0.05)
    return found


def _numbers(records: list[Record]) -> list[int]:
    return sorted(json.loads(record.value or b"")["n"] for record in records)


def _cases() -> Iterator[Any]:
    """Give them so that a run which takes one of each promise has both, direct and in a window."""
    for promise, buffers in (("transactional", ("", _WINDOW)), ("dedupe_headers", (_WINDOW, ""))):
        for buffer in buffers:
            name = f"{promise}-{'window' if buffer else 'direct'}"
            yield pytest.param(promise, buffer, id=name, marks=pytest.mark.sample(promise))


@pytest.mark.parametrize(("promise", "buffer"), [*_cases()])
def test_what_is_there_already_is_left_out_or_known(
    run_stream: Callable[[str], object],
    kafka: Kafka,
    tmp_path: Path,
    buffer: str,
    promise: str,
) -> None:
    source = tmp_path / "in"
    source.write_text("".join(f'{{"n":{n},"t":{n}}}\n' for n in range(_LINES)))
    topic = kafka.create(f"replays-{promise}-{'window' if buffer else 'direct'}", 3)
    config = _config(source, kafka, topic, buffer, promise)
    run_stream(config)
    assert _numbers(_read(kafka, topic)) == list(range(_LINES))
    _forget_the_newest_commit(tmp_path / "checkpoint")
    run_stream(config)
    again = _read(kafka, topic)
    if promise == "transactional":
        assert _numbers(again) == list(range(_LINES))
    else:
        # They are there twice, so they did come again; a reader can tell.
        assert len(again) > _LINES
        assert _numbers(first_times(again)) == list(range(_LINES))
