"""The streams of which checkpoints are kept: each way in which windows are held, by kind.

All count in messages: number n is the same message in every run, so what comes out of a stream that
was stopped and of one that never was can be compared line by line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.spark.upgrades.several_buffers import (
    CHAINED_BUFFERS,
    ENDLESS_BUFFERS,
    RESULT_BUFFERS,
)

MORE: Final = 300
"""Messages of a stream after the upgrade."""

LEAST: Final = 100
"""Messages of a stream when it is stopped, at least: some windows have closed then."""

_INPUT: Final = """
input:
  generate:
    interval: {interval}
    count: {count}
    mapping: |
      let n = count("n")
      root.n = $n
      root.k = "k" + ($n % 5).string()
      root.at = if $n % 50 == 0 {{ $n * 0.1 - 20 }} else {{ ($n + $n * 7 % 5) * 0.1 }}
"""

_TWO_INPUTS: Final = """
input:
  broker:
    inputs:
      - label: left
        generate:
          interval: {interval}
          count: {count}
          mapping: |
            let n = count("left")
            root = {{ "side": "left", "n": $n, "k": "k" + ($n % 3).string(), "gap": $n % 4 + 1 }}
            root.at = ($n + $n * 7 % 5) * 0.1
      - label: right
        generate:
          interval: {interval}
          count: {count}
          mapping: |
            let n = count("right")
            root = {{ "side": "right", "n": $n, "k": "k" + ($n % 3).string(), "gap": 1 }}
            root.at = ($n + $n * 7 % 5) * 0.1 + 0.05
"""
"""For what tells inputs apart. Nothing is late: what is depends on how far the other input is."""

_WHOLE: Final = """
pipeline:
  processors:
    {group}
    - mapping: |
        root = if batch_index() == 0 {{
          {{
            "k": this.k, "key": meta("window_key"), "from": meta("window_start_timestamp"),
            "to": meta("window_end_timestamp"), "n": json("n").from_all()
          }}
        }} else {{ deleted() }}
"""

_AGGREGATED: Final = """
pipeline:
  processors:
    {group}
    - mapping: |
        root = if batch_index() == 0 {{
          {{
            "k": this.k, "key": meta("window_key"), "to": meta("window_end_timestamp"),
            "count": batch_size(), "sum": json("n").from_all().sum(),
            "max": json("at").from_all().max(), "keys": json("k").from_all().unique().length(),
            "top": json("n").from_all().top_k(2), "by": json("k").from_all().count_by(x -> x),
            "last": json("n").from(-1)
          }}
        }} else {{ deleted() }}
"""

_EACH: Final = """
pipeline: { processors: [] }
"""

_STATE: Final = """
    - label: state
      mapping: |
        root = this
        root.before = lag(this.n)
        root.runs = accumulate("runs", [], l -> l.append(this.n).slice(-3))
        root.mean = acc_avg(this.n)
    - deduplicate: {{ key: '${{! this.n % 40 }}', ttl: 9s }}
    - throttle: {{ period: 1s, max: 2, overflow: mark }}
    - mapping: 'root = this.merge({{"meta": @}})'
"""

_TABLE: Final = """
buffer:
  table_join:
    stream: left
    table: right
    timestamp_mapping: root = this.at
    key_mapping: root = this.k
    type: left
    history: 1h
    allowed_lateness: 1s
    clock_scope: input
    source_idle_timeout: 0s
    end_of_input: END
pipeline:
  processors:
    - mapping: 'root = { "n": [this.left.n, this.right.n], "at": @window_end_timestamp }'
"""
"""A table with all of its versions, and messages that wait for both inputs."""

_GROUP: Final = "- group_by_value: { value: '${! json(\"k\") }' }"
_KEY: Final = "key_mapping: root = this.k"
_TIME: Final = "timestamp_mapping: root = this.at"
_LATENESS: Final = "allowed_lateness: 1s"
_FAR: Final = "876000h"
"""Windows of a hundred years from 1970 on: none closes by the clock on the wall until 2069."""

ENDLESS: Final = "endless"
"""Its windows stay open when the input ends."""

DUE: Final = "system_due"
"""Its windows have ended by the time that it is gone on with, so what they hold depends on time."""


def _variants(name: str, window: str) -> dict[str, str]:
    """Return a kind of window with and without keys, kept whole and pre-aggregated."""
    found = {}
    for keyed, key in (("", ""), ("_keyed", _KEY)):
        for form, processors in (("", _WHOLE), ("_aggregated", _AGGREGATED)):
            fields = ", ".join(filter(None, (_TIME, key, _LATENESS, window, "end_of_input: END")))
            found[f"{name}{keyed}{form}"] = _stream(name, fields, processors)
    return found


def _stream(window: str, fields: str, processors: str, group: str = "") -> str:
    return f"buffer: {{ {window}_window: {{ {fields} }} }}\n" + processors.format(group=group)


def _system(fields: str, processors: str, group: str = "") -> str:
    return _stream("system", f"{fields}, end_of_input: END", processors, group)


def _count(fields: str, processors: str) -> str:
    return _stream("count", fields, processors)


KINDS: Mapping[str, Mapping[str, str]] = {
    "system": {
        "system": _system(f"size: {_FAR}", _WHOLE),
        "system_grouped": _system(f"size: {_FAR}", _WHOLE, _GROUP),
        "system_aggregated": _system(f"size: {_FAR}", _AGGREGATED),
        "system_grouped_aggregated": _system(f"size: {_FAR}", _AGGREGATED, _GROUP),
        "system_sliding": _system(f"size: {_FAR}, slide: 438000h", _WHOLE),
        DUE: _system("size: 3s", _WHOLE),
    },
    "tumbling": _variants("tumbling", "size: 4s")
    | {
        "tumbling_key_clock": _stream(
            "tumbling", f"{_TIME}, {_KEY}, size: 4s, clock_scope: key, end_of_input: END", _WHOLE
        ),
        "tumbling_day": _stream(
            "tumbling",
            f"{_TIME}, {_KEY}, size: 1d, timezone: Europe/Berlin, end_of_input: END",
            _AGGREGATED,
        ),
    },
    "hopping": _variants("hopping", "size: 6s, every: 2s"),
    "sliding": {
        "sliding": _stream(
            "sliding", f"{_TIME}, size: 1s, mode: forward, end_of_input: END", _WHOLE
        ),
        "sliding_keyed": _stream(
            "sliding",
            f"{_TIME}, {_KEY}, size: 1s, mode: forward, allowed_lateness: 1s, end_of_input: END",
            _WHOLE,
        ),
        "sliding_kafka": _stream(
            "sliding", f"{_TIME}, {_KEY}, size: 2s, mode: kafka, end_of_input: END", _WHOLE
        ),
        "sliding_event": _stream(
            "sliding",
            f"{_TIME}, {_KEY}, size: 2s, mode: event, allowed_lateness: 1s, end_of_input: END",
            _WHOLE,
        ),
    },
    "session": _variants("session", "gap: 450ms, max_duration: 6s, idle_timeout: 1h"),
    "count": {
        "count": _count("count: 30", _WHOLE),
        "count_keyed": _count(f"{_KEY}, count: 17", _WHOLE),
        "count_every": _count(f"{_KEY}, count: 12, every: 5", _WHOLE),
    },
    "conditions": {
        "session_limited": _stream(
            "session",
            f"{_TIME}, {_KEY}, {_LATENESS}, gap: 1s, max_count: 7, max_duration: 3s, "
            "max_duration_origin: start, end_of_input: END",
            _WHOLE,
        ),
        "sliding_delayed": _stream(
            "sliding",
            f"{_TIME}, {_KEY}, {_LATENESS}, size: 1s, mode: event, delay: 1s, emit_every: 500ms, "
            "emit_when: this.n % 3 == 0, end_of_input: END",
            _WHOLE,
        ),
        "count_conditional": _count(
            f"{_KEY}, count: 12, every: 5, emit_when: this.n % 3 == 0", _WHOLE
        ),
        "state": _stream(
            "state", f"{_KEY}, begin_when: this.n % 4 == 0, emit_when: this.n % 7 == 0", _WHOLE
        ),
    },
    "state": {
        "state_keyed": (
            f"buffer: {{ keyed_state: {{ {_KEY}, {_TIME}, state_ttl: 30s }} }}\n"
            f"pipeline:\n  processors:{_STATE.format()}"
        ),
    },
    "buffers": {"chained": CHAINED_BUFFERS.replace("{FAR}", _FAR), ENDLESS: ENDLESS_BUFFERS},
    "results": {"results": RESULT_BUFFERS},
    "table": {"table_join": _TABLE},
    "none": {"none": _EACH},
}
"""Buffer and processors of each stream, by kind and name."""


FIRST_VERSION: Final = dict.fromkeys(
    [
        *(*KINDS["state"], *KINDS["buffers"], *KINDS["conditions"]),
        *(*KINDS["results"], *KINDS["table"]),
    ],
    "0.2",
)
"""The first version that has checkpoints of a stream; of all others there are some of 0.1."""


def streams_of(version: str) -> dict[str, str]:
    """Return the streams of which there are checkpoints of a version, by name."""
    return {
        name: text
        for streams in KINDS.values()
        for name, text in streams.items()
        if FIRST_VERSION.get(name, "") <= version
    }


def position(checkpoint: Path) -> int:
    """Return how many messages of each input the micro-batches of a checkpoint have taken."""
    commits = [int(path.name) for path in checkpoint.glob("spark/commits/[0-9]*")]
    if not commits:
        return 0
    text = (checkpoint / "spark" / "offsets" / str(max(commits))).read_text()
    data = json.loads(text.splitlines()[2])["data"]
    return int(data["n"] if "n" in data else min(of_input["n"] for of_input in data.values()))


def config_of(text: str, out: str, count: int = 0) -> str:
    """Return the config of a stream.

    Args:
        text: its buffer and processors, of KINDS.
        out: the path of its output file.
        count: after how many messages in all it ends, with its windows; 0 for one that is to be
            stopped with open windows.
    """
    template = _TWO_INPUTS if "_join" in text else _INPUT
    output = f"output: {{ file: {{ path: {out}, codec: lines }} }}\n"
    if not count:  # Without an end, and with few micro-batches, of which the checkpoint keeps all.
        # So slowly that a machine that takes long to start does not come by ten times the messages.
        of_input, windows = template.format(interval="200ms", count=0), text.replace("END", "keep")
        return of_input + windows + output + "spark: { trigger_interval: 5s }\n"
    return template.format(interval='""', count=count) + text.replace("END", "flush") + output
