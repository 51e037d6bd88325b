"""A kill between what a Kafka output has written and what the checkpoint knows of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.connectors.kafka.reader import first_times
from tests.servers.kafka.broker import Broker

from .program import program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

TOPIC = "results"
_FEW = 1_000

CONFIG = """
input: {{file: {{paths: {paths}}}}}
buffer: {{memory: {{limit: 100000}}}}
pipeline:
  processors:
    - mapping: root.n = this.n
    - sleep: {{duration: '{sleep}'}}
output:
  redpanda:
    seed_brokers: ["{broker}"]
    topic: results
    key: ${{! this.n }}
    dedupe_headers: true
    {more}
spark: {{master: "local[2]"}}
"""


@pytest.mark.parametrize("transactional", [True, False])
def test_what_was_written_before_a_kill_is_left_out_or_known_when_it_comes_again(
    tmp_path: Path, transactional: bool
) -> None:
    """No moment is left to chance: one part is written, and the other one never ends."""
    config, paths = tmp_path / "kill.yaml", [tmp_path / "first", tmp_path / "second"]
    for number, path in enumerate(paths):
        mine = range(number * _FEW // 2, (number + 1) * _FEW // 2)
        path.write_text("".join(f'{{"n":{n}}}\n' for n in mine))
    with Broker(tmp_path / "broker") as broker:
        kafka = broker.client()
        kafka.create(TOPIC, 3)
        given = {
            "paths": json.dumps(list(map(str, paths))),
            "broker": broker.address(),
            "more": f"transactional: {str(transactional).lower()}",
        }
        last = '${! if this.n == %d { "1h" } else { "0s" } }' % (_FEW - 1)  # noqa: UP031
        config.write_text(CONFIG.format(**given, sleep=last))
        with program(config, tmp_path / "checkpoint") as running:
            running.wait_for(
                lambda: len(kafka.consume(TOPIC)) == _FEW // 2, 240, "for the first part"
            )
            running.kill()
        config.write_text(CONFIG.format(**given, sleep="0s"))
        with program(config, tmp_path / "checkpoint") as running:
            assert running.finish(240) == 0
        records = kafka.consume(TOPIC)
        if not transactional:
            assert len(records) > _FEW, "nothing came again"
            records = first_times(records)
        assert sorted(json.loads(one.value or b"")["n"] for one in records) == list(range(_FEW))
