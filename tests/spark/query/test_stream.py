"""Streams on a real Spark: inputs, ends, restarts, and what bad input does to good input."""

import json
import random
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from streamer.core.errors import StreamAbortedError, StreamerError
from tests.bench.jobs import GROUPS
from tests.bench.traffic import chunks
from tests.processes import children, command

pytestmark = pytest.mark.spark


def soon(seconds: float) -> float:
    """A whole number of Unix seconds from now on, so that nothing is late."""
    return float(int(datetime.now(UTC).timestamp() + seconds))


@pytest.mark.smoke
def test_lines_of_stdin_go_to_stdout_without_a_config(run_stream):
    ran = run_stream("{}", stdin=b"one\ntwo\nthree")
    assert ran.lines == [b"one", b"two", b"three"]
    assert ran.last.messages == 3


@pytest.mark.smoke
def test_a_mapping_keeps_the_order_of_a_file(run_stream, tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_bytes(b"".join(b'{"n":%d}\n' % n for n in range(200_000)))
    target = tmp_path / "out" / "result.txt"
    ran = run_stream(f"""
input: {{file: {{paths: ["{source}"]}}}}
pipeline: {{processors: [{{mapping: 'root = this.n * 2'}}]}}
output: {{file: {{path: "{target}"}}}}
""")
    assert ran.last.messages == 200_000
    assert target.read_bytes().split() == [b"%d" % (2 * n) for n in range(200_000)]


@pytest.mark.sample("a million")
@pytest.mark.parametrize("slide", [None, 10], ids=["tumbling", "sliding"])
def test_the_seeds_example_is_exact_over_a_million_events(run_stream, tmp_path, slide):
    events, size = 1_000_000, 30
    origin = soon(300)
    source = tmp_path / "traffic.jsonl"
    body = b"".join(chunks(events, origin, pace=10_000, seed=random.randrange(10**6)))
    # The two messages of the documentation's page stand among them.
    at = datetime.fromtimestamp(origin, UTC).strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    samples = [
        b'{"traffic_light":"cbf2eafc-806e-4067-9211-97be7e42cee3","created_at":"%s",'
        b'"registration_plate":"AB1C DEF","passengers":%d}\n' % (at, passengers)
        for passengers in (3, 2)
    ]
    source.write_bytes(samples[0] + body + samples[1])
    ran = run_stream(f"""
input: {{file: {{paths: ["{source}"]}}}}
buffer:
  system_window:
    timestamp_mapping: root = this.created_at
    size: {size}s
    {f"slide: {slide}s" if slide else ""}
    end_of_input: flush
{GROUPS}
spark: {{master: "local[2]", shards: 2}}
""")
    expected = oracle(source.read_bytes().splitlines(), size, slide or size)
    found = {}
    for line in ran.lines:
        result = json.loads(line)
        key = (result["created_at"], result["traffic_light"])
        assert key not in found
        found[key] = (result["total_cars"], result["passengers"])
    assert found == expected
    assert ran.last.messages == events + 2 and not ran.last.dropped
    ends = [json.loads(line)["created_at"] for line in ran.lines]
    assert ends == sorted(ends), "windows come out by their end"


def oracle(lines: list[bytes], size: int, slide: int) -> dict:
    """Counts and sums per window and light, in plain Python."""
    plates, passengers = defaultdict(set), defaultdict(int)
    ends_of: dict[str, list[str]] = {}
    for line in lines:
        event = json.loads(line)
        at = event["created_at"]
        if at not in ends_of:
            t = int(datetime.fromisoformat(at).timestamp())
            first = -(-t // slide) * slide
            ends_of[at] = [
                (datetime.fromtimestamp(0, UTC) + timedelta(seconds=end)).strftime(
                    "%Y-%m-%dT%H:%M:%SZ"
                )
                for end in range(first, t + size, slide)
            ]
        for end in ends_of[at]:
            key = (end, event["traffic_light"])
            plates[key].add(event["registration_plate"])
            passengers[key] += event["passengers"]
    return {key: (len(plates[key]), passengers[key]) for key in plates}


WINDOW = """
input: {{file: {{paths: ["{path}"]}}}}
buffer:
  system_window: {{timestamp_mapping: root = this.at, size: 10s, end_of_input: {end}}}
pipeline:
  processors:
    - mapping: |
        root.id = this.id
        root.end = meta("window_end_timestamp")
spark: {{master: "local[2]"}}
"""


def stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_bad_input_never_harms_good_input(run_stream, tmp_path):
    at = stamp(soon(60))
    good = [b'{"id":%d,"at":"%s"}' % (n, at.encode()) for n in range(100)]
    bad = [
        b"not json",
        b'{"id":1,"at":null}',
        b'{"id":1,"at":true}',
        b'{"id":1,"at":"yesterday"}',
        b'{"id":1,"at":1e400}',
        b'{"id":1}',
        b'{"id":1,"at":"2026-11-21"}',
        b"\xff\xfe\x00",
        b"",
        b'{"id":1,"at":"' + b"x" * 10_000_000 + b'"}',
    ]
    mixed = [line for n, line in enumerate(good) for line in (line, bad[n % len(bad)])]
    source = tmp_path / "in.jsonl"
    source.write_bytes(b"\n".join(mixed[:200]) + b"\n")
    (tmp_path / "empty.jsonl").write_bytes(b"")
    config = WINDOW.format(path=tmp_path / "*.jsonl", end="flush")
    ran = run_stream(config)
    assert [json.loads(line)["id"] for line in ran.lines] == list(range(100))
    # A tenth of the bad lines are longer than a line may be, and never get as far as the window.
    assert ran.last.dropped == {"timestamp": 90, "too_long": 10}
    assert ran.last.messages == 200
    for text in ("yesterday", "null", "max_buffer_size"):
        assert ran.said(text), f"no warning names {text}: {ran.log}"


def test_a_long_message_passes_when_the_scanner_allows_it(run_stream, tmp_path):
    at = stamp(soon(60))
    source = tmp_path / "in.jsonl"
    with source.open("wb") as out:
        for n in range(3):
            out.write(b'{"id":%d,"at":"%s","blob":"' % (n, at.encode()) + b"b" * 10_000_000)
            out.write(b'"}\n')
    config = WINDOW.format(path=source, end="flush").replace(
        f'["{source}"]', f'["{source}"], scanner: {{lines: {{max_buffer_size: 20000000}}}}'
    )
    ran = run_stream(config)
    assert [json.loads(line)["id"] for line in ran.lines] == [0, 1, 2]
    assert not ran.last.dropped


@pytest.mark.smoke
def test_late_messages_go_to_late_output(run_stream, tmp_path):
    source = tmp_path / "in.jsonl"
    late = tmp_path / "late.jsonl"
    now = soon(0)
    lines = [{"id": 1, "at": stamp(now + 60)}, {"id": 2, "at": stamp(now - 3600)}, {"id": 3}]
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = (
        WINDOW.format(path=source, end="flush, late_output: late")
        + f"""
output_resources:
  - label: late
    file: {{path: "{late}"}}
    processors:
      - mapping: |
          root.id = this.id
          root.reason = meta("window_drop_reason")
"""
    )
    ran = run_stream(config)
    assert [json.loads(line)["id"] for line in ran.lines] == [1]
    found = [json.loads(line) for line in late.read_text().splitlines()]
    assert sorted((line["id"], line["reason"]) for line in found) == [(2, "late"), (3, "timestamp")]
    assert ran.last.dropped == {"late": 1, "timestamp": 1}


@pytest.mark.smoke
def test_windows_that_are_kept_come_out_after_a_restart(run_stream, tmp_path):
    source = tmp_path / "in.jsonl"
    at = soon(20)
    source.write_text("".join(json.dumps({"id": n, "at": stamp(at)}) + "\n" for n in range(10)))
    kept = run_stream(WINDOW.format(path=source, end="keep"))
    assert kept.lines == [] and kept.last.held == 10 and kept.last.open_windows == 1
    ran = run_stream(WINDOW.format(path=source, end="wait"))
    assert [json.loads(line)["id"] for line in ran.lines] == list(range(10))
    assert ran.last.held == 0 and ran.last.messages == 10


@pytest.mark.smoke
def test_a_buffer_that_does_not_fit_the_checkpoint_is_refused(run_stream, tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps({"id": 1, "at": stamp(soon(60))}) + "\n")
    config = WINDOW.format(path=source, end="keep")
    run_stream(config)
    with pytest.raises(StreamerError, match="system_window.*--checkpoint"):
        run_stream(config.replace("size: 10s", "size: 20s"))


@pytest.mark.smoke
def test_a_failed_message_goes_on_and_is_marked(run_stream):
    ran = run_stream(
        """
pipeline:
  processors:
    - mapping: root = this.a + 1
    - catch:
        - mapping: root.failed = error()
""",
        stdin=b'{"a":1}\n{"a":"x"}\nnope\n',
    )
    assert ran.lines[0] == b"2"
    assert b"failed assignment" in ran.lines[1] and b"failed" in ran.lines[2]
    assert len([level for level, _, _ in ran.log if level == "ERROR"]) == 2


def test_messages_that_failed_before_a_window_pass_it_by(run_stream, tmp_path):
    source = tmp_path / "in.jsonl"
    at = stamp(soon(60))
    source.write_text(f'{{"id":1,"at":"{at}"}}\n{{"id":"x","at":"{at}"}}\n')
    config = (
        WINDOW.format(path=source, end="flush")
        .replace(
            "input: {", 'input: {processors: [{mapping: "root = this\\nroot.id = this.id * 1"}], '
        )
        .replace("root.end =", "root.error = error()\n        root.end =")
    )
    ran = run_stream(config)
    first, second = (json.loads(line) for line in ran.lines)
    assert first["id"] == "x" and first["end"] is None and "number" in first["error"]
    assert second["id"] == 1 and second["end"]


def test_two_files_are_joined_as_the_rules_say_and_each_is_read_from_its_own_place(
    run_stream, tmp_path
):
    chance = random.Random(random.randrange(10**6))
    sides = {"orders": {}, "shipments": {}}
    for side, times in sides.items():
        times |= {f"{side}{n}": (n % 400, 10 * n + chance.randrange(600)) for n in range(2000)}
        lines = (
            json.dumps({"id": name, "key": key, "at": at}) for name, (key, at) in times.items()
        )
        (tmp_path / f"{side}.jsonl").write_text("\n".join(lines) + "\n")
    ran = run_stream(f"""
input:
  broker:
    inputs:
      - label: orders
        file: {{paths: ["{tmp_path}/orders.jsonl"]}}
        processors: [{{mutation: 'root.by = "orders"'}}]
      - label: shipments
        file: {{paths: ["{tmp_path}/shipments.jsonl"]}}
buffer:
  window_join:
    left: orders
    right: shipments
    timestamp_mapping: root = this.at
    key_mapping: root = this.key
    before: 5m
    after: 10m
    type: outer
    allowed_lateness: 24h
pipeline:
  processors:
    - mapping: |
        root = [this.left.id, this.right.id, this.left.by, batch_size()]
spark: {{master: "local[2]", shards: 2}}
""")
    found = [tuple(json.loads(line)) for line in ran.lines]
    pairs = {
        (left, right)
        for left, (key, at) in sides["orders"].items()
        for right, (other, beside) in sides["shipments"].items()
        if key == other and at - 300 <= beside <= at + 600
    }
    assert pairs, "a test of no pairs"
    lone_left = sides["orders"].keys() - {left for left, _ in pairs}
    lone_right = sides["shipments"].keys() - {right for _, right in pairs}
    expected = {(*pair, "orders", 1) for pair in pairs}
    expected |= {(left, None, "orders", 1) for left in lone_left}
    expected |= {(None, right, None, 1) for right in lone_right}
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert ran.last.messages == 4000 and not ran.last.dropped


def test_two_inputs_cannot_share_the_standard_input(run_stream):
    with pytest.raises(StreamerError, match="two inputs read the standard input"):
        run_stream("input: {broker: {copies: 2, inputs: [stdin: {}]}}", stdin=b"one\n")


def test_a_start_that_was_cut_short_while_it_planned_is_no_hindrance(run_stream, tmp_path):
    offsets = tmp_path / "checkpoint" / "spark" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.34aedfe6-1f98-42eb-81c1-903751f5658a.tmp").touch()
    ran = run_stream("input: {generate: {mapping: 'root = 1', count: 3}}\noutput: {stdout: {}}")
    assert ran.lines == [b"1"] * 3


def test_workers_of_both_stages_are_forked_by_one_daemon(run_stream, session, tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps({"id": 1, "at": stamp(soon(60))}) + "\n")
    assert run_stream(WINDOW.format(path=source, end="flush")).lines
    java = session.sparkContext._gateway.proc.pid
    commands = map(command, children(java))
    # Each imports all that workers need.
    assert len([one for one in commands if "streamer.spark.fork_server.worker_daemon" in one]) == 1


def test_a_crash_ends_the_stream_and_another_config_goes_on_from_there(run_stream, tmp_path):
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("".join(f"{n}\n" for n in range(10)))
    text = f"""
input: {{ file: {{ paths: [ {source} ] }} }}
output:
  fallback:
    - broker: {{ outputs: [ {{ file: {{ path: {target} }} }} ] }}
    - drop: {{}}
"""
    crash = """
  processors:
    - switch: [ { check: this == 5, processors: [ { crash: 'it is ${! content() }' } ] } ]
"""
    with pytest.raises(StreamAbortedError, match=r"\.0 ended the stream: it is 5$"):
        run_stream(text + crash, seconds=60)
    assert not target.exists() or not target.read_text()
    run_stream(text)
    assert target.read_text().split() == [str(n) for n in range(10)]


def test_streams_of_one_program_pass_messages_on(run_stream, tmp_path):
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("".join(f"{n}\n" for n in range(10_000)))
    first = f"""
input: {{ file: {{ paths: [ {source} ] }} }}
pipeline: {{ processors: [ {{ mapping: 'meta n = this' }} ] }}
output: {{ inproc: numbers }}
"""
    second = f"""
input: {{ inproc: numbers }}
pipeline: {{ processors: [ {{ mapping: 'root = @n * 2' }} ] }}
output: {{ file: {{ path: {target} }} }}
"""
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(run_stream, first, checkpoint="first", seconds=60)
        run_stream(second, checkpoint="second", until=lambda now: now.messages == 10_000)
        assert sent.result().last.messages == 10_000
    assert target.read_text().split() == [str(2 * n) for n in range(10_000)]
