"""Open windows in the states of shards, and how two states differ; no Spark is needed for it."""

from __future__ import annotations

import json
from typing import Any

from streamer.cli.state import SHOWN_COLUMNS, print_rows
from streamer.config import parse_config
from streamer.core.durations import SECOND
from streamer.core.message import Message
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.plan import make_plan
from streamer.service.monitoring.state_windows import diff_windows, list_state_windows
from tests.docs.test_docs import ROOT, blocks

PAGE = ROOT / "streamer" / "docs" / "earlier-states.md"


def test_the_listing_is_that_of_the_page(capsys: Any) -> None:
    page = blocks(PAGE)
    config = next(one.text for one in page if one.info.startswith("yaml config="))
    lines = next(one.text for one in page if one.info.startswith("json file=")).splitlines()
    plan = make_plan(parse_config(config, "cars.yaml"))
    stream = ScriptedStream(plan)
    stream.run_micro_batch(SECOND, [ScriptedMessage(Message(line.encode())) for line in lines])
    before = list_state_windows(plan, stream.stores)
    print_rows(before, SHOWN_COLUMNS)
    shown = next(one for one in page if one.info == "sh states").prints
    assert capsys.readouterr().out == shown

    later = {"light": "a", "at": "2026-11-21T10:00:12Z"}
    stream.run_micro_batch(2 * SECOND, [ScriptedMessage(Message(json.dumps(later).encode()))])
    after = list_state_windows(plan, stream.stores)
    changes = [(one["change"], one["key"], one["start"]) for one in diff_windows(before, after)]
    assert changes == [
        ("closed", "a", "2026-11-21T10:00:00Z"),
        ("opened", "a", "2026-11-21T10:00:10Z"),
        ("closed", "b", "2026-11-21T10:00:00Z"),
    ]
    assert [one["key"] for one in list_state_windows(plan, stream.stores, "b")] == []
