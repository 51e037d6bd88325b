"""Results that are taken back are gone from tables, hashes and topics of real systems.

The oracle is plain Python: it cuts the events of a key into sessions, and knows what is left.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.servers.kafka import Kafka
from tests.spark.conftest import Runner

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GAP_S = 10
LEAST = 3
"""Sessions of fewer events are not to be there."""

Row = tuple[str, int, int, int]
"""Key, first and last time, s, and number of events."""

CONFIG = """
input: {{ file: {{ paths: [{input}] }} }}
buffer:
  session_window:
    timestamp_mapping: root = this.at
    key_mapping: root = this.key
    gap: {gap}s
    allowed_lateness: 100h
    emit: {emit}
    emit_also: [retractions]
    having: batch_size() % {least} != 0
    end_of_input: {end}
pipeline:
  processors:
    - mapping: |
        let retracted = @window_retracted.or(false)
        root = if batch_index() != 0 {{
          deleted()
        }} else {{
          {{
            "key": @window_key,
            "first": @window_start_unix_ms / 1000,
            "last": @window_end_unix_ms / 1000,
            "events": if $retracted {{ 0 }} else {{ batch_size() }},
          }}
        }}
        let bounds = [@window_start_unix_ms, @window_end_unix_ms].map_each(v -> v.string())
        meta row = @window_key + " " + $bounds.join(" ")
        meta operation = if $retracted {{ "delete" }} else {{ "upsert" }}
output:
  broker:
    pattern: fan_out
    outputs:
      - delta:
          path: {directory}/table
          mode: ${{! @operation }}
          key: [key, first, last]
      - sql_raw:
          driver: sqlite
          dsn: file:{directory}/rows.db
          max_in_flight: 1
          queries:
            - when: root = @operation == "delete"
              query: DELETE FROM sessions WHERE k = ? AND first = ? AND last = ?
              args_mapping: root = [ this.key, this.first, this.last ]
            - query: INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?)
              args_mapping: root = [ this.key, this.first, this.last, this.events ]
      - sql_raw:
          driver: postgres
          dsn: {postgres}
          max_in_flight: 1
          queries:
            - when: root = @operation == "delete"
              query: DELETE FROM sessions_{emit} WHERE k = $1 AND first = $2 AND last = $3
              args_mapping: root = [ this.key, this.first, this.last ]
            - query: |
                INSERT INTO sessions_{emit} VALUES ($1, $2, $3, $4)
                ON CONFLICT (k, first, last) DO UPDATE SET events = excluded.events
              args_mapping: root = [ this.key, this.first, this.last, this.events ]
      - drop: {{}}
        processors:
          - switch:
              - check: '@operation == "delete"'
                processors:
                  - cache: {{ resource: sessions, operator: delete, key: "${{! @row }}" }}
              - processors:
                  - cache:
                      resource: sessions
                      operator: set
                      key: ${{! @row }}
                      value: ${{! content() }}
      - kafka_franz:
          seed_brokers: ["{kafka}"]
          topic: {topic}
          key: ${{! @row }}
          max_in_flight: 1
        processors:
          - mapping: |
              root = if @operation == "delete" {{ "" }} else {{ this }}
              meta kafka_tombstone_message = @operation == "delete"
cache_resources:
  - label: sessions
    redis: {{ url: "{redis}", prefix: "retracted-{emit}:" }}
spark: {{ shards: 2 }}
"""


def events_of(rng: random.Random) -> list[dict[str, Any]]:
    """Return events of some keys, most of them a little out of order, so that sessions merge."""
    found = []
    for number in range(240):
        time = number * 2 + rng.randint(-30, 30)
        found.append({"key": f"k{rng.randrange(6)}", "at": 1_000_000 + time})
    return found


def sessions_of(events: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield the sessions that `having` lets be, by their definition."""
    for key in sorted({event["key"] for event in events}):
        times = sorted(event["at"] for event in events if event["key"] == key)
        session = [times[0]]
        for time in [*times[1:], float("inf")]:
            if time - session[-1] <= GAP_S:
                session.append(time)
                continue
            if len(session) % LEAST:
                yield key, session[0], session[-1], len(session)
            session = [time]


def rows_of(values: Iterator[Any] | list[Any]) -> list[Row]:
    return sorted(
        (one["key"], int(one["first"]), int(one["last"]), one["events"]) for one in values
    )


@pytest.mark.parametrize(
    "emit", [pytest.param(emit, marks=pytest.mark.sample("emit")) for emit in ("each", "changes")]
)
def test_sessions_that_merged_or_that_having_refuses_are_gone_at_the_end(
    emit: str,
    run_stream: Runner,
    tmp_path: Path,
    kafka: Kafka,
    redis_url: str,
    postgres_dsn: str,
) -> None:
    import psycopg
    import redis
    from deltalake import DeltaTable

    key = "PRIMARY KEY (k, first, last)"
    sql = f"CREATE TABLE {{}} (k text, first bigint, last bigint, events int, {key})"
    with closing(sqlite3.connect(tmp_path / "rows.db")) as db, db:
        db.execute(sql.format("sessions"))
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute(sql.format(f"sessions_{emit}"))
    topic = kafka.create(f"retracted-{emit}", 1)
    events = events_of(random.Random(7))
    path = tmp_path / "in.jsonl"
    # Rows of the first run are taken back in the second one, on the state of the first.
    for some, end in ((events[:120], "keep"), (events[120:], "keep")):
        with path.open("a") as file:
            file.writelines(json.dumps(event) + "\n" for event in some)
        ran = run_stream(
            CONFIG.format(
                **{"input": path, "gap": GAP_S, "emit": emit, "least": LEAST, "end": end},
                **{"directory": tmp_path, "postgres": postgres_dsn, "redis": redis_url},
                **{"kafka": kafka.bootstrap, "topic": topic},
            )
        )
        assert [line for line in ran.log if line[0] == "ERROR"] == []
    expected = sorted(sessions_of(events))
    assert len(expected) > 20
    table = DeltaTable(tmp_path / "table").to_pyarrow_table()
    assert rows_of(table.to_pylist()) == expected
    with closing(sqlite3.connect(tmp_path / "rows.db")) as db:
        assert db.execute("SELECT * FROM sessions ORDER BY 1, 2").fetchall() == expected
    with psycopg.connect(postgres_dsn) as connection:
        found = connection.execute(f"SELECT * FROM sessions_{emit} ORDER BY 1, 2").fetchall()
    assert found == expected
    with closing(redis.Redis.from_url(redis_url)) as client:
        kept = [client.get(key) for key in client.scan_iter(f"retracted-{emit}:*")]
    assert rows_of([json.loads(value) for value in kept]) == expected
    # What compaction leaves of a topic: the newest record of each key, if it is no tombstone.
    newest = {record.key: record.value for record in kafka.consume(topic)}
    assert any(value is None for value in newest.values())
    assert rows_of([json.loads(v) for v in newest.values() if v is not None]) == expected
