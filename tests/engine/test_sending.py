"""Streams whose outputs send from the workers: nothing is lost, and nothing overtakes."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from streamer.engine.driver.delivery import Delivery
from streamer.engine.driver.delivery_setup import DeliveredStream
from streamer.engine.driver.writers import make_writers
from streamer.engine.report.metric_labels import EndpointLabels
from tests.servers.http import Asked, Reply, http_server

from .stream import Run, write_lines

CONFIG = """
input:
  file: {paths: [in]}
output:
  %s
spark: {master: "local[2]"}
"""


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # What is tried again need not wait.
    monkeypatch.setattr("streamer.sdk.backoff.random.uniform", lambda low, high: 0.0)
    path = tmp_path / "in"
    path.touch()
    return path


class Failing:
    """Answers with errors for some payloads, so often."""

    def __init__(self, **failures: int) -> None:
        self.failures = {name.encode(): number for name, number in failures.items()}

    def __call__(self, asked: Asked) -> Reply:
        left = self.failures.get(asked.body, 0)
        self.failures[asked.body] = left - 1
        return Reply(500 if left > 0 else 200)


def delivery(run: Run, directory: Any) -> Delivery:
    """Return what writes the files of a stream, as a start of the program does."""
    return Delivery(
        make_writers(run.plan, directory, io.BytesIO()),
        lambda *line: run.log.append(line),
        lambda: False,
        stream=DeliveredStream(endpoint_labels=EndpointLabels.of(run.plan)),
    )


def test_what_a_server_refuses_is_sent_again_in_order(source):
    write_lines(source, [f"{n}".encode() for n in range(40)])
    with http_server(Failing(**{"3": 4, "17": 1})) as server:
        run = Run(CONFIG % f"http_client: {{url: '{server.url}', retries: 0, max_in_flight: 1}}")
        run.step(0)
    assert server.bodies == [
        *(b"%d" % n for n in range(3)),
        *[b"3"] * 5,
        *(b"%d" % n for n in range(4, 17)),
        *[b"17"] * 2,
        *(b"%d" % n for n in range(18, 40)),
    ]
    counts = run.delivery.metrics.counts
    place = (("label", ""), ("path", "root.output"))
    assert (counts["output_sent", place], counts["output_error", place]) == (40, 5)
    assert counts["output_batch_sent", place] == 40
    [_, text, fields] = run.said("Failed to send message to http_client")[0]
    assert "unexpected response code (500)" in text and fields["path"] == "root.output"


def test_of_several_pieces_each_keeps_its_order(source):
    lines = [b"%05d %s" % (n, b"x" * 50_000) for n in range(80)]
    write_lines(source, lines)
    with http_server(Failing(**{line.decode(): 1 for line in lines[::20]})) as server:
        run = Run(CONFIG % f"http_client: {{url: '{server.url}', retries: 0, max_in_flight: 1}}")
        batch = run.step(0)
    assert len(run.source.split(batch.start, batch.end, 3)) > 1
    taken = list(dict.fromkeys(server.bodies))
    assert (taken, len(server.bodies)) == (lines, 84)


def test_batches_are_as_large_as_the_policy_says_across_all_that_a_task_reads(source):
    # Several blocks of lines are read one after the other.
    write_lines(source, [b"a" * 50_000] * 100)
    with http_server() as server:
        run = Run(
            CONFIG % f"http_client: {{url: '{server.url}/${{! batch_size() }}', max_in_flight: 1, "
            "batch_as_multipart: true, batching: {count: 30}}"
        )
        batch = run.step(0)
    sizes = [int(asked.path[1:]) for asked in server.asked]
    pieces = len(run.source.split(batch.start, batch.end, 3))
    assert (sum(sizes), max(sizes)) == (100, 30)
    assert len([size for size in sizes if size < 30]) <= pieces


def test_files_inside_of_other_outputs_are_exact_when_a_micro_batch_is_replayed(source, tmp_path):
    write_lines(source, [b"a", b"b", b"c"])
    text = (
        "broker: {outputs: [file: {path: all.txt}, "
        "switch: {cases: [{check: 'content() == \"b\"', output: {file: {path: b.txt}}}, "
        "{output: {file: {path: '${! content() }.one', codec: all-bytes}}}]}]}"
    )
    run = Run(CONFIG % text)
    assert run.source is not None
    for again in range(3):
        # The program is killed after it has written, and before the micro-batch is committed.
        start = Run(CONFIG % text)
        start.delivery = delivery(start, tmp_path)
        start.step(0)
        assert (tmp_path / "all.txt").read_bytes() == b"a\nb\nc\n", again
        assert (tmp_path / "b.txt").read_bytes() == b"b\n"
        assert (tmp_path / "a.one").read_bytes() == b"a"


def test_a_message_that_a_server_refuses_falls_back_to_a_file(source, tmp_path):
    write_lines(source, [b"a", b"b", b"c"])
    with http_server(Failing(b=99)) as server:
        run = Run(
            CONFIG % f"fallback: [{{http_client: {{url: '{server.url}', retries: 1, "
            "retry_period: 1ms, max_in_flight: 1}}, "
            "{file: {path: refused.txt}, "
            "processors: [mapping: 'root = content() + \" \" + @fallback_error']}]"
        )
        run.delivery = delivery(run, tmp_path)
        run.step(0)
    assert server.bodies == [b"a", b"b", b"b", b"c"]
    written = (tmp_path / "refused.txt").read_text()
    assert written.startswith(f"b {server.url}: HTTP request returned") and written.count("\n") == 1
    counts = run.delivery.metrics.counts
    sent = {
        dict(labels)["path"]: number
        for (name, labels), number in counts.items()
        if name == "output_sent"
    }
    assert sent == {"root.output.fallback.0": 2, "root.output.fallback.1": 1}


def test_late_messages_go_to_an_output_of_any_kind(source):
    write_lines(
        source,
        [{"ts": 1700000001, "n": 1}, {"ts": 1700000030, "n": 2}, {"ts": 1700000001, "n": 3}],
    )
    with http_server() as server:
        run = Run(
            "input: {file: {paths: [in]}}\n"
            "buffer: {tumbling_window: {size: 10s, timestamp_mapping: root = this.ts, "
            "late_output: late}}\n"
            "output: {stdout: {}}\n"
            "output_resources: [{label: late, broker: {outputs: ["
            f"http_client: {{url: '{server.url}'}}, stdout: {{}}]}}}}]\n"
        )
        run.step(1700000100 * 10**9)
        write_lines(source, [{"ts": 1700000002, "n": 4}])
        run.step(1700000101 * 10**9)
    assert [json.loads(body)["n"] for body in server.bodies] == [3, 4]
    assert [line["n"] for line in run.printed(2)] == [3, 4]


def test_nothing_is_sent_to_real_outputs_when_a_script_is_played(source):
    from streamer.config import parse_config
    from streamer.core.message import Message
    from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
    from streamer.plan import make_plan

    with http_server() as server:
        plan = make_plan(
            parse_config(
                CONFIG % f"fallback: [http_client: {{url: '{server.url}'}}, file: {{path: f}}]"
            )
        )
        outcome = ScriptedStream(plan).run_micro_batch(0, [ScriptedMessage(Message(b"a"))])
    assert [message.raw for batch in outcome.batches for message in batch] == [b"a"]
    assert server.asked == [] and not (source.parent / "f").exists()


@pytest.mark.parametrize("buffer", ["tumbling_window", "session_window"])
def test_windows_that_close_at_several_times_are_put_into_one_batch(source, buffer):
    size = "gap: 1s" if buffer == "session_window" else "size: 1s"
    write_lines(source, [{"ts": 1700000000 + 10 * n, "n": n} for n in range(20)])
    with http_server() as server:
        run = Run(
            "input: {file: {paths: [in]}}\n"
            f"buffer: {{{buffer}: {{{size}, timestamp_mapping: root = this.ts, "
            "key_mapping: root = this.n}}\n"
            f"output: {{http_client: {{url: '{server.url}', max_in_flight: 1, batching: "
            "{count: 100, processors: [{archive: {format: json_array}}]}}}\n"
            "spark: {shards: 1}\n"
        )
        run.step(1700001000 * 10**9)
    [body] = server.bodies
    assert [one["n"] for one in json.loads(body)] == [*range(20)]
