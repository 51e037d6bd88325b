"""What mappings ask of windows goes to other shards, whatever they ask."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamer.core.durations import SECOND
from streamer.sdk.input.replayable import Limit
from streamer.window import DictStore
from streamer.window.rescale.rescale_state import rescale
from tests.examples import examples

from . import test_folded_keys as keys
from . import test_folded_parts as parts
from .folded import T, rounded
from .stream import Run, write_lines

TURNS = st.lists(st.integers(1, 4), min_size=4, max_size=4)
ASKED = st.lists(
    st.tuples(parts.PARTS, st.sampled_from(parts.AROUND)).map(
        lambda both: f"({both[1].format(both[0])}).catch(this)"
    ),
    min_size=1,
    max_size=4,
)


def rescaled(run: Run, shards: int) -> None:
    """Give a stream that stands still another number of shards."""
    into = [DictStore() for _ in range(shards)]
    assert run.plan.window is not None
    rescale(run.plan.window, run.plan.key is not None, run.state.stores, into)
    run.state.stores = into
    run.plan = replace(run.plan, shards=shards)
    run.delivery.statuses = {}


def outcome(directory: Any, text: str, steps: list[Any], turns: list[int] | None) -> Any:
    """Run micro-batches; return what is printed in each, in no order, and what was counted."""
    path = directory / "cars.jsonl"
    path.write_bytes(b"")
    run = Run(text)
    assert run.plan.aggregation.text is not None, run.plan.aggregation.obstacle
    printed = []
    for number, (second, documents, limit, *_) in enumerate(steps):
        write_lines(path, documents)
        ended = False
        while not ended:
            ended = run.step((T + second) * SECOND, Limit(messages=limit)).ended
            printed.append(run.printed())
        if turns is not None:
            rescaled(run, turns[number])
    run.step((T + 60) * SECOND)
    statuses = list(run.delivery.statuses.values())
    held = sum(status["held"] for status in statuses)
    return [*map(unordered, [*printed, run.printed()])], held, counted(statuses)


def unordered(documents: list[Any]) -> list[str]:
    return sorted(json.dumps(rounded(one, places=True), sort_keys=True) for one in documents)


def counted(statuses: list[Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for status in statuses:
        counters = status["counters"]
        for name, value in [*counters.pop("dropped").items(), *counters.items()]:
            found[name] = found.get(name, 0) + value
    # Each shard counts its part of a window.
    parts = ("emitted_windows", "expired_windows")
    return {name: value for name, value in found.items() if value and name not in parts}


# Of two shards each has numbered its messages, and so both have one of the same number.
SAME_NUMBERS = [
    (0, [b'{"p": '] * 8 + [b'{"plate": "x", "p": 0, "light": "a", "ts": 1700000001}'], 1, False),
    (0, [b'{"p": ', b'{"light": "a", "ts": 1700000001}'], 1, False),
]


@example(
    name="tumbling each",
    asked=['(json("p").from(-1)).catch(this)'],
    steps=SAME_NUMBERS,
    shards=2,
    turns=[1, 1, 1, 1],
)
@settings(max_examples=examples(5, 20), deadline=None)
@given(
    name=st.sampled_from(list(keys.WINDOWS)),
    asked=ASKED,
    steps=keys.STEPS,
    shards=st.integers(1, 3),
    turns=TURNS,
)
def test_windows_of_keys(
    tmp_path_factory, monkeypatch_module, name, asked, steps, shards, turns
) -> None:
    directory = tmp_path_factory.mktemp("stream")
    monkeypatch_module.chdir(directory)
    steps = sorted(steps, key=lambda step: step[0])
    text = keys.config(name, True, True, asked, shards)
    assert outcome(directory, text, steps, turns) == outcome(directory, text, steps, None)


@settings(max_examples=examples(5, 20), deadline=None)
@given(asked=ASKED, steps=parts.STEPS_OF_STREAM, shards=st.integers(1, 3), turns=TURNS)
def test_groups_of_panes(tmp_path_factory, monkeypatch_module, asked, steps, shards, turns) -> None:
    directory = tmp_path_factory.mktemp("stream")
    monkeypatch_module.chdir(directory)
    steps = sorted(steps, key=lambda step: step[0])
    text = parts.CONFIG % ('""', parts.GROUPS, "", ", ".join(asked), shards)
    assert outcome(directory, text, steps, turns) == outcome(directory, text, steps, None)
