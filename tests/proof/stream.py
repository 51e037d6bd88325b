"""The config of a stream under test: windows of events from Kafka, to a sink."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.proof.kinds import Windows

TOPIC = "proof"

_CONFIG = """
http: {http}
input:
  kafka:
    addresses: ["{broker}"]
    topics: [{topic}]
    consumer_group: proof
    start_from_oldest: true
    fail_on_data_loss: {whole}
    {bound}
{windows}
output: {sink}
{more}
output_resources:
  - label: late
    file: {{path: "{late}", codec: lines}}
    processors:
      - mapping: |
          root.reason = meta("window_drop_reason")
          root.raw = content().encode("base64").string()
spark: {spark}
"""
_MAPPING = """
root = if {when} {{
  {{
    "start": meta("window_start_timestamp").or("1970-01-01T00:00:00Z"),
    "end": meta("window_end_timestamp").or("1970-01-01T00:00:00Z"),
    "key": {named},
    "ids": {ids},
    "version": {version},
  }}
}} else {{ deleted() }}
"""
_FIRST = """
root = if batch_index() == 0 {
  { "key": this.key, "ids": json("id").from_all() }
} else { deleted() }
"""


@dataclass(frozen=True)
class Stream:
    """What may differ between streams, and what a row may change.

    Attributes:
        broker: its address.
        windows: its windows.
        buffer: a `buffer` in place of theirs.
        sink: its `output`.
        late: the file that dropped messages go to.
        bound: the messages of a micro-batch at most; 0 for none.
        whole: whether messages that Kafka no longer has end the stream.
        version: stands in every window, for a mapping that changes; an expression.
        more: further parts of the config, as YAML.
        http: of the API.
        master: Spark's.
        environment: of Spark's workers.
        conf: settings of Spark.
    """

    broker: str
    windows: Windows
    sink: str
    late: Path
    buffer: Mapping[str, Any] = field(default_factory=dict)
    bound: int = 0
    whole: bool = True
    version: int | str = 0
    more: str = ""
    http: str = "{enabled: false}"
    master: str = "local[2]"
    environment: str = "packed"
    conf: Mapping[str, str] = field(default_factory=dict)

    def config(self) -> str:
        """Return the config as YAML."""
        spark = {"master": self.master, "environment": self.environment, "conf": dict(self.conf)}
        return _CONFIG.format(
            http=self.http,
            broker=self.broker,
            topic=TOPIC,
            whole=str(self.whole).lower(),
            bound=f"checkpoint_limit: {self.bound}" if self.bound else "",
            windows=_as_yaml(self._parts()),
            more=self.more,
            sink=self.sink,
            late=self.late,
            spark=json.dumps(spark),
        )

    def _parts(self) -> dict[str, Any]:
        """Return the buffers and what stands behind them."""
        windows = self.windows
        mapping = _MAPPING.format(
            when="batch_index() == 0" if windows.whole else "true",
            named=windows.named,
            ids=windows.ids,
            version=self.version,
        )
        behind = {"processors": [*windows.steps, {"mapping": mapping}]}
        if windows.first is None:
            return {"buffer": self.buffer or self._whole_buffer(), "pipeline": behind}
        before = {"processors": [{"mapping": _FIRST}]}
        first = {"label": "first", **_with_late(windows.first), "pipeline": before}
        second = {"label": "second", "from": "first", **windows.buffer, "pipeline": behind}
        return {"buffers": [first, second]}

    def _whole_buffer(self) -> Mapping[str, Any]:
        """Return the buffer of the windows."""
        return _with_late(self.windows.buffer) if self.windows.late else self.windows.buffer


def _with_late(buffer: Mapping[str, Any]) -> dict[str, Any]:
    """Return a buffer of windows, which says where late events go."""
    return {name: {**of, "late_output": "late"} for name, of in buffer.items()}


def _as_yaml(parts: Mapping[str, Any]) -> str:
    """Write fields of the config's top, a line each."""
    return "\n".join(f"{name}: {json.dumps(of)}" for name, of in parts.items())
