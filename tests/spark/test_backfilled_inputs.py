"""Kafka by time, objects and tables: streamed on Spark once, and backfilled, with the same rows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyarrow import parquet

from streamer.engine.report.stream_metrics import Snapshot
from tests.connectors.aws.test_s3 import make_bucket
from tests.connectors.tables.table_kinds import open_catalog
from tests.servers.aws import Aws, aws_server
from tests.servers.kafka import Kafka, Record
from tests.service.backfill.made_events import MONTH_S, NEW_YEAR_S, make_events, read_rows
from tests.spark.conftest import Runner

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))
COUNT = 1_200
_MAX_STARTS = 5
TIME = "timestamp_mapping: root = this.t, key_mapping: root = this.k"
SLIDING = f"sliding_window: {{{TIME}, size: 5h, mode: forward, allowed_lateness: 1h}}"
SESSION = f"session_window: {{{TIME}, gap: 2h30m, allowed_lateness: 1h}}"
HOPPING = f"hopping_window: {{{TIME}, size: 9h, every: 2h, allowed_lateness: 3h}}"
RESULTS = """
pipeline:
  processors:
    - mapping: |
        root.key = @window_key
        root.start = @window_start_timestamp
        root.end = @window_end_timestamp
        root.ids = json("id").from_all()
        root = if batch_index() > 0 { deleted() }
output:
  file: {path: results.jsonl, codec: lines}
spark: {shards: 2, master: "local[2]"}
"""
Events = Sequence[dict[str, object]]


def make_delta(events: Events, directory: Path) -> str:
    for first in range(0, len(events), 300):
        rows = pa.Table.from_pylist(list(events[first : first + 300]))
        write_deltalake(f"{directory}/table", rows, mode="append")
    return f"delta: {{path: {directory}/table, read_once: true}}"


def make_iceberg(events: Events, directory: Path) -> str:
    catalog = open_catalog(directory)
    catalog.create_namespace("demo")
    rows = pa.Table.from_pylist(list(events))
    table = catalog.create_table("demo.rows", rows.schema)
    for first in range(0, len(events), 300):
        table.append(rows.slice(first, 300))
    address = f"{{url: 'sqlite:///{directory}/catalog.db', warehouse: '{directory}/lake'}}"
    return f"iceberg: {{catalog: {address}, namespace: demo, table: rows, read_once: true}}"


def make_parquet(events: Events, directory: Path) -> str:
    rows = pa.Table.from_pylist(list(events))
    for number, first in enumerate(range(0, len(events), 300)):
        path = directory / f"rows-{number}.parquet"
        parquet.write_table(rows.slice(first, 300), path, row_group_size=50)
    return "parquet: {paths: ['rows-*.parquet']}"


def make_objects(events: Events, aws: Aws) -> str:
    fields = make_bucket(aws, "backfilled")
    client = aws.client("s3")
    for number, first in enumerate(range(0, len(events), 100)):
        body = "".join(json.dumps(one) + "\n" for one in events[first : first + 100])
        client.put_object(Bucket="backfilled", Key=f"{number:03}.jsonl", Body=body.encode())
    return f"aws_s3: {{{fields}, scanner: {{lines: {{}}}}}}"


TABLES = {
    "delta": (make_delta, SLIDING),
    "iceberg": (make_iceberg, SESSION),
    "parquet": (make_parquet, HOPPING),
}


@pytest.fixture(scope="module")
def aws() -> Iterator[Aws]:
    with aws_server() as running:
        yield running


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def backfill(directory: Path, *more: str, kill: bool = False) -> str:
    """Run a backfill of two processes to its end, killed on the way where that is wanted."""
    command = [
        *(sys.executable, "-m", "streamer", "backfill", "config.yaml", "--work", "work"),
        *("--ranges", "10", "--processes", "2", "--micro-batch", "30", *more),
    ]
    if kill:
        kill_on_the_way(command, directory)
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert not (directory / "work").exists()
    return done.stderr


def kill_on_the_way(command: list[str], directory: Path) -> None:
    """Kill a backfill that has read a part; one that was too fast is begun anew."""
    for _ in range(_MAX_STARTS):
        with subprocess.Popen(command, cwd=directory, stderr=subprocess.DEVNULL) as running:
            while running.poll() is None:
                if len([*directory.glob("work/segments/*.packs")]) >= 3:
                    running.kill()
                    break
                time.sleep(0.01)
        if running.returncode == -signal.SIGKILL and (directory / "work").exists():
            return
        assert running.returncode in (0, -signal.SIGKILL)
        (directory / "results.jsonl").unlink()
    pytest.fail(f"{_MAX_STARTS} backfills were faster than their kills")


def take_rows(directory: Path) -> list[str]:
    """Return the results, and remove their file."""
    rows = read_rows(directory / "results.jsonl")
    (directory / "results.jsonl").unlink()
    return rows


@pytest.mark.sample("backfill-tables")
@pytest.mark.parametrize("name", [*TABLES, "aws_s3"])
def test_tables_and_objects_give_the_rows_of_the_stream(
    name: str, here: Path, run_stream: Runner, aws: Aws
) -> None:
    events = make_events(SEED, COUNT)
    if name == "aws_s3":
        source, buffer = make_objects(events, aws), SLIDING
    else:
        make, buffer = TABLES[name]
        source = make(events, here)
    text = f"input:\n  {source}\nbuffer:\n  {buffer}{RESULTS}"
    (here / "config.yaml").write_text(text)
    run_stream(text)
    streamed = take_rows(here)

    backfill(here, kill=True)

    assert take_rows(here) == streamed, f"seed {SEED}"
    assert len(streamed) > 100


def make_topic(kafka: Kafka, name: str, events: Events) -> str:
    """Write events to a topic, each when it arrives; the last one closes the windows before it."""
    topic = kafka.create(f"{name}-{SEED}", partitions=1)
    records = [
        Record(json.dumps(one).encode(), timestamp=_arrival_ms(number, len(events)))
        for number, one in enumerate(events)
    ]
    last = {"id": len(events), "t": NEW_YEAR_S + 2 * MONTH_S, "k": "z"}
    end = (NEW_YEAR_S + 2 * MONTH_S) * 1_000
    kafka.produce(topic, *records, Record(json.dumps(last).encode(), timestamp=end))
    return topic


def _arrival_ms(number: int, count: int) -> int:
    return int((NEW_YEAR_S + MONTH_S * number / count) * 1_000)


def write_topic_config(directory: Path, kafka: Kafka, topic: str, buffer: str) -> str:
    source = (
        f'kafka: {{addresses: ["{kafka.bootstrap}"], topics: [{topic}], '
        f"consumer_group: {topic}, start_from_oldest: true}}"
    )
    text = f"input:\n  {source}\nbuffer:\n  {buffer}{RESULTS}"
    (directory / "config.yaml").write_text(text)
    return text


def only_last_held(snapshot: Snapshot) -> bool:
    return snapshot.batch >= 0 and snapshot.held == 1


@pytest.mark.sample("backfill-kafka")
@pytest.mark.parametrize("buffer", [SLIDING, SESSION], ids=["sliding", "session"])
def test_kafka_is_handed_over_to_the_live_stream_at_its_position(
    buffer: str, here: Path, run_stream: Runner, kafka: Kafka
) -> None:
    events = make_events(SEED, COUNT)
    topic = make_topic(kafka, "hand-over", events) if buffer == SLIDING else ""
    topic = topic or make_topic(kafka, "hand-over-sessions", events)
    text = write_topic_config(here, kafka, topic, buffer)
    run_stream(text, checkpoint="once", until=only_last_held)
    streamed = take_rows(here)
    to = _format_time(NEW_YEAR_S + MONTH_S * 2 // 3)

    backfill(here, "--to", to, "--hand-over", "live", kill=True)
    handed = read_rows(here / "results.jsonl")
    run_stream(text, checkpoint="live", until=only_last_held)

    rows = take_rows(here)
    assert 50 < len(handed) < len(rows)
    assert rows == streamed, f"seed {SEED}"


def test_kafka_by_time_reads_the_messages_of_that_time_only(
    here: Path, run_stream: Runner, kafka: Kafka
) -> None:
    events = make_events(SEED, COUNT)
    topic = make_topic(kafka, "by-time", events)
    text = write_topic_config(here, kafka, topic, HOPPING)
    run_stream(text, until=only_last_held)
    streamed = take_rows(here)
    bounds = [_format_time(NEW_YEAR_S + MONTH_S * part // 3) for part in (1, 2)]

    parts = []
    for options in (("--to", bounds[0]), ("--from", bounds[0], "--to", bounds[1])):
        report = backfill(here, *options, kill=bool(parts))
        parts.append(take_rows(here))
    read = int(report.partition("estimate: ")[2].partition(" messages")[0].replace(",", ""))
    backfill(here, "--from", bounds[1])
    parts.append(take_rows(here))

    # The last event's own window is open in the stream, and so ends with a backfill only.
    rows = sorted(row for part in parts for row in part if '"key":"z"' not in row)
    assert rows == [row for row in streamed if '"key":"z"' not in row], f"seed {SEED}"
    assert read < COUNT * 0.8


def _format_time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
