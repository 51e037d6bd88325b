"""The examples in `configs/` have no findings, and say how editors check them."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.bloblang import compile_mapping
from streamer.components.catalog import build_context
from streamer.config import lint_config, load_config
from streamer.config.read_context import LintOptions
from streamer.config.unit_tests.definitions import is_definition
from streamer.core.durations import SECOND
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.core.timestamps import parse_event_time
from streamer.sdk.processing import run

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "configs").glob("**/*.yaml"))
CONFIGS = [path for path in FILES if not is_definition(path)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_there_is_nothing_to_find(path: Path) -> None:
    assert lint_config(path, env={}, options=LintOptions(deprecated=True)) == ()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_editors_are_told_the_schema(path: Path) -> None:
    first = path.read_text(encoding="utf-8").split("\n", 1)[0]
    name = first.removeprefix("# yaml-language-server: $schema=")
    assert (path.parent / name).resolve().is_file()


def test_the_four_windows_of_the_first_job_are_there() -> None:
    expected = {
        "traffic_light": 10,
        "traffic_light_hourly": 3600,
        "sliding": 30,
        "event_time_late": 10,
    }
    paths = [path for path in CONFIGS if path.stem in expected]
    sizes = {path.stem: load_config(path, env={}).buffer.config["size"] // SECOND for path in paths}
    assert sizes == expected


def test_the_short_example_runs_the_pipeline_of_the_hourly_one() -> None:
    short, hourly = (
        load_config(ROOT / "configs" / f"{name}.yaml", env={})
        for name in ("traffic_light", "traffic_light_hourly")
    )
    assert [p.config for p in short.processors] == [p.config for p in hourly.processors]


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("traffic_light", {"traffic_light", "created_at", "total_cars", "passengers"}),
        ("sliding", {"window_end", "cars", "lights", "most_passengers"}),
        ("event_time_late", {"sensor", "window_end", "readings", "mean_celsius"}),
    ],
)
def test_what_an_example_makes_of_what_it_generates(name: str, output: set[str]) -> None:
    config = load_config(ROOT / "configs" / f"{name}.yaml", env={})
    ex = Execution(now=lambda: 1_800_000_000 * SECOND)
    source = compile_mapping(config.input.config["mapping"])
    made = [source.apply([Message(b"")], 0, ex) for _ in range(200)]
    timestamp = compile_mapping(config.buffer.config["timestamp_mapping"])
    window = [
        message.with_added_metadata(window_end_timestamp="end") for message in made if message
    ]
    times = [parse_event_time(timestamp.query([message], 0, ex)) for message in window]
    assert all(0 <= ex.now() - at <= 20 * SECOND for at in times)
    context = build_context(config.resources)
    batches = list(run(context.build_all(config.processors), [window], ex))
    docs = [message.doc for batch in batches for message in batch]
    assert docs
    assert all(set(doc) == output for doc in docs)
    assert not [message.error for batch in batches for message in batch if message.error]
