"""A drain that a crash has broken off goes on with what its config had read."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamer.bloblang import compile_mapping
from streamer.config import parse_config
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.plan import make_plan
from streamer.service.run import revision_switch
from streamer.spark.checkpoint.checkpoint import Checkpoint
from streamer.spark.checkpoint.generations import Drain, begin_drain


def test_mappings_of_a_drain_that_goes_on_read_what_they_have_read_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = tmp_path / "names.txt"
    names.write_text("former")
    mapping = f'root = file("{names}").string()'
    text = (
        "input: {stdin: {}}\nbuffer: {tumbling_window: {size: 1s}}\n"
        f"pipeline: {{processors: [{{mapping: '{mapping}'}}]}}\n"
    )
    config = parse_config(text, "a.yaml")
    plan = make_plan(config)
    checkpoint = Checkpoint(tmp_path / "c")
    checkpoint.bind({"shards": 1}, {})
    begin_drain(checkpoint, Drain(plan, keeps_input=True))
    names.write_text("another")
    read: list[Any] = []

    def drain_windows(*_: Any) -> Any:
        compiled = compile_mapping(mapping)
        read.append(compiled.query([Message(b"")], 0, Execution(lambda: 0)))
        return SimpleNamespace(input="input")

    monkeypatch.setattr(revision_switch, "drain_windows", drain_windows)
    host: Any = SimpleNamespace(checkpoint=checkpoint)
    done = revision_switch.finish_drain(host, plan, 1.0, lambda: False, lambda *_: None)
    assert (done, read) == ("input", ["former"])
    assert compile_mapping(mapping).query([Message(b"")], 0, Execution(lambda: 0)) == "another"
    checkpoint.close()
