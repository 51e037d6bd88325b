"""Windows of the tests of other systems, from their events and what they give, as whole configs.

The vectors are data, in `tests/data/peers`: facts of those tests, in fields of our own.

- `name`: of the test there.
- `buffer`, or `config` for more than a buffer: the settings that mean the same here.
- `row`, `last`: an expression that makes one row of a window, at its first or its last message;
  `rows`: a mapping for each message.
- `messages`; `repeat`: how many times, each with `x` going on.
- `times` and `until`: the system clock at each message, and at the end, s. Without them the clock
  stands still, and any division into micro-batches must give the same.
- `restart_before`: the number of the message before which the program stops and starts.
- `windows`: the rows that come out, here and there; `repeat_windows`: how many times the first one.
- `dropped`: messages by reason.
- `peer_windows` and `differs`: what comes out there, where it is something else, and the reason.
- `refused`: the field that lint complains of.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamer.config import parse_config
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.message import Message
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.plan import make_plan

DATA = Path(__file__).parents[2] / "data" / "peers"
SEED = random.randrange(1000)
START = 1_700_000_000
"""Of the system clock, Unix s; a stream that sends its own times does not see it."""

Step = tuple[int, list[Any], bool]
"""The time of a micro-batch, ns; its messages; whether a start is ahead of it."""


def vectors() -> Iterator[Any]:
    for path in sorted(DATA.glob("*.yaml")):
        for vector in yaml.safe_load(path.read_text()):
            yield pytest.param(vector, id=f"{path.stem}-{vector['name']}")


VECTORS = list(vectors())
RUNNABLE = [one for one in VECTORS if "refused" not in one.values[0]]
REFUSED = [one for one in VECTORS if "refused" in one.values[0]]


def config_of(vector: dict[str, Any], shards: int) -> str:
    config = dict(vector.get("config") or {"buffer": vector["buffer"]})
    at, row = ("0", "row") if "row" in vector else ("batch_size() - 1", "last")
    if row in vector:
        text = f"root = if batch_index() == {at} {{ {vector[row]} }} else {{ deleted() }}"
    else:
        text = vector.get("rows", "")
    if text:
        config["pipeline"] = {"processors": [{"mapping": text}]}
    return yaml.safe_dump({**config, "spark": {"shards": shards}})


def messages_of(vector: dict[str, Any]) -> list[Any]:
    messages = vector["messages"]
    return [
        {**message, "x": message["x"] + turn * len(messages)} if turn else message
        for turn in range(vector.get("repeat", 1))
        for message in messages
    ]


def steps_of(vector: dict[str, Any], cuts: random.Random | None) -> list[Step]:
    """Return the micro-batches of a vector: of one message each, or as chance has it."""
    messages, restart = messages_of(vector), vector.get("restart_before")
    if "times" in vector:
        times = [*vector["times"], vector["until"]]
        return [
            (round((START * timeless(vector) + time) * SECOND), sent, False)
            for time, sent in zip(times, [*([one] for one in messages), []], strict=True)
        ]
    steps: list[Step] = []
    for number, message in enumerate(messages):
        starts = number == restart
        if steps and not starts and cuts is not None and cuts.random() < 0.7:
            steps[-1][1].append(message)
        else:
            steps.append((START * SECOND, [message], starts))
    return [*steps, (START * SECOND, [], False)]


def timeless(vector: dict[str, Any]) -> bool:
    """Return whether messages have no times of their own, so that the clock may begin anywhere.

    Not at a multiple of everything: sessions and grids are to be as from 1970 on.
    """
    return "ts" not in vector["messages"][0]


def run(vector: dict[str, Any], shards: int, cuts: random.Random | None) -> tuple[list[Any], Any]:
    """Return the rows of a vector, in order, and what was dropped."""
    plan = make_plan(parse_config(config_of(vector, shards), "peer.yaml"))
    stream = ScriptedStream(plan, max_shards=shards)
    rows: list[Any] = []
    steps = steps_of(vector, cuts)
    for number, (time, sent, starts) in enumerate(steps, 1):
        if starts:
            stream.restart()
        some = [ScriptedMessage(Message.from_value(one)) for one in sent]
        outcome = stream.run_micro_batch(time, some, ended=number == len(steps))
        rows += [json.loads(message.raw) for batch in outcome.batches for message in batch]
    return rows, {reason: n for reason, n in stream.snapshot.dropped.items() if n}


def counted(rows: list[Any]) -> Counter[str]:
    return Counter(json.dumps(row, sort_keys=True) for row in rows)


def windows_of(vector: dict[str, Any]) -> list[Any]:
    return vector["windows"] * vector.get("repeat_windows", 1)  # type: ignore[no-any-return]


@pytest.mark.parametrize("vector", RUNNABLE)
def test_windows_are_those_of_the_other_system(vector: dict[str, Any]) -> None:
    rows, dropped = run(vector, 1, None)
    assert rows == windows_of(vector)
    late = vector.get("dropped", {})
    assert {reason: n for reason, n in dropped.items() if reason != "incomplete"} == late
    if "differs" in vector:
        assert vector["differs"] and rows != vector["peer_windows"]


@pytest.mark.parametrize("vector", RUNNABLE)
def test_neither_shards_nor_micro_batches_matter(vector: dict[str, Any]) -> None:
    for number in range(3):
        rows, _ = run(vector, 1 + number, random.Random(SEED + number))
        assert counted(rows) == counted(windows_of(vector)), SEED + number


@pytest.mark.parametrize("vector", REFUSED)
def test_refused_settings_are_refused_here(vector: dict[str, Any]) -> None:
    with pytest.raises(StreamerError) as refused:
        make_plan(parse_config(yaml.safe_dump({"buffer": vector["buffer"]}), "peer.yaml"))
    assert vector["refused"] in str(refused.value)


def test_every_kind_of_vector_is_there() -> None:
    names = [str(one.id) for one in VECTORS]
    assert len(names) == len(set(names))
    assert Counter(name.split("-")[0] for name in names) == {
        "ekuiper": 15,
        "ksqldb": 3,
        "tenzir": 48,
    }
