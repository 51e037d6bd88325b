"""Writes micro-batches to a table of each kind until it is killed: the driver's part of a stream.

A file says which micro-batch was written to all of them last, as Spark's log of commits does. Each
start goes on behind it, with the same rows for the same number.
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

from streamer.config import parse_config
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.engine.driver.writers import make_writers
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.plan import make_plan

ROWS = 20
CONFIG = """
output:
  broker:
    pattern: fan_out
    outputs:
      - delta: { path: ./delta, partition_by: [light] }
      - delta: { path: ./merged, mode: upsert, key: [n] }
      - delta: { path: './routed/${! this.light }' }
      - iceberg:
          catalog: { url: "sqlite:///catalog.db", warehouse: ./warehouse }
          namespace: demo
          table: windows
      - iceberg:
          catalog: { url: "sqlite:///catalog.db", warehouse: ./warehouse }
          namespace: demo
          table: merged
          row_operation: upsert
          identifier_fields: [n]
      - parquet: { path: './rows/${! this.light }' }
"""


def write_until_killed(last: int) -> None:
    """Write micro-batches up to a number, and note each."""
    plan = make_plan(parse_config(CONFIG, "a.yaml"))
    writers = make_writers(plan, Path("journals"), sys.stdout.buffer, stream=lambda: "s")
    tables = [
        (writer, plan.context().build(output).output)
        for writer, output in zip(writers, plan.driver_outputs, strict=True)
        if output.name != "broker"
    ]
    note = Path("committed")
    first = int(note.read_text()) + 1 if note.exists() else 0
    print("ready", flush=True)
    for batch in itertools.count(first):
        if batch > last:
            return
        rows = [
            {"n": number, "light": f"light-{number % 3}", "batch": batch}
            for number in range(batch * ROWS, (batch + 1) * ROWS)
        ]
        for writer, encoder in tables:
            messages = [Message.from_value(row) for row in rows]
            routed = encoder.encode(messages, Execution(lambda: 0))
            writer.write(batch, [Frame(FrameKind.DATA, 0, 0, 0, 0, *one) for one in routed])
        draft = note.with_suffix(".tmp")
        draft.write_text(str(batch))
        os.replace(draft, note)


if __name__ == "__main__":
    Path("journals").mkdir(exist_ok=True)
    write_until_killed(int(sys.argv[1]))
