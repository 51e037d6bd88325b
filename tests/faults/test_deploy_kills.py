"""kill -9 of the service in the middle of every kind of deploy: the old or the new is left, whole.

The oracle is plain Python and shares no code with the product: events are numbered without gaps,
and each is to come out in exactly one window, unless a deploy was to discard what was open.
"""

from __future__ import annotations

import json
import os
import random
import re
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.faults.service import Service, service

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]

# More are for a run by hand: STREAMER_KILLS=20 pytest tests/faults/test_deploy_kills.py
KILLS = int(os.environ.get("STREAMER_KILLS", "1"))
SEED = int(os.environ.get("STREAMER_SEED", random.randrange(10**6)))

CONFIG = """\
input:
  generate:
    interval: 10ms
    mapping: |
      root.id = count("id") - 1
      root.at = now()
buffer:
  tumbling_window: { timestamp_mapping: root = this.at, size: %(size)s, allowed_lateness: %(late)s }
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {
          {"by": "%(by)s", "ids": json("id").from_all()}
        } else { deleted() }
output: { file: { path: %(out)s, codec: lines } }
spark: { shards: 1 }
"""
OTHER = """\
input: { generate: { interval: 1s, mapping: root = 1 } }
output: { drop: {} }
"""
KEEPING = ("in place", "migrate", "drain", "rollback", "pause", "create", "delete")
LOSING = ("discard", "in place", "discard")


class Setting:
    """What the stream is deployed with, and what a deploy of a kind makes of it."""

    def __init__(self, out: Path) -> None:
        self.values = {"size": "2s", "late": "0s", "by": "0", "out": str(out)}
        self.number = 0

    def text(self) -> str:
        return CONFIG % self.values

    def next(self, kind: str) -> str:
        self.number += 1
        self.values["by"] = str(self.number)
        if kind == "migrate":
            late = {"0s": "1s", "1s": "2s", "2s": "1s"}
            self.values["late"] = late[self.values["late"]]
        elif kind in ("drain", "discard"):
            self.values["size"] = {"2s": "3s", "3s": "2s"}[self.values["size"]]
        return self.text()

    def take(self, text: str) -> None:
        """Be what is deployed, so that the next deploy is one from there."""
        for name, field in (("size", "size"), ("late", "allowed_lateness")):
            found = re.search(rf" {field}: (\w+)", text)
            assert found is not None
            self.values[name] = found[1]


def record(directory: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((directory / "c" / "a" / "streamer.json").read_text())
    except (OSError, ValueError):
        return {}
    return found


def stored(directory: Path, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(f"file:{directory}/c/.service/store.db?mode=ro", uri=True) as db:
        return db.execute(query).fetchall()


def newest(directory: Path) -> int:
    query = "SELECT coalesce(max(number), 0) FROM revisions WHERE stream = 'a'"
    return int(stored(directory, query)[0][0])


def moments(directory: Path, order: random.Random) -> dict[str, Callable[[], bool]]:
    """Return what may have happened when the service is killed, by name."""
    number, generation = newest(directory), record(directory).get("generation", 0)
    until = time.monotonic() + order.uniform(0, 2.5)
    return {
        "any": lambda: time.monotonic() >= until,
        "stored": lambda: newest(directory) > number,
        "draining": lambda: "draining" in record(directory),
        "begun anew": lambda: record(directory).get("generation", 0) > generation,
    }


FITTING = {
    "drain": ("any", "stored", "draining", "begun anew"),
    "discard": ("any", "stored", "begun anew"),
    "in place": ("any", "stored"),
    "migrate": ("any", "stored"),
    "rollback": ("any", "stored"),
}


def request(running: Service, kind: str, text: str) -> None:
    """Ask for a deploy; the service may be killed meanwhile."""
    asked = {
        "in place": ("PUT", "/streams/a", text),
        "migrate": ("PUT", "/streams/a", text),
        "drain": ("PUT", "/streams/a?on_reset=drain", text),
        "discard": ("PUT", "/streams/a?on_reset=discard", text),
        "rollback": ("POST", "/streams/a/rollback?on_reset=drain", None),
        "pause": ("POST", "/streams/a/pause", None),
        "create": ("POST", "/streams/b", OTHER),
        "delete": ("DELETE", "/streams/b", None),
    }
    try:
        with httpx2.Client(base_url=running.client.base_url, timeout=120) as client:
            method, path, body = asked[kind]
            client.request(method, path, content=body)
    except httpx2.HTTPError:
        return


def written(out: Path) -> list[dict[str, Any]]:
    if not out.exists():
        return []
    return [json.loads(line) for line in out.read_bytes().split(b"\n")[:-1]]


def deployed(running: Service) -> str:
    """Return the config that is deployed; its newest revision is that one."""
    number = running.ask("GET", "/streams/a/revisions").json()
    [text] = stored(
        running.log_path.parent,
        "SELECT r.text FROM revisions r JOIN streams s"
        " ON s.id = r.stream AND s.current = r.number WHERE s.id = 'a'",
    )[0]
    assert number, "no revision is left"
    return str(text)


def gets_on(running: Service, out: Path) -> None:
    """What is deployed is what runs: windows come out by it."""
    if running.streams()["a"]["state"] == "paused":
        answer = running.ask("POST", "/streams/a/resume")
        assert answer.status_code == 200, answer.text
    by = deployed(running).partition('{"by": "')[2].partition('"')[0]
    before = len(written(out))
    running.wait_for(
        lambda: any(line["by"] == by for line in written(out)[before:]),
        240,
        f"for a window by {by}: {running.streams()}",
    )


@pytest.mark.parametrize("kinds", [KEEPING, LOSING], ids=["keeping", "discarding"])
def test_after_a_kill_the_old_or_the_new_is_deployed_and_nothing_lost(
    kinds: tuple[str, ...], tmp_path: Path
) -> None:
    print(f"STREAMER_SEED={SEED}")
    order = random.Random(f"{SEED}{kinds}")
    directory, out = tmp_path / "s", tmp_path / "out.jsonl"
    setting = Setting(out)
    # All kinds come before one comes again.
    turns = [kind for _ in range(KILLS) for kind in order.sample(kinds, len(kinds))][:KILLS]
    possible: set[str] = set()
    for turn, kind in enumerate([*turns, None]):
        with service(directory) as running:
            running.wait_running()
            if turn == 0:
                answer = running.ask("POST", "/streams/a", setting.text())
                assert answer.status_code == 200, answer.text
            else:
                assert deployed(running) in possible, "neither the old nor the new"
            b = running.streams().get("b")
            assert b is None or b["active"], b
            assert (directory / "c" / "b").exists() == (b is not None)
            gets_on(running, out)
            if kind is None:
                assert running.stop() == 0
                break
            now = deployed(running)
            setting.take(now)
            rest = stored(directory, "SELECT text FROM revisions WHERE stream = 'a'")
            text = setting.next(kind)
            possible = {now, text} | ({one for (one,) in rest} if kind == "rollback" else set())
            moment = order.choice(FITTING.get(kind, ("any",)))
            print("turn", turn, kind, "killed when", moment)
            reached = moments(directory, order)[moment]
            asking = threading.Thread(target=request, args=(running, kind, text), daemon=True)
            asking.start()
            until = time.monotonic() + 60
            while not reached() and time.monotonic() < until:
                time.sleep(0.005)
            running.kill()
            asking.join(120)
    check(out, gaps=kinds is LOSING)


def check(out: Path, gaps: bool = False) -> None:
    """Hold what came out against what must be."""
    found = Counter(one for line in written(out) for one in line["ids"])
    twice = [one for one, times in found.items() if times > 1]
    assert not twice, f"events that are in two windows: {twice[:9]}"
    missing = set(range(max(found) + 1)) - found.keys()
    assert gaps or not missing, f"events that are missing: {sorted(missing)[:9]}"


def test_a_file_that_was_changed_while_nothing_ran_lets_open_windows_out(tmp_path: Path) -> None:
    directory, out, file = tmp_path / "s", tmp_path / "out.jsonl", tmp_path / "a.yaml"
    setting = Setting(out)
    file.write_text(setting.text())
    for turn in range(2):
        with service(directory, str(file), "-w", "--on-reset", "drain") as running:
            running.wait_running()
            running.wait_for(
                lambda turn=turn: any(line["by"] == str(turn) for line in written(out)),
                240,
                f"for a window by {turn}",
            )
            if turn == 0:
                running.kill()
                file.write_text(setting.next("drain"))
            else:
                assert running.stop() == 0
    check(out)
