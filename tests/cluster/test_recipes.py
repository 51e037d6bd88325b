"""Every config of `configs/` gives the same on a cluster as on one machine.

All run at once, as the streams of one service: here with two threads of this machine, there on
workers that are processes of their own. What comes out is compared line by line, in any order; of
windows that go by the clock on the wall, every message is in exactly one.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.recipes import CLOCKED, KAFKA, NUMBER, POSTS, Recipe, recipes
from tests.faults.service import Service, service
from tests.servers.http import http_server
from tests.servers.kafka.client import Kafka, Record
from tests.servers.spark_cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

# By hand: STREAMER_RECIPES=all; so many that the seed chooses, else.
NUMBER_OF_RECIPES = os.environ.get("STREAMER_RECIPES", "4")
SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))
ALL = {one.name: one for one in recipes()}

Lines = Counter[str]


def chosen() -> list[Recipe]:
    """Return those that run: the hour chooses, but for the job that all begins with."""
    if NUMBER_OF_RECIPES == "all":
        return list(ALL.values())
    rest = [name for name, one in ALL.items() if one.config not in (KAFKA, "traffic_light")]
    names = random.Random(SEED).sample(rest, int(NUMBER_OF_RECIPES) - 1)
    return [ALL["traffic_light"], *(ALL[name] for name in names)]


def test_every_recipe_gives_the_same_on_a_cluster(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"STREAMER_SEED={SEED}")
    some = [one for one in chosen() if one.config != KAFKA]
    for one in some:
        for name, value in one.environment.items():
            monkeypatch.setenv(name, value)
    found: dict[str, dict[str, Lines]] = {}
    with http_server() as server:
        for where, shards, more in (("here", 2, ()), ("there", 4, ("--master", cluster.url))):
            monkeypatch.setenv("ALERTS", f"{server.url}/{where}")
            found[where] = outcomes(some, tmp_path / where, shards, *more)
            posted = [one for one in server.asked if one.path == f"/{where}"]
            for one in some:
                if one.config == POSTS:
                    found[where][one.name] = Counter(alike(asked.body) for asked in posted)
    for one in some:
        here, there = found["here"][one.name], found["there"][one.name]
        print(f"{one.name}: {here.total()} lines here, {there.total()} there")
        if one.config not in CLOCKED:
            assert here.total() > 0, f"{one.name} gives nothing"
            assert there == here, one.name


def outcomes(some: list[Recipe], home: Path, shards: int, *more: str) -> dict[str, Lines]:
    """Run recipes in one service until their inputs have ended; return what each has written."""
    streams = home / "streams"
    streams.mkdir(parents=True)
    for one in some:
        (streams / f"{one.name}.yaml").write_text(one.stream(home, shards))
    began = time.monotonic()
    with service(home / "service", str(streams), *more) as running:
        running.wait_running()

        def over() -> bool:
            states = {name: one["state"] for name, one in running.streams().items()}
            assert "failed" not in states.values(), running.lines()[-20:]
            return all(state == "ended" for state in states.values())

        running.wait_for(over, 900, "for all to end")
        print(home.name, len(some), "streams in", round(time.monotonic() - began, 1), "s")
        for one in some:
            counted = figures(running, one.name)
            sent = sum(map(len, one.sent.values())) or NUMBER
            assert counted["input_received"] == sent, one.name
            if one.config in CLOCKED:
                arithmetic(one, written(home / f"{one.name}.out"), counted)
        assert running.stop() == 0
    return {
        one.name: Counter(
            alike(line)
            for name in (f"{one.name}.out", f"{one.name}-late.out")
            for line in written(home / name)
        )
        for one in some
    }


def written(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines() if path.exists() else []


def alike(line: bytes) -> str:
    return json.dumps(json.loads(line), sort_keys=True)


def figures(running: Service, stream: str) -> Counter[str]:
    """Return a stream's counters, without their labels; of an input without those within it."""
    found: Counter[str] = Counter()
    for line in running.ask("GET", "/metrics").text.splitlines():
        name, _, value = line.rpartition(" ")
        if f'stream="{stream}"' in name and 'path="root.input.' not in name:
            found[name.partition("{")[0]] += float(value)  # type: ignore[assignment]
    return found


def arithmetic(one: Recipe, lines: list[bytes], counted: Mapping[str, Any]) -> None:
    """Hold windows that go by the clock against what was made for them."""
    results: list[dict[str, Any]] = [json.loads(line) for line in lines]
    dropped = counted["window_dropped"]
    if one.config == "sliding":
        # A window begins each 5 s and is 30 s long.
        assert sum(result["cars"] for result in results) == 6 * NUMBER
    elif one.config == "event_time_late":
        assert sum(result["readings"] for result in results) + dropped == NUMBER
    else:
        cars, passengers = Counter[str](), Counter[str]()
        for result in results:
            cars[result["traffic_light"]] += result["total_cars"]
            passengers[result["traffic_light"]] += result["passengers"]
        numbers = range(NUMBER)
        assert cars == Counter(f"light-{n % 5}" for n in numbers)
        assert passengers == {
            f"light-{light}": sum(n % 4 for n in numbers if n % 5 == light) for light in range(5)
        }
    assert counted["output_sent"] == len(results)
    if one.config != "event_time_late":
        assert dropped == 0


CARS = [(light, second, light * second % 5) for light in range(20) for second in range(60)]


def record(car: tuple[int, int, int]) -> Record:
    light, second, passengers = car
    value = {
        "traffic_light": f"light-{light}",
        "created_at": f"2026-01-01T10:00:{second:02}Z",
        "registration_plate": f"AB{second // 2}",
        "passengers": passengers,
    }
    return Record(json.dumps(value).encode(), partition=light % 4)


def has_all(kafka: Kafka, topic: str, expected: Lines) -> bool:
    return len(kafka.consume(topic)) >= expected.total()


@pytest.mark.skipif(NUMBER_OF_RECIPES != "all", reason="by hand: STREAMER_RECIPES=all")
def test_the_recipe_of_kafka_counts_each_light_on_a_cluster(
    tmp_path: Path, cluster: Cluster, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = kafka.create("recipe-lights", partitions=4)
    kafka.produce(source, *map(record, CARS))
    expected: Lines = Counter()
    for light in range(20):
        for end in range(10, 70, 10):
            mine = [one for one in CARS if one[0] == light and end - 10 <= one[1] < end]
            result = {
                "traffic_light": f"light-{light}",
                "created_at": f"2026-01-01T10:{end // 60:02}:{end % 60:02}Z",
                "total_cars": len({second // 2 for _, second, _ in mine}),
                "passengers": sum(passengers for _, _, passengers in mine),
            }
            expected[json.dumps(result, sort_keys=True)] += 1
    monkeypatch.setenv("KAFKA", kafka.bootstrap)
    recipe = ALL[f"{KAFKA}-0"]
    for where, more in (("here", ()), ("there", cluster.options)):
        results = kafka.create(f"recipe-results-{where}")
        text = recipe.text.replace("[traffic-lights]", f"[{source}]")
        text = text.replace("topic: traffic-per-light", f"topic: {results}")
        text = text.replace("consumer_group: traffic-lights", f"consumer_group: {where}")
        streams = tmp_path / where
        streams.mkdir()
        (streams / "lights.yaml").write_text(text)
        with service(tmp_path / f"s-{where}", str(streams), *more) as running:
            running.wait_running()
            running.wait_for(partial(has_all, kafka, results, expected), 300, "for all windows")
            assert running.stop() == 0
        assert Counter(alike(one.value or b"") for one in kafka.consume(results)) == expected
