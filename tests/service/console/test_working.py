"""The console's pages for work on streams that run: results, failed messages, the service."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, Page, expect

from streamer import __version__
from streamer.core.custom_metrics import MetricKey
from streamer.core.durations import SECOND
from streamer.core.message import Message
from streamer.engine.report.failed_messages import FailureSampler
from streamer.engine.report.stream_metrics import Snapshot
from streamer.service.monitoring.stream_view import StreamState
from tests.engine.results.kept import Row, T, portion, store
from tests.service.api.asking import Asking
from tests.service.console.authored import COUNTED, RESULTS, authored
from tests.service.console.chromium import PATIENCE, chromium, opened

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

expect.set_options(timeout=PATIENCE)
BAD = "<img src=x onerror='window.hacked=1'>"
LOOKS = (Path(__file__).parent / "looks.js").read_text()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    with authored(tmp_path_factory.mktemp("working")) as found:
        yield found


@pytest.fixture
def page(browser: Browser, server: Asking) -> Iterator[Page]:
    with opened(browser, f"{server.url}/") as (found, complaints):
        asked: list[str] = []
        found.on("request", lambda request: asked.append(request.url))
        yield found
        assert [one for one in complaints if "the server responded with a status" not in one] == []
        assert [one for one in asked if not one.startswith((server.url, "blob:", "data:"))] == []


def go(page: Page, server: Asking, address: str) -> None:
    page.goto(f"{server.url}/#/{address}")


def looks(page: Page, address: str) -> None:
    """Look whether all has a name and can be read, and nothing is wider than the window."""
    assert page.evaluate(LOOKS) == [], address
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, f"{address} is {wide} pixels too wide"


def test_results_are_found_newest_first_by_key_time_and_sql(page: Page, server: Asking) -> None:
    go(page, server, "streams/orders/results")
    rows = page.locator(".results tbody tr")
    expect(rows).to_have_count(50)
    expect(rows.first).to_contain_text(f'"count":{RESULTS - 1},')
    page.get_by_role("button", name="Next page").click()
    expect(rows).to_have_count(RESULTS - 50)
    expect(rows.last).to_contain_text('"count":0,')
    page.get_by_label("Key", exact=True).fill("ada")
    page.get_by_role("combobox", name="Order").select_option("Oldest first")
    page.get_by_role("button", name="Find").click()
    expect(rows).to_have_count(24)
    expect(rows.first).to_contain_text('"user":"<b>0"')
    # What is asked for is in the address.
    assert page.url.endswith("/results?key=ada&order=oldest")
    page.reload()
    expect(rows).to_have_count(24)
    page.get_by_label("Time of windows").select_option("Between…")
    page.get_by_label("Pick the start").fill("2023-11-14T22:30:00")
    expect(page.get_by_label("Starts at or after")).to_have_value("2023-11-14T22:30:00Z")
    page.get_by_role("button", name="Find").click()
    expect(rows).to_have_count(18)
    page.get_by_label("Starts at or after").fill("soon")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("expected a time")
    page.get_by_label("Time of windows").select_option("Last 15 minutes")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("button", name="Search any time").click()
    expect(rows).to_have_count(24)
    page.get_by_label("Search by").select_option("SQL")
    sql = page.get_by_role("textbox", name="SQL")
    sql.fill("SELECT key, count(*) AS n FROM results GROUP BY key ORDER BY key")
    sql.press("Control+Enter")
    table = page.get_by_role("region", name="Table of results")
    expect(table.get_by_role("columnheader")).to_have_text(["key", "n"])
    expect(table.locator("tbody tr").nth(1)).to_have_text("bob23")
    sql.fill("SELECT key FROM\nresult")
    sql.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text(
        re.compile(r"result does not exist.*LINE 2", re.S)
    )
    go(page, server, "streams/plain/results")
    expect(page.get_by_text("This stream keeps no results")).to_be_visible()


def test_new_results_come_by_themselves_and_leave_the_focus_alone(
    page: Page, server: Asking
) -> None:
    kept = Path(server.service.manager.registry.get("plain").directory) / "results"
    results = store(kept)
    results.write(0, [portion([Row("ada", T, b'{"n":1}', metadata='{"m":1}')])], T)
    go(page, server, "streams/plain/results")
    rows = page.locator(".results tbody tr")
    expect(rows).to_have_count(1)
    page.get_by_text("Metadata", exact=True).click()
    page.get_by_label("Follow").check()
    key = page.get_by_label("Key", exact=True)
    key.focus()
    results.write(1, [portion([Row("bob", T + SECOND, b'{"n":2}')])], T)
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("bob")
    expect(key).to_be_focused()
    # What was opened stays open.
    expect(rows.nth(1).locator("details")).to_have_attribute("open", "")
    shutil.rmtree(kept)


def test_results_are_saved_as_files_and_copied_as_commands(
    page: Page, server: Asking, tmp_path: Path
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    go(page, server, "streams/orders/results?key=bob")
    expect(page.locator(".results tbody tr")).to_have_count(23)
    for form, name in (("CSV", "csv"), ("JSON lines", "jsonl"), ("Parquet", "parquet")):
        page.get_by_label("Format of the file").select_option(form)
        with page.expect_download() as saved:
            page.get_by_role("button", name="Download").click()
        assert re.fullmatch(rf"orders-results-\w+\.{name}", saved.value.suggested_filename)
        path = tmp_path / f"saved.{name}"
        saved.value.save_as(path)
        expect(page.get_by_text("Downloaded 23 results.")).to_be_visible()
        if name == "parquet":
            table = pq.read_table(io.BytesIO(path.read_bytes()))
            assert table.column("key").to_pylist() == ["bob"] * 23
        else:
            lines = path.read_text().splitlines()
            assert len(lines) == 23 + (name == "csv") and "bob" in lines[-1]
    page.get_by_role("button", name="Copy as curl").click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    command = page.evaluate("navigator.clipboard.readText()")
    url = shlex.split(command)[-1]
    assert command.startswith("curl -sS '") and len(server.client.get(url).json()["results"]) == 23
    page.get_by_role("button", name="Copy as CLI").click()
    expect(page.get_by_text("Copied.")).to_have_count(2)
    command = page.evaluate("navigator.clipboard.readText()")
    assert shlex.split(command)[:7] == [
        *("streamer", "query", "--stream", "orders", "--url", server.url, "--key")
    ]


def fail(
    server: Asking, batch: int, *contents: str, meta: Mapping[str, object] | None = None
) -> None:
    """Say that messages have failed in a mapping of `orders`."""
    sampler = FailureSampler()
    for content in contents:
        place = {"label": "per_user", "path": "root.pipeline.processors.0"}
        message = Message(content.encode(), dict(meta or {}))
        sampler.add("marked", place, f"no good: {BAD}", [message])
    body = sampler.encode_samples()
    assert body is not None
    failed = server.service.manager.registry.get("orders").view.failed_messages
    failed.record(batch, 1_700_000_000 * SECOND, [body])


def test_failed_messages_are_shown_with_their_error_and_place(page: Page, server: Asking) -> None:
    go(page, server, "streams/plain/failed")
    expect(page.get_by_text("No message has failed since the service started.")).to_be_visible()
    kafka = {"kafka_topic": "t", "kafka_partition": 3, "kafka_offset": 41}
    fail(server, 1, '{"id":1}', meta=kafka)
    go(page, server, "streams/orders/failed")
    first = page.locator(".sample").first
    expect(first).to_contain_text('"id": 1')
    expect(first).to_contain_text(f"no good: {BAD}")
    expect(first).to_contain_text("t · partition 3 · offset 41")
    expect(first).to_contain_text("went on, marked as failed")
    fail(server, 2, BAD)
    expect(page.locator(".sample")).to_have_count(2)
    expect(first.locator("pre")).to_have_text(BAD)
    page.get_by_label("Filter messages").fill("offset")
    expect(page.get_by_text("No message fits the filter.")).to_be_visible()
    page.get_by_label("Filter messages").fill("")
    first.get_by_role("link", name="per_user").click()
    expect(page.get_by_role("heading", name="group_by_value per_user")).to_be_visible()
    assert page.evaluate("window.hacked") is None


def test_expectations_are_shown_with_their_counts_and_samples(
    page: Page, server: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = server.service.manager.registry.get("orders").view
    place = {"label": "quality", "path": "root.pipeline.processors.1"}
    counted = {"speed_in_range": (40, 2, 2), BAD: (1000, 1, 0)}
    counts: dict[MetricKey, int] = {}
    sampler = FailureSampler()
    for name, numbers in counted.items():
        labels = tuple(sorted({**place, "expectation": name}.items()))
        for figure, number in zip(("passed", "failed", "dropped"), numbers, strict=True):
            counts[f"expectation_{figure}_total", labels] = number
        fate = "expectation_dropped" if numbers[2] else "expectation_warned"
        fields = {**place, "expectation": name}
        sampler.add(fate, fields, f"expectation {name} failed", [Message(b'{"speed":999}')])
    monkeypatch.setattr(view, "current_state", lambda: StreamState(Snapshot(7), counts))
    body = sampler.encode_samples()
    assert body is not None
    view.failed_messages.record(9, 1_700_000_000 * SECOND, [body])
    go(page, server, "streams/orders/failed")
    rows = page.locator(".failure-counts li")
    expect(rows.filter(has_text="speed_in_range")).to_have_text(
        "expectation speed_in_range of quality 2 of 42 failed, 2 messages dropped since the start"
    )
    expect(rows.filter(has_text=BAD)).to_contain_text("1 of 1,001 failed since the start")
    page.get_by_label("Filter messages").fill("speed_in_range")
    sample = page.locator(".sample")
    expect(sample).to_have_count(1)
    expect(sample).to_contain_text("dropped by its expectation")
    expect(sample).to_contain_text("expectation speed_in_range")
    page.get_by_label("Filter messages").fill(f"expectation {BAD}")
    expect(sample).to_have_count(1)
    expect(sample).to_contain_text("went on unmarked; only counted")
    assert page.evaluate("window.hacked") is None
    looks(page, f"{server.url}/#/streams/orders/failed")


def test_the_service_has_a_page_with_its_log_and_its_settings(
    page: Page, server: Asking, tmp_path: Path
) -> None:
    server.api.service_log.add(1_700_000_000 * SECOND, "INFO", "Listening", {"url": BAD})
    for number in range(3):
        server.api.service_log.add(1_700_000_000 * SECOND, "ERROR", f"broke {number}", {})
    go(page, server, "service")
    expect(page.get_by_role("heading", level=1)).to_have_text("Service")
    expect(page.get_by_text(f"streamer {__version__} on")).to_be_visible()
    facts = page.get_by_role("region", name="Facts")
    expect(facts).to_contain_text(f"process {os.getpid()}")
    # Spark does not run here: nothing is said of it, and why.
    expect(facts.get_by_title("Not known: Spark has not started.").first).to_have_text("–")
    costs = page.get_by_role("region", name="Cost of each stream")
    expect(costs.get_by_role("columnheader", name="Busy")).to_have_attribute(
        "aria-sort", "descending"
    )
    expect(costs.get_by_role("link", name="orders")).to_be_visible()
    checkpoint = page.get_by_role("region", name="List of checkpoints").get_by_role("row")
    expect(checkpoint.filter(has_text="orders")).to_contain_text("kB")
    expect(page.get_by_label("Settings").last).to_contain_text('"bearer_auth"')
    expect(page.get_by_role("link", name="OpenAPI")).to_have_attribute(
        "href", f"{server.url}/openapi.json"
    )
    log = page.get_by_role("log")
    expect(log).to_contain_text(f"Listening url={BAD}")
    jump = page.get_by_role("button", name="Next error")
    jump.click()
    expect(log.locator("li").nth(1)).to_be_focused()
    jump.click()
    expect(log.locator("li").nth(2)).to_be_focused()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download").click()
    saved.value.save_as(tmp_path / "log.jsonl")
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["msg"] for line in lines][-1] == "broke 2"
    server.service.manager.registry.refused_files.refuse("bad", "bad.yaml", [BAD], is_change=False)
    page.reload()
    refused = page.get_by_role("region", name="Refused files")
    expect(refused).to_contain_text("1 file refused: show in the list of streams")
    server.service.manager.registry.refused_files.accept("bad")


def test_several_streams_are_paused_and_resumed_and_the_filter_is_in_the_address(
    page: Page, server: Asking
) -> None:
    go(page, server, "?q=a")
    rows = page.locator("tbody tr")
    expect(page.get_by_role("searchbox", name="Filter streams")).to_have_value("a")
    page.get_by_role("searchbox", name="Filter streams").fill("l")
    expect(rows).to_have_count(2)
    assert page.url.endswith("#/?q=l")
    pause = page.get_by_role("button", name="Pause selected")
    expect(pause).to_be_disabled()
    page.get_by_role("checkbox", name="Select all shown").check()
    expect(page.get_by_text("2 streams selected")).to_be_visible()
    pause.click()
    dialog = page.get_by_role("dialog", name="Pause 2 streams?")
    expect(dialog).to_contain_text("filed, plain")
    dialog.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("2 streams are paused.")).to_be_visible()
    assert (server.service.state("filed"), server.service.state("plain")) == ("paused", "paused")
    assert server.service.state("orders") == "running"
    # What is filtered out is not selected any more.
    page.get_by_role("searchbox", name="Filter streams").fill("plain")
    expect(page.get_by_text("1 stream selected")).to_be_visible()
    page.get_by_role("button", name="Resume selected").click()
    expect(page.get_by_text("1 stream is running again.")).to_be_visible()
    server.service.wait_for("plain", "running")
    assert server.service.state("filed") == "paused"
    assert server.ask("POST", "/streams/filed/resume").status_code == 200


def test_streams_have_labels_by_which_they_are_found(page: Page, server: Asking) -> None:
    go(page, server, "streams/plain")
    page.get_by_role("button", name="Labels…").click()
    text = page.get_by_label("One per line, name=value")
    text.fill("team=payments\nbad name=x")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Not saved: the label's name is 'bad name'")
    text.fill("team=payments\ncritical")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Labels…")).to_be_focused()
    page.get_by_role("link", name="team=payments").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_contain_text("critical")
    expect(page.get_by_role("searchbox", name="Filter streams")).to_have_value("team=payments")


def test_a_figure_leads_to_its_metric_its_page_and_its_place_in_the_config(
    page: Page, server: Asking
) -> None:
    go(page, server, "streams/orders")
    tile = page.locator(".tile", has_text="Errors")
    expect(tile.get_by_role("link", name="processor_error")).to_be_visible()
    tile.get_by_role("link", name="failed messages").click()
    expect(page.get_by_role("heading", name="orders")).to_be_visible()
    assert page.url.endswith("/streams/orders/failed")
    go(page, server, "streams/orders")
    page.get_by_title("per_user: show it in the config").click()
    text = page.get_by_role("textbox", name="Config of orders")
    expect(text).to_be_focused()
    line = "e => e.value.slice(0, e.selectionStart).split('\\n').length"
    assert COUNTED.splitlines()[text.evaluate(line) - 1].strip().startswith("group_by_value:")
    go(page, server, "streams/orders")
    page.locator(".tile", has_text="Open windows").get_by_role("link", name="window_open").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("List of metrics")


def test_a_stream_that_is_not_there_leads_to_the_list(page: Page, server: Asking) -> None:
    go(page, server, "streams/nope/results")
    expect(page.get_by_role("heading", name="There is no stream nope")).to_be_focused()
    expect(page).to_have_title("There is no stream nope · streamer")
    page.get_by_role("link", name="All streams").click()
    expect(page.get_by_role("heading", name="Streams")).to_be_visible()


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_all_is_named_and_can_be_read(
    browser: Browser, server: Asking, theme: str, width: int
) -> None:
    with opened(browser, f"{server.url}/", theme, width) as (page, complaints):
        expect(page.get_by_role("checkbox", name="Select orders")).to_be_visible()
        looks(page, "streams")
        header = page.locator(".top").bounding_box()
        assert header is not None and header["height"] < 60
        go(page, server, "streams/orders/results")
        rows = page.locator(".results tbody tr")
        expect(rows).to_have_count(50)
        looks(page, "results")
        if width < 600:
            key, window = (
                rows.first.locator(f"td.{name}").bounding_box() for name in ("key", "window")
            )
            assert key is not None and window is not None
            assert key["y"] + key["height"] <= window["y"], "key and time in one line"
        page.get_by_label("Search by").select_option("SQL")
        page.get_by_role("button", name="Find").click()
        expect(page.locator(".sql-rows tbody tr")).to_have_count(50)
        looks(page, "results in SQL")
        fail(server, 3, '{"id":3}')
        go(page, server, "streams/orders/failed")
        expect(page.locator(".sample").first).to_be_visible()
        looks(page, "failed messages")
        go(page, server, "service")
        expect(page.get_by_role("log")).to_be_visible()
        looks(page, "service")
        assert complaints == []
