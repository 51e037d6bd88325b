"""The windows of a stream in a real browser: sessions on the line of time and in the table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.service.api.asking import Asking, asking
from tests.service.console.chromium import PATIENCE, chromium, opened
from tests.service.console.showing import VISITS, stage

pytestmark = pytest.mark.slow
expect.set_options(timeout=PATIENCE)

LOOKS = (Path(__file__).parent / "looks.js").read_text()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    directory = tmp_path_factory.mktemp("windows")
    path = directory / "visits.yaml"
    path.write_text(VISITS)
    with asking(directory / "state", files={"visits": str(path)}, stage=stage()) as found:
        found.service.wait_for("visits", "running")
        yield found


@pytest.fixture
def page(browser: Browser, server: Asking) -> Iterator[Page]:
    with opened(browser, f"{server.url}/#/streams/visits") as (page, complaints):
        yield page
        assert complaints == []


def answer_requests(server: Asking) -> None:
    """Answer what the page asks of the shards, as a micro-batch would."""
    run: Any = server.service.manager.registry.get("visits").run

    def answer() -> None:
        for text in run.questions.take().splitlines():
            row = ["dan", 0, 0, 104, None, 0, "event_time", None, None, None]
            content = {
                **{"start": 0, "end": 0, "messages": 104, "bytes": None, "mapping": "root = …"},
                "result": {"content": '{"user":"dan","n":104}'},
            }
            fields = {"rows": [row], "total": 1, "complete": True, "contents": [content]}
            run.questions.record([{"answers": {text: fields}}])

    run.questions.wake = answer


def test_sessions_are_drawn_with_their_keys_and_what_closes_them(page: Page) -> None:
    bars = page.locator(".timeline .bar.open")
    expect(bars).to_have_count(4)
    expect(bars.first).to_have_attribute(
        "aria-label", re.compile(r"^Window of ada .* 31 messages, open, closes when event time")
    )
    expect(page.locator(".timeline .bar.open text").first).to_have_text(re.compile("ada"))
    # One that has a single message, and so no length, can be seen all the same.
    widths = page.locator(".timeline .bar rect").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().width)"
    )
    assert len(widths) == 7 and min(widths) >= 6


def test_a_window_whose_result_was_taken_back_is_marked(page: Page) -> None:
    bar = page.locator(".timeline .bar.retracted")
    expect(bar).to_have_attribute(
        "aria-label", re.compile(r"^Window of ivo .* result taken back at")
    )
    assert bar.locator("rect").evaluate("one => getComputedStyle(one).strokeDasharray") != "none"
    page.get_by_text("The windows as a table").click()
    rows = page.get_by_role("region", name="Windows").locator("tbody tr")
    expect(rows.filter(has_text="ivo")).to_contain_text("result taken back at")


def test_labels_of_the_line_overlap_no_other_and_are_not_cut(page: Page) -> None:
    expect(page.locator(".timeline .clock")).to_have_count(2)
    boxes = """all => all.map(one => one.getBoundingClientRect())
      .map(({left, right}) => [left, right]).sort((a, b) => a[0] - b[0])"""
    clocks = page.locator(".timeline .clock text").evaluate_all(boxes)
    assert clocks[0][1] <= clocks[1][0]
    left, right = page.locator(".timeline").evaluate(
        "one => [one.getBoundingClientRect().left, one.getBoundingClientRect().right]"
    )
    for text in [*clocks, *page.locator(".timeline .grid text").evaluate_all(boxes)]:
        assert left <= text[0] and text[1] <= right


def test_the_table_finds_a_key_and_shows_what_is_in_its_window(page: Page, server: Asking) -> None:
    page.get_by_text("The windows as a table").click()
    rows = page.get_by_role("region", name="Windows").locator("tbody tr")
    expect(rows).to_have_count(7)
    page.get_by_role("button", name="Messages").click()
    expect(rows.first).to_contain_text("dan")
    search = page.get_by_role("searchbox", name="Search keys")
    search.fill("a")
    expect(rows).to_have_count(4)  # ada, carol, dan, and fay, which has closed
    search.fill("dan")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("open, closes when event time reaches")
    expect(search).to_be_focused()
    answer_requests(server)
    page.get_by_role("button", name="Show the content of dan").click()
    dialog = page.get_by_role("dialog", name="Window of dan")
    expect(dialog).to_contain_text("the result of the mapping so far")
    expect(dialog.locator("pre")).to_contain_text('"n": 104')
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_role("button", name="Show the content of dan")).to_be_focused()


def test_late_messages_are_shown_with_the_reason_and_a_sample(page: Page) -> None:
    state = page.get_by_role("status").filter(has_text="open windows with")
    expect(state).to_contain_text("60 late messages dropped")
    page.locator("summary").filter(has_text="60 late messages dropped").click()
    row = page.get_by_role("region", name="Dropped messages").locator("tbody tr").first
    expect(row).to_contain_text("All windows that the messages belong to had closed")
    expect(row).to_contain_text('{"user":"gus","page":"/cart"}')
    expect(row).to_contain_text("key gus")


def test_a_pre_aggregated_mapping_shows_its_result_so_far(page: Page, server: Asking) -> None:
    answer_requests(server)
    page.goto(f"{server.url}/#/streams/visits/messages?node=root.pipeline.processors.0")
    samples = page.get_by_role("region", name="Samples")
    expect(samples).to_contain_text("is pre-aggregated")
    expect(samples.locator("pre").first).to_contain_text('"n": 104')
    samples.get_by_role("link", name="the results at the output").click()
    expect(page.get_by_role("heading", name="drop")).to_be_visible()


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_windows_are_named_and_can_be_read(
    browser: Browser, server: Asking, theme: str, width: int
) -> None:
    with opened(browser, f"{server.url}/#/streams/visits", theme, width) as (page, complaints):
        page.get_by_text("The windows as a table").click()
        page.locator("summary").filter(has_text="60 late messages dropped").click()
        expect(page.get_by_role("region", name="Dropped messages")).to_contain_text("gus")
        assert page.evaluate(LOOKS) == []
        wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wider <= 0
        assert complaints == []
