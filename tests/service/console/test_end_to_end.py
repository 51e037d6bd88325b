"""The console on a real service: a stream on Spark, seen in a real browser."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.faults.service import service
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
PATIENCE = 240_000  # ms: Spark has to start first, on a machine that may have much else to do


def test_a_stream_on_spark_is_seen(tmp_path: Path) -> None:
    configs = tmp_path / "configs"
    configs.mkdir()
    (configs / "cars.yaml").write_text(CONFIG)
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
        # A question reaches the shards with a micro-batch, and its answer comes back with it.
        path, query = "/streams/cars/windows", {"content": "true"}
        deadline = time.monotonic() + PATIENCE / 1000
        answer: dict[str, Any] = {"contents": []}
        while not answer["contents"] and time.monotonic() < deadline:
            assert running.client.post(path, params=query).json() == {"asked": True}
            time.sleep(0.5)
            answer = running.client.get(path, params=query).json()
        assert answer["answered_at"] and '"at":' in answer["contents"][0]["last"][0]["content"]
        assert running.stop() == 0
