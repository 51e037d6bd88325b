"""The list of streams and a stream's page in a real browser, on streams that are pretended."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.service.api.asking import Asking, asking
from tests.service.console.chromium import PATIENCE, chromium, opened
from tests.service.console.showing import files, stage

pytestmark = pytest.mark.slow
expect.set_options(timeout=PATIENCE)

LOOKS = (Path(__file__).parent / "looks.js").read_text()
BAD = "<img src=x onerror='window.hacked=1'>"
EVIL = f"""
input: {{ label: evil, generate: {{ interval: 1s, mapping: 'root = "{BAD.replace("'", "''")}"' }} }}
pipeline: {{ processors: [ {{ label: it, mapping: root = this }} ] }}
output:
  http_client:
    url: http://localhost:1/
    basic_auth: {{ enabled: true, username: ada, password: very-secret-word }}
"""
CHECK = "root.pipeline.processors.0"
SOON = 15_000  # ms: it takes two seconds, on a machine that has much else to do


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    directory = tmp_path_factory.mktemp("shown")
    with asking(directory / "state", files=files(directory, 4), stage=stage()) as found:
        for name in ("mine", "other"):
            body = "input: { generate: { mapping: root = 1 } }\noutput: { drop: {} }\n"
            assert found.ask("POST", f"/streams/{name}", body).status_code == 200
        assert found.ask("POST", "/streams/evil", EVIL).status_code == 200
        yield found


@pytest.fixture
def page(browser: Browser, server: Asking) -> Iterator[Page]:
    with opened(browser, f"{server.url}/") as (page, complaints):
        yield page
        assert complaints == []


def samples(server: Asking, stream_id: str, *found: dict[str, object]) -> None:
    """Say that a task has taken samples, once the page has asked for them."""
    run = server.service.manager.registry.get(stream_id).run
    assert run is not None
    tap = run.tap()
    assert tap is not None
    until = time.monotonic() + PATIENCE / 1000
    while not tap.per_task:
        assert time.monotonic() < until, "nobody asks for samples"
        time.sleep(0.02)
    for one in found:
        tap.record(orjson.dumps([["check", CHECK, [one]]]), 0)


def sample(before: str, after: str, error: str | None = None) -> dict[str, object]:
    made = {"content": after, **({"error": error} if error else {})}
    return {
        "before": [[{"content": before, "metadata": {"kafka_key": before}}]],
        "before_messages": 1,
        "after": [[made]],
        "after_messages": 1,
        "failed": error is not None,
    }


def names(page: Page) -> list[str]:
    return page.locator("tbody th a").all_inner_texts()


def test_the_list_is_sorted_and_filtered(page: Page) -> None:
    expect(page.get_by_role("heading", name="Streams")).to_be_focused()
    expect(page.locator("tbody tr")).to_have_count(7)
    assert names(page) == sorted(names(page))
    page.get_by_role("button", name="Stream", exact=True).click()
    assert names(page) == sorted(names(page), reverse=True)
    head = page.get_by_role("columnheader", name="Stream")
    expect(head).to_have_attribute("aria-sort", "descending")
    row = page.get_by_role("row", name=re.compile("lights"))
    expect(row).to_contain_text(re.compile(r"\dK?/s in"))
    expect(row.get_by_role("img")).to_have_attribute("aria-label", re.compile("in, .* out"))
    expect(row).to_contain_text("running")
    page.get_by_role("searchbox", name="Filter streams").fill("order")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("combobox", name="State").select_option("failed")
    expect(page.get_by_text("No stream fits the filter.")).to_be_visible()


def test_a_stream_is_paused_and_goes_on(page: Page, server: Asking) -> None:
    page.goto(f"{server.url}/#/streams/other")
    page.get_by_role("button", name="Pause other").click()
    dialog = page.get_by_role("dialog", name="Pause other?")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert server.service.state("other") == "running"
    page.get_by_role("button", name="Pause other").click()
    dialog.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("other is paused.")).to_be_visible()
    assert server.service.state("other") == "paused"
    page.get_by_role("button", name="Resume other").click()
    expect(page.get_by_role("button", name="Pause other")).to_be_visible()
    server.service.wait_for("other", "running")


def test_a_stream_is_deleted_once_its_name_is_typed(page: Page, server: Asking) -> None:
    row = page.get_by_role("row", name=re.compile("mine"))
    row.get_by_role("button", name="Delete mine").click()
    dialog = page.get_by_role("dialog", name="Delete mine?")
    expect(dialog.get_by_role("button", name="Delete")).to_be_disabled()
    dialog.get_by_role("textbox").fill("mine")
    dialog.get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    assert "mine" not in server.service.manager.registry.streams()
    # The stream of a file is the file's.
    expect(page.get_by_role("button", name="Delete lights")).to_be_hidden()


def test_the_graph_has_the_rates_and_the_errors_of_each_node(page: Page, server: Asking) -> None:
    page.goto(f"{server.url}/#/streams/orders")
    node = page.locator(".node-box", has_text="check")
    expect(node).to_contain_text(re.compile(r"\dK?/s in · .*\dK?/s out"))
    expect(node).to_contain_text(re.compile(r"\d+ failed"))
    expect(page.locator(".branch-title")).to_contain_text("errored()")
    node.click()
    expect(page.get_by_role("heading", name="mapping check")).to_be_visible()


def test_messages_are_shown_before_and_after_a_node(page: Page, server: Asking) -> None:
    page.goto(f"{server.url}/#/streams/orders/messages?node={CHECK}")
    expect(page.get_by_text("Waiting for messages")).to_be_visible()
    samples(server, "orders", sample('{"id":1}', '{"id":1,"ok":true}'))
    samples(server, "orders", sample('{"id":2}', '{"id":2}', "too much"))
    items = page.locator(".sample")
    expect(items).to_have_count(2)
    expect(items.nth(1)).to_contain_text('"ok": true')
    expect(items.nth(1)).to_contain_text("@kafka_key")
    expect(items.nth(0)).to_contain_text("too much")
    page.get_by_role("checkbox", name="Only what failed").check()
    expect(items).to_have_count(1)
    page.get_by_role("button", name="generate orders").click()
    expect(items).to_have_count(0)
    assert "node=root.input" in page.url


def test_what_is_in_data_is_never_html_and_secrets_are_not_seen(page: Page, server: Asking) -> None:
    managed = server.service.manager.registry.get("evil")
    managed.log("ERROR", BAD, {"path": BAD})
    page.goto(f"{server.url}/#/streams/evil")
    expect(page.locator(".node-box code").first).to_contain_text("<img src=x")
    page.goto(f"{server.url}/#/streams/evil/logs")
    expect(page.get_by_role("log")).to_contain_text(BAD)
    page.goto(f"{server.url}/#/streams/evil/messages?node={CHECK}")
    samples(server, "evil", sample(BAD, f"very-secret-word {BAD}", BAD))
    expect(page.locator(".sample").first).to_contain_text(BAD)
    expect(page.locator(".sample").first).to_contain_text("SECRET_SCRUBBED")
    expect(page.get_by_text("very-secret-word")).to_have_count(0)
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img").count() == 0


def test_windows_stand_on_a_line_of_time(page: Page, server: Asking) -> None:
    page.goto(f"{server.url}/#/streams/lights")
    bars = page.locator(".timeline .bar")
    expect(bars.first).to_have_attribute("aria-label", re.compile(r"Window .* messages, closed at"))
    opened_bar = page.locator(".timeline .bar.open").last
    expect(opened_bar).to_have_attribute("aria-label", re.compile("open, closes at"))
    expect(page.locator(".timeline path.drop title").first).to_contain_text("dropped at")
    line = page.locator(".timeline .clock.now path")
    assert line.count() == 1
    page.locator('.timeline .bar[tabindex="0"]').focus()
    page.keyboard.press("ArrowLeft")
    focused = "document.activeElement.getAttribute('aria-label')"
    assert "Window" in page.evaluate(focused)
    page.get_by_text("The windows as a table").click()
    expect(page.locator(".as-table tbody tr").first).to_contain_text("open, closes at")
    # It goes on, and the focus stays.
    state = page.get_by_role("status").filter(has_text="open window").inner_text()
    assert re.search(r"\d+ late messages dropped", state)
    page.goto(f"{server.url}/#/streams/orders")
    expect(page.get_by_role("heading", name="Pipeline")).to_be_visible()
    expect(page.get_by_role("heading", name="Windows", exact=True)).to_be_hidden()


def test_the_log_grows_and_is_filtered(page: Page, server: Asking) -> None:
    managed = server.service.manager.registry.get("lights")
    managed.log("INFO", "it has begun", {"label": "sensors"})
    page.goto(f"{server.url}/#/streams/lights/logs")
    log = page.get_by_role("log")
    expect(log).to_contain_text("it has begun label=sensors")
    managed.log("ERROR", "it went wrong", {})
    expect(log).to_contain_text("it went wrong")
    page.get_by_role("combobox", name="Levels").select_option("ERROR")
    expect(log.get_by_text("it has begun")).to_be_hidden()
    page.get_by_role("combobox", name="Levels").select_option("DEBUG")
    page.get_by_role("searchbox", name="Filter lines").fill("begun")
    expect(log.get_by_text("it went wrong")).to_be_hidden()
    expect(log.get_by_text("it has begun")).to_be_visible()


def test_one_is_told_when_the_service_is_away_and_when_it_is_back(
    page: Page, server: Asking
) -> None:
    expect(page.locator("tbody tr").first).to_be_visible()
    # The browser says in its console that it got no answer, which is no complaint here.
    # What is a function at the end of an expression would be called.
    page.evaluate("(window.really = fetch, window.fetch = () => Promise.reject(Error()), 0)")
    away = page.get_by_text("The service does not answer")
    expect(away).to_be_visible()
    expect(page.locator("tbody tr").first).to_be_visible()
    page.evaluate("(window.fetch = window.really, 0)")
    expect(away).to_be_hidden()


def test_a_stream_that_is_not_there_and_a_page_that_is_none(page: Page, server: Asking) -> None:
    page.goto(f"{server.url}/#/nowhere")
    expect(page.get_by_role("heading", name="There is no such page")).to_be_focused()
    expect(page).to_have_title("There is no such page · streamer")


def test_without_streams_one_reads_what_to_do(browser: Browser, tmp_path: Path) -> None:
    with asking(tmp_path) as server, opened(browser, f"{server.url}/") as (page, complaints):
        expect(page.get_by_role("heading", name="No streams yet")).to_be_visible()
        expect(page.get_by_text("streamer deploy config.yaml")).to_contain_text(server.url)
        body = "input: { generate: { mapping: root = 1 } }\noutput: { drop: {} }\n"
        server.ask("POST", "/streams/first", body)
        expect(page.get_by_role("link", name="first")).to_be_visible()
        assert complaints == []


def test_one_signs_in_and_out_and_the_token_stays_in_the_tab(
    browser: Browser, tmp_path: Path
) -> None:
    tokens = "[ { name: ci, token_hash: 'ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=' } ]"
    http = f"bearer_auth: {{ enabled: true, tokens: {tokens} }}, root_path: /behind"
    with (
        asking(tmp_path, http) as server,
        opened(browser, f"{server.url}/behind/") as (page, _),
    ):
        token = page.get_by_label("Bearer token")
        # It is asked for what the service takes, and nothing else.
        expect(token).to_be_focused()
        expect(page.get_by_label("Password")).to_have_count(0)
        token.fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_have_text("Wrong token.")
        token.fill("abc")
        token.press("Enter")
        expect(page.get_by_role("heading", name="No streams yet")).to_be_visible()
        assert page.evaluate("Object.keys(localStorage).join() + document.cookie") == ""
        page.reload()
        expect(page.get_by_role("heading", name="No streams yet")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Bearer token")).to_be_visible()
        assert page.evaluate("sessionStorage.length") == 0


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 400)])
def test_all_is_named_and_can_be_read(
    browser: Browser, server: Asking, theme: str, width: int
) -> None:
    with opened(browser, f"{server.url}/", theme, width) as (page, complaints):
        for path, text in (
            ("#/", "lights"),
            ("#/streams/lights", "The windows as a table"),
            ("#/streams/orders", "Pipeline"),
            (f"#/streams/orders/messages?node={CHECK}", "too much"),
            ("#/streams/orders/logs", "Follow"),
        ):
            page.goto(f"{server.url}/{path}")
            if "messages" in path:
                samples(server, "orders", sample('{"id":2}', '{"id":2}', "too much"))
            expect(page.get_by_text(text).first).to_be_visible()
            assert page.evaluate(LOOKS) == [], path
            wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            assert wider <= 0, f"{path} is {wider} pixels too wide"
        assert complaints == []


def test_a_hundred_streams_keep_their_rows(browser: Browser, tmp_path: Path) -> None:
    with (
        asking(tmp_path / "state", files=files(tmp_path, 100), stage=stage()) as server,
        opened(browser, f"{server.url}/") as (page, complaints),
    ):
        rows = page.locator("tbody tr")
        expect(rows).to_have_count(100)
        # Since the page was asked for; most of it is the browser's start of a page.
        assert page.evaluate("performance.now()") < SOON
        page.evaluate("document.querySelectorAll('tbody tr').forEach((row, i) => (row.mark = i))")
        expect(rows.nth(50)).to_contain_text(re.compile(r"\dK?/s in"))
        kept = "[...document.querySelectorAll('tbody tr')].every((row, i) => row.mark === i)"
        assert page.evaluate(kept)
        assert complaints == []
