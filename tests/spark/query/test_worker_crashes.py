"""A message that ends its worker, on a real Spark: it alone fails, and all others are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark

# The worker is the parent of what its command runs.
CONFIG = """
input: {{ file: {{ paths: ["{source}"] }} }}
buffer: {buffer}
pipeline:
  processors:
    - switch:
        - check: this.n == 77 || this.n == 150
          processors:
            - label: deadly
              command: {{ name: sh, args_mapping: 'root = ["-c", "kill -SEGV $PPID; sleep 9"]' }}
    - catch:
        - mapping: 'root = {{"n": this.n, "error": error(), "by": error_source_label()}}'
output: {{ file: {{ path: "{target}" }} }}
"""


def test_a_message_that_ends_its_worker_fails_and_all_others_are_written(
    run_stream: Any, tmp_path: Path
) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("".join(f'{{"n":{n}}}\n' for n in range(200)))
    ran = run_stream(CONFIG.format(source=source, target=target, buffer="{ none: {} }"))
    written = [json.loads(line) for line in target.read_text().splitlines()]
    assert [line["n"] for line in written] == list(range(200))
    failed = {line["n"]: (line["error"], line["by"]) for line in written if "error" in line}
    said = ("the process that works on it ends (SIGSEGV)", "deadly")
    assert failed == {77: said, 150: said}
    crashed = [count for key, count in ran.counts.items() if "processor_crashed" in str(key)]
    assert sum(crashed) == 2
    [(_, text, fields), _] = [line for line in ran.log if line[1].startswith("A message of")]
    assert text == "A message of 8 bytes ends its worker (SIGSEGV): it will be marked as failed"
    assert (fields["label"], fields["sample"]) == ("deadly", '{"n":77}')
    # So that the micro-batch goes past them when it comes again.
    kept = json.loads((tmp_path / "checkpoint" / "crashes.json").read_text())
    assert kept["micro_batch"] == 0


WINDOWS = """
input: {{ file: {{ paths: ["{source}"] }} }}
buffer: {{ tumbling_window: {{ timestamp_mapping: root = this.ts, size: 10s }} }}
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {{
          {{"sum": json("n").from_all().sum()}}
        }} else {{ deleted() }}
    - switch:
        - check: this.sum == 145
          processors:
            - label: deadly
              command: {{ name: sh, args_mapping: 'root = ["-c", "kill -SEGV $PPID; sleep 9"]' }}
    - catch:
        - mapping: 'root = {{"sum": this.sum, "error": error(), "by": error_source_label()}}'
output: {{ file: {{ path: "{target}" }} }}
spark: {{ shards: 1 }}
"""


def test_a_window_that_ends_its_worker_fails_and_all_others_are_written(
    run_stream: Any, tmp_path: Path
) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("".join(f'{{"n":{n},"ts":{n}}}\n' for n in range(40)))
    ran = run_stream(WINDOWS.format(source=source, target=target))
    written = [json.loads(line) for line in target.read_text().splitlines()]
    failed = {"error": "the process that works on it ends (SIGSEGV)", "by": "deadly"}
    assert written == [{"sum": 45}, {"sum": 145, **failed}, {"sum": 245}, {"sum": 345}]
    crashed = [count for key, count in ran.counts.items() if "processor_crashed" in str(key)]
    assert crashed == [1]
    [fields] = [fields for _, text, fields in ran.log if text.startswith("A message of")]
    # A window that is folded as it comes keeps its first message.
    assert (fields["label"], fields["sample"]) == ("deadly", '{"n":10,"ts":10}')
