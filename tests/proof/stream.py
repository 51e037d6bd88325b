"""The config of a stream under test: windows of events from Kafka, to a sink."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.proof.generator import GRACE, SECOND, SIZE
from tests.proof.oracle import Rules

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
buffer: {buffer}
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {{
          {{
            "start": meta("window_start_timestamp"),
            "end": meta("window_end_timestamp"),
            "key": meta("window_key"),
            "ids": json("id").from_all(),
            "version": {version},
          }}
        }} else {{ deleted() }}
output: {sink}
output_resources:
  - label: late
    file: {{path: "{late}", codec: lines}}
    processors:
      - mapping: |
          root.reason = meta("window_drop_reason")
          root.raw = content().encode("base64").string()
spark: {spark}
"""


@dataclass(frozen=True)
class Windows:
    """Of the stream; the times in seconds."""

    size: int = SIZE // SECOND
    every: int = SIZE // SECOND
    lateness: int = GRACE // SECOND

    @property
    def rules(self) -> Rules:
        """The same for the oracle."""
        return Rules(self.size * SECOND, self.every * SECOND, self.lateness * SECOND)

    @property
    def buffer(self) -> dict[str, Any]:
        """The same for the program."""
        hops = self.every < self.size
        fields = {
            "timestamp_mapping": "root = this.at",
            "key_mapping": "root = this.key",
            "size": f"{self.size}s",
            **({"every": f"{self.every}s"} if hops else {}),
            "allowed_lateness": f"{self.lateness}s",
            "late_output": "late",
        }
        return {"hopping_window" if hops else "tumbling_window": fields}


@dataclass(frozen=True)
class Stream:
    """What may differ between streams, and what a row may change.

    Attributes:
        broker: its address.
        buffer: the windows.
        sink: its `output`.
        late: the file that dropped messages go to.
        whole: whether messages that Kafka no longer has end the stream.
        version: stands in every window, for a mapping that changes.
        http: of the API.
        master: Spark's.
        environment: of Spark's workers.
        conf: settings of Spark.
    """

    broker: str
    buffer: Mapping[str, Any]
    sink: str
    late: Path
    whole: bool = True
    version: int = 0
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
            buffer=json.dumps(self.buffer),
            version=self.version,
            sink=self.sink,
            late=self.late,
            spark=json.dumps(spark),
        )
