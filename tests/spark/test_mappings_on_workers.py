"""Mappings on Spark's workers: what they have read on the driver is there, and failures tell."""

import json

import pytest

from tests.spark import conftest

pytestmark = pytest.mark.spark


@pytest.mark.smoke
def test_imports_files_and_variables_of_the_driver_reach_the_workers(
    run_stream, tmp_path, monkeypatch
):
    files = tmp_path / "m.blobl", tmp_path / "d.txt"
    files[0].write_text('map m {\n  root = file_rel("d.txt").string() + env("STREAMER_HERE")\n}\n')
    files[1].write_text("data ")
    monkeypatch.setenv("STREAMER_HERE", "known")
    make_plan = conftest.make_plan

    def planned(config):
        plan = make_plan(config)
        for file in files:
            file.unlink()
        # The workers' process began before this and has never known the variable.
        monkeypatch.delenv("STREAMER_HERE")
        return plan

    monkeypatch.setattr(conftest, "make_plan", planned)
    ran = run_stream(
        f"""
pipeline:
  processors:
    - label: reader
      mapping: |
        import "{files[0]}"
        root.got = this.apply("m")
        root.sum = 1.uint64() - 2.uint64()
""",
        stdin=b"{}\n{}",
    )
    assert [json.loads(line) for line in ran.lines] == [
        {"got": "data known", "sum": 18446744073709551615}
    ] * 2


def test_the_source_of_a_failure_is_told_behind_a_window(run_stream):
    ran = run_stream(
        """
input:
  stdin: {}
  processors: [{label: first, mapping: root = throw("no")}]
buffer: {system_window: {size: 1h, timestamp_mapping: root = 0}}
pipeline: {processors: [{mapping: 'root = [error_source_label(), error_source_path()]'}]}
""",
        stdin=b"{}",
    )
    assert [json.loads(line) for line in ran.lines] == [["first", "input.processors.0"]]


def test_a_worker_compiles_a_mapping_once_whatever_it_runs(session):
    from streamer.bloblang import compile_mapping
    from streamer.core.execution import Execution
    from streamer.core.message import Message

    mapping = compile_mapping("root.doubled = this.n * 2")

    def run(batches):
        import os

        from streamer.bloblang import mapping as module

        for batch in batches:
            made = [
                mapping.apply([Message(b'{"n":%d}' % n)], 0, Execution(lambda: 0)).raw
                for n in batch.column("id").to_pylist()
            ]
            compiles = module._compile_cached.cache_info().misses
            yield batch.from_pydict({"pid": [os.getpid()], "compiles": [compiles], "raw": made[:1]})

    def rows():
        numbers = session.range(0, 16, 1, numPartitions=8)
        return numbers.mapInArrow(run, "pid long, compiles long, raw binary").collect()

    first, second = rows(), rows()
    before = {row.pid: row.compiles for row in first}
    again = [row for row in second if row.pid in before]
    assert sorted(json.loads(row.raw)["doubled"] for row in first) == list(range(0, 32, 4))
    assert len(before) < len(first), "no worker had a second task"
    assert again, "no worker was used again"
    assert all(row.compiles == before[row.pid] for row in (*first, *again))
