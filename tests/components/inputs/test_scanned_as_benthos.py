"""Scanners, codecs, CSV and archives against what Benthos 4.76 itself made of the same bytes.

Each case has files, an input, processors, and the lines that Benthos printed: the content of every
message (in hexadecimal where it is no text), its metadata, its place in the batch, and its error.
Compressed bytes are zlib's and liblz4's here and differ from Benthos's: of those, what they hold.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.core.execution import Execution
from streamer.engine.stage.task_input import run_chunk
from streamer.plan import make_plan
from streamer.sdk.input.replayable import Limit

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data/scanned_as_benthos.jsonl").open(encoding="utf-8")
]
SHOWN = """    - mapping: |
        root = {
          "c": content().string().catch(content().encode("hex")),
          "m": @.without("mod_time", "mod_time_unix"),
          "i": batch_index(),
          "n": batch_size(),
          "e": error()
        }
"""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
@pytest.mark.parametrize("limit", [Limit(), Limit(1)], ids=["at once", "message by message"])
def test_messages_are_those_of_benthos(
    case: dict[str, Any], limit: Limit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, data in case["files"].items():
        Path(name).write_bytes(base64.b64decode(data))
    head = f"input:\n  {case['input']}\npipeline:\n  processors:\n"
    plan = make_plan(parse_config(f"{head}{case['processors']}{SHOWN}output: {{drop: {{}}}}\n"))
    context, ex = plan.context(), Execution(lambda: 0)
    source: Any = context.build(plan.input).continue_from([])
    processors = context.build_all(plan.processors)
    found, at, ended = [], source.initial_offset(), False
    while not ended:
        latest = source.latest_offset(at, 0, limit)
        for piece in source.split(at, latest.offset, 2):
            for chunk in source.read(piece, ex):
                found += [
                    m.raw.decode() for batch in run_chunk(processors, chunk, ex) for m in batch
                ]
        at, ended = latest.offset, latest.is_ended
    assert found == case["expected"]
