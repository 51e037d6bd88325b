"""The charts of a stream's history in a real browser, on streams whose figures are known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from streamer.service.monitoring.stream_figures import MarkerKind
from tests.service.api.asking import Asking, asking
from tests.service.console.chromium import PATIENCE, chromium, opened
from tests.service.console.showing import files, stage
from tests.service.fleet.pretending import GENERATE

pytestmark = pytest.mark.slow
expect.set_options(timeout=PATIENCE)

LOOKS = (Path(__file__).parent / "looks.js").read_text()
EVIL = "refused by <img src=x onerror='window.hacked=1'>"
# All numbers of a chart's line, as the table has them.
COLUMN = """(title) => {
  const charts = [...document.querySelectorAll("figure.chart")];
  const chart = charts.find((one) => one.querySelector("h2").textContent === title);
  return [...chart.querySelectorAll("tbody tr")].map((row) => row.children[1].textContent);
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    directory = tmp_path_factory.mktemp("history")
    with asking(directory / "state", files=files(directory, 2), stage=stage()) as found:
        assert found.ask("POST", "/streams/steady", GENERATE).status_code == 200
        managed = found.service.manager.registry.get("steady")
        managed.figures.mark(MarkerKind.DEPLOY, "revision 2")
        managed.log("ERROR", EVIL, {})
        managed.log("ERROR", EVIL, {})
        yield found


@pytest.fixture
def page(browser: Browser, server: Asking) -> Iterator[Page]:
    with opened(browser, f"{server.url}/#/streams/steady/history") as (page, complaints):
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        yield page
        assert complaints == []
        assert all(url.startswith(server.url) for url in asked)


def steady(texts: list[str]) -> bool:
    """Whether rates are those of a generator of exactly 50 a second."""
    numbers = [float(text.removesuffix("/s")) for text in texts if text != "–"]
    return len(numbers) > 20 and all(48 <= one <= 52 for one in numbers)


def test_charts_have_axes_values_gaps_and_markers(page: Page) -> None:
    messages = page.get_by_role("figure").filter(has_text="Per second, in and out")
    expect(messages.locator(".grid text").filter(has_text="50/s")).to_have_count(1)
    labels = messages.locator(".grid text").filter(has_text=re.compile(r"^\d\d:\d\d:\d\d$"))
    assert labels.count() >= 3
    for title in ("Back pressure", "Duration of a micro-batch", "Latency", "State"):
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
    # What is never known, or never anything but zero, has no chart.
    expect(page.get_by_role("heading", name="Kafka lag")).to_have_count(0)
    messages.get_by_text("Messages as a table").click()
    expect(messages.locator("tbody tr").nth(1)).to_be_visible()
    assert steady(page.evaluate(COLUMN, "Messages"))
    # The stream began ten minutes ago: before, there is a gap, and no zero.
    assert page.evaluate(COLUMN, "Messages")[-1] == "–"
    events = page.locator(".events li")
    expect(events).to_have_count(2)
    expect(events.first).to_contain_text(f"Error (2 times): {EVIL}")
    expect(events.last).to_contain_text("Deployed: revision 2")
    assert page.evaluate("window.hacked") is None
    assert messages.locator("svg .event").count() == 2


def test_values_are_read_by_pointer_and_by_keyboard(page: Page) -> None:
    plot = page.get_by_role("slider", name="Messages by time", exact=True)
    expect(plot).to_have_attribute("aria-valuetext", re.compile("in (5|49).*/s"))
    plot.hover(position={"x": 350, "y": 60})
    tip = plot.locator(".chart-tip")
    expect(tip).to_contain_text(re.compile(r"\d\d:\d\d:\d\d"))
    expect(tip).to_contain_text("in 50/s")
    # All charts show the same moment.
    expect(page.locator(".chart-tip:visible")).to_have_count(page.get_by_role("slider").count())
    page.mouse.move(0, 0)
    expect(tip).to_be_hidden()
    plot.focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    last = int(plot.get_attribute("aria-valuemax") or 0)
    expect(plot).to_have_attribute("aria-valuenow", str(last - 1))
    expect(tip).to_contain_text("in 50/s")
    # A poll moves neither the focus nor the value.
    with page.expect_response(re.compile("/history")):
        pass
    expect(plot).to_be_focused()
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()


def test_ranges_and_another_stream_stay_in_the_address(page: Page, server: Asking) -> None:
    page.get_by_role("button", name="5 min", exact=True).click()
    expect(page.get_by_role("button", name="5 min", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    page.get_by_label("Compare with").select_option("orders")
    messages = page.get_by_role("figure").filter(has_text="Per second, in and out")
    expect(messages.locator(".chart-legend li")).to_have_count(4)
    expect(messages.locator(".chart-legend li").last).to_contain_text("out · orders")
    assert messages.locator(".curve.other").count() == 2
    page.reload()
    expect(page.get_by_label("Compare with")).to_have_value("orders")
    expect(messages.locator(".chart-legend li")).to_have_count(4)
    messages.get_by_text("Messages as a table").click()
    expect(messages.locator("tbody tr").nth(1)).to_be_visible()
    assert steady(page.evaluate(COLUMN, "Messages"))
    page.get_by_role("button", name="1 h").click()
    plot = page.get_by_role("slider", name="Messages by time", exact=True)
    expect(plot).to_have_attribute("aria-valuemax", "179")


def test_the_rate_is_the_same_on_every_page_and_a_reload_keeps_the_lines(
    browser: Browser, server: Asking
) -> None:
    with opened(browser, f"{server.url}/") as (page, complaints):
        row = page.get_by_role("row", name=re.compile("steady"))
        expect(row).to_contain_text("50/s in")
        points = "document.querySelector('svg path.spark.in').getAttribute('d').split('L').length"
        assert page.evaluate(points) > 20
        page.goto(f"{server.url}/#/streams/steady")
        tile = page.locator(".tile").filter(has_text=re.compile("^In"))
        expect(tile).to_contain_text("50/s")
        expect(tile).to_contain_text(re.compile(r"[\d,]+ since \d\d:\d\d:\d\d"))
        expect(tile.get_by_role("img")).to_be_visible()
        assert page.evaluate(points) > 20
        output = page.locator(".node-box").filter(has_text="drop").first
        expect(output).to_contain_text("50/s out")
        expect(output).to_contain_text("busy 75%")
        expect(output).to_contain_text("holds the others")
        expect(page.locator(".node-box.holds").first).to_have_text(re.compile("drop"))
        assert complaints == []


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_the_page_is_named_can_be_read_and_fits(
    browser: Browser, server: Asking, theme: str, width: int
) -> None:
    url = f"{server.url}/#/streams/steady/history?with=orders"
    with opened(browser, url, theme, width) as (page, complaints):
        expect(page.locator("figure.chart").nth(3)).to_be_visible()
        page.get_by_text("Latency as a table").click()
        assert page.evaluate(LOOKS) == []
        wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wider <= 0
        assert complaints == []


def test_a_stream_that_keeps_up_with_kafka_has_a_chart_of_its_lag(
    browser: Browser, server: Asking
) -> None:
    figures = server.service.manager.registry.get("orders").figures
    figures.history.note_gauges(figures.clock(), {"kafka_lag": 0, "kafka_lag:cars/1": 0})
    with opened(browser, f"{server.url}/#/streams/orders/history") as (page, complaints):
        lag = page.get_by_role("figure").filter(has_text="Kafka lag")
        expect(lag.locator(".chart-legend li")).to_have_count(2)
        expect(lag.locator(".chart-legend li").last).to_contain_text("cars/1")
        assert complaints == []
