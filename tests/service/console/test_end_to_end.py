"""The console on a real service: a stream on Spark, seen in a real browser."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from streamer.cli.main import invoke
from tests.faults.service import Service, service
from tests.service.console.chromium import chromium, opened

pytestmark = pytest.mark.slow

CONFIG = """
input:
  label: cars
  generate: { interval: 200ms, mapping: 'root = {"id": counter(), "at": now().ts_unix()}' }
buffer:
  system_window: { timestamp_mapping: root = this.at, size: 5s, allowed_lateness: 1s }
pipeline:
  processors:
    - label: check
      mapping: 'root = if this.id % 7 == 0 { throw("it is odd") } else { this }'
output: { label: sink, drop: {} }
"""
STEADY = """
input: { generate: { interval: 20ms, mapping: 'root = {"id": counter()}' } }
output: { drop: {} }
"""
SLOW = """
input: { generate: { interval: 20ms, mapping: 'root = {"id": counter()}' } }
pipeline: { processors: [ { label: nap, sleep: { duration: 18ms } }, { mapping: root = this } ] }
output: { drop: {} }
"""
RATE = re.compile(r"(?<![\d.])(4[89](\.\d)?|5[01](\.\d)?|52)/s")
PATIENCE = 240_000  # ms: Spark has to start first, on a machine that may have much else to do


def test_a_stream_on_spark_is_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configs = tmp_path / "configs"
    configs.mkdir()
    for name, text in (("cars", CONFIG), ("steady", STEADY), ("slow", SLOW)):
        (configs / f"{name}.yaml").write_text(text)
    with service(tmp_path / "s", str(configs)) as running, chromium() as browser:
        running.wait_running()
        with opened(browser, str(running.client.base_url)) as (page, complaints):
            page.set_default_timeout(PATIENCE)
            row = page.get_by_role("row", name=re.compile("cars"))
            expect(row).to_contain_text(re.compile(r"[1-9.]+/s in"), timeout=PATIENCE)
            page.get_by_role("link", name="cars").click()
            expect(page.locator(".bar.closed").first).to_be_visible(timeout=PATIENCE)
            node = page.locator(".node-box", has_text="check")
            expect(node).to_contain_text(re.compile(r"\d+ failed"), timeout=PATIENCE)
            node.click()
            failed = page.locator(".sample.has-failed").first
            expect(failed).to_contain_text("it is odd", timeout=PATIENCE)
            expect(failed).to_contain_text("window_end_timestamp")
            page.get_by_role("link", name="Logs").click()
            expect(page.get_by_role("log")).to_contain_text("Messages are sampled for the API")
            assert complaints == []
            read_rates(page, running, capsys)
            assert complaints == []
        inspect_window(running)
        assert running.stop() == 0


def read_rates(page: Page, running: Service, capsys: pytest.CaptureFixture[str]) -> None:
    """A generator of exactly 50 a second reads 50 ± 2 wherever its rate stands."""

    def is_steady() -> bool:
        values = running.ask("GET", "/streams/steady/history?from=2m").json()["figures"]["in"]
        known = [one for one in values if one is not None][-5:-1]
        return len(known) == 4 and all(48 <= one <= 52 for one in known)

    running.wait_for(is_steady, PATIENCE / 1000, "for a steady rate")
    url = str(running.client.base_url)
    assert invoke(["list-streams", "--url", url]) == 0
    listed = capsys.readouterr().out
    [row] = [line.split() for line in listed.splitlines() if line.startswith("steady")]
    assert 48 <= float(row[4]) <= 52 and 48 <= float(row[5]) <= 52, row
    page.goto(f"{url}/#/")
    expect(page.get_by_role("row", name=re.compile("steady"))).to_contain_text(RATE)
    page.goto(f"{url}/#/streams/steady")
    for name in ("In", "Out"):
        tile = page.locator(".tile").filter(has=page.get_by_text(name, exact=True))
        expect(tile).to_contain_text(RATE, timeout=PATIENCE)
    page.get_by_role("link", name="History").click()
    plot = page.get_by_role("slider", name="Messages by time", exact=True)
    expect(plot).to_have_attribute("aria-valuetext", re.compile(f"in {RATE.pattern}"))
    # What takes longer than its messages take to come holds those before it.
    page.goto(f"{url}/#/streams/slow")
    nap = page.locator(".node-box", has_text="nap")
    expect(nap).to_contain_text("holds the others", timeout=PATIENCE)
    expect(page.locator(".node-box", has_text="generate")).to_contain_text("back-pressured")


def inspect_window(running: Service) -> None:
    """A look into an open window, which the next micro-batch answers."""
    # A question reaches the shards with a micro-batch, and its answer comes back with it.
    path, query = "/streams/cars/windows", {"content": "true"}
    deadline = time.monotonic() + PATIENCE / 1000
    answer: dict[str, Any] = {"contents": []}
    while not answer["contents"] and time.monotonic() < deadline:
        assert running.client.post(path, params=query).json() == {"asked": True}
        time.sleep(0.5)
        answer = running.client.get(path, params=query).json()
    assert answer["answered_at"] and '"at":' in answer["contents"][0]["last"][0]["content"]
