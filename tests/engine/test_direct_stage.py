"""A stream without windows, without Spark: read, process, encode."""

import pytest

from streamer.sdk.input.replayable import Limit

from .stream import Run, write_lines

CONFIG = """
input:
  file: {paths: [in]}
%s
spark: {master: "local[2]"}
"""


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "in"
    path.touch()
    return path


def test_messages_go_through_in_their_order(source):
    write_lines(source, [{"n": n} for n in range(100)])
    run = Run(CONFIG % "pipeline: {processors: [{mapping: root.m = this.n + 1}]}")
    run.step(0, Limit(messages=30))
    run.step(0, tries=2)
    assert run.printed() == [{"m": n + 1} for n in range(100)]
    assert (run.snapshot.messages, run.snapshot.ended) == (100, True)


def test_processors_run_from_input_to_output(source):
    write_lines(source, [{}])
    text = """
  processors: [{mapping: 'root.way = ["input"]'}]
pipeline: {processors: [{mapping: 'root.way = this.way.append("pipeline")'}]}
output:
  stdout: {}
  processors: [{mapping: 'root.way = this.way.append("output")'}]
"""
    for buffer in ("", "buffer: {memory: {}}\n"):
        run = Run(CONFIG % (text + buffer))
        run.step(0)
        assert run.printed() == [{"way": ["input", "pipeline", "output"]}]


def test_a_line_is_a_batch_of_one(source):
    write_lines(source, [{"n": n} for n in range(3)])
    mapping = "{mapping: 'root = [batch_index(), batch_size()]'}"
    run = Run(CONFIG % f"pipeline: {{processors: [{mapping}]}}")
    run.step(0)
    assert run.printed() == [[0, 1]] * 3


def test_a_batch_policy_makes_batches(source):
    write_lines(source, [{"n": n} for n in range(5)])
    text = """
buffer: {memory: {batch_policy: {enabled: true, count: 2}}}
pipeline: {processors: [{mapping: 'root = json("n").from_all()'}]}
"""
    run = Run(CONFIG % text)
    run.step(0)
    assert run.printed() == [[0, 1], [0, 1], [2, 3], [2, 3], [4]]
    assert run.snapshot.messages == 5


def test_generated_batches_stay_whole():
    text = """
input: {generate: {mapping: 'root.n = count("n")', count: 5, batch_size: 2, interval: ""}}
pipeline: {processors: [{mapping: 'root = json("n").from_all()'}]}
"""
    run = Run(text)
    run.step(0)
    assert run.printed() == [[1, 2], [1, 2], [3, 4], [3, 4], [5]]
    assert run.snapshot.messages == 5


def test_a_message_that_fails_goes_on_and_is_said(source):
    write_lines(source, [{"n": 1}, {"n": "x"}, {"n": 3}])
    run = Run(CONFIG % "pipeline: {processors: [{mapping: root.n = this.n + 1}]}")
    run.step(0)
    assert run.printed() == [{"n": 2}, {"n": "x"}, {"n": 4}]
    [(level, _, fields)] = run.said("failed assignment")
    assert (level, fields["path"]) == ("ERROR", "root.pipeline.processors.0")
    place = (("label", ""), ("path", "root.pipeline.processors.0"))
    assert run.delivery.metrics.counts["processor_error", place] == 1


def test_lines_that_are_left_out_count_as_messages_that_were_dropped(source):
    write_lines(source, [{"n": 1}, {"long": "x" * 70_000}])
    run = Run(CONFIG % "")
    run.step(0)
    assert run.printed() == [{"n": 1}]
    assert (run.snapshot.messages, run.snapshot.dropped) == (2, {"too_long": 1})


def test_what_is_written_stays_in_order_over_pieces(source):
    write_lines(source, [{"n": n, "pad": "x" * 200} for n in range(20_000)])
    run = Run(CONFIG % "pipeline: {processors: [{mapping: root = this.n}]}")
    batch = run.step(0)
    assert len(run.source.split(batch.start, batch.end, 3)) == 3
    assert run.printed() == list(range(20_000))


def test_a_micro_batch_without_data_says_whether_the_input_has_ended(source):
    run = Run(CONFIG % "")
    run.step(0)
    assert run.snapshot.ended and run.snapshot.messages == 0
