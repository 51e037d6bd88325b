"""The condition of streams in a real browser: what fails, where, since when; refused; restarted."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from streamer.engine.driver.rejected_files import WaitingMessages
from streamer.engine.report.stream_metrics import Snapshot, series_key
from streamer.engine.report.trouble import Trouble
from streamer.service.monitoring.stream_view import StreamState
from streamer.service.monitoring.window_listing import list_open_windows
from streamer.window import SystemWindow
from tests.service.api.asking import Asking, asking
from tests.service.console.chromium import PATIENCE, chromium, opened
from tests.service.fleet.pretending import GENERATE, Stage

pytestmark = pytest.mark.slow
expect.set_options(timeout=PATIENCE)

LOOKS = (Path(__file__).parent / "looks.js").read_text()
SECOND = 1_000_000_000
WINDOW = SystemWindow(size=60 * SECOND, slide=60 * SECOND)
PIPELINE = "pipeline: { processors: [ { label: check, mapping: root = this } ] }\n"
CHECK = "root.pipeline.processors.0"
BROKEN = "input: { generate: { mapping: 'root = ' } }\noutput: { drop: {} }\n"
FLOWS = StreamState(Snapshot(messages=40, batch=3), {})
RESTARTED = {
    "as_of": 1_000_000_000.0,
    **{"messages": 900, "open_windows": 3, "held": 120, "size": 800},
    **{"micro_batch": 17, "dropped": {"late": 4}},
}


def rejected() -> StreamState:
    """A stream in whose mapping each message fails, under `error_handling.strict`."""
    waiting = WaitingMessages(
        *(2, 0, "output", "", "rejecting due to failed processing: value is null", "config"),
        *(1, 10, time.time_ns() - 90 * SECOND),
        tries=4,
        due=time.time_ns() + 30 * SECOND,
        source={"label": "check", "path": CHECK},
        sample='{"n":{}}\x1b[31m',
    )
    counts = {
        series_key("output_rejected", {"label": "", "path": "root.output"}): 6,
        series_key("processor_error", {"label": "check", "path": CHECK}): 6,
        series_key("output_rejected_waiting", {}): 6,
    }
    return replace(FLOWS, counts=counts, rejected=waiting)


def troubled(path: str, text: str) -> StreamState:
    since = time.time() - 40
    place = {"label": "", "path": path}
    trouble = Trouble(text, place, since, tries=17, next_try=time.time() + 9, messages=1)
    return replace(FLOWS, problem=text, problem_labels=place, trouble=trouble)


class Scene:
    """What the streams say; `restarted` says nothing new until the test says so."""

    def __init__(self) -> None:
        self.has_delivered = False

    def now(self, stream_id: str, polls: int) -> StreamState:
        if stream_id == "mapping":
            return rejected()
        if stream_id == "sender":
            return troubled("root.output", "http://127.0.0.1:9/x: Connection refused")
        if stream_id == "starved":
            return troubled("root.input", "no broker answers")
        if stream_id == "restarted":
            batch = 18 if self.has_delivered else -1
            return StreamState(Snapshot(messages=901 if self.has_delivered else 0, batch=batch), {})
        return FLOWS


def no_windows_yet(stream_id: str, *_: Any) -> Mapping[str, Any]:
    """What no shard has said anything of."""
    return list_open_windows(WINDOW if stream_id == "restarted" else None, ())


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, scene: Scene) -> Iterator[Asking]:
    directory = tmp_path_factory.mktemp("conditions")
    texts = {name: GENERATE + PIPELINE for name in ("fine", "mapping", "sender", "starved")}
    texts["restarted"] = GENERATE + "buffer: { system_window: { size: 1m } }\n"
    texts |= {"absent": f"{GENERATE}# it-fails\n", "broken": BROKEN}
    files = {}
    for name, text in texts.items():
        files[name] = str(directory / f"{name}.yaml")
        Path(files[name]).write_text(text)
    checkpoint = directory / "state" / "restarted"
    checkpoint.mkdir(parents=True)
    (checkpoint / "figures.json").write_bytes(orjson.dumps(RESTARTED))
    stage = Stage(fails={"it-fails"}, now=scene.now, windows=no_windows_yet)
    with asking(directory / "state", files=files, stage=stage) as found:
        found.service.wait_for("absent", "failed")
        registry = found.service.manager.registry
        registry.refuse_file("fine", files["fine"], [f"{files['fine']}(3,1) the window's size"])
        yield found


@pytest.fixture
def page(browser: Browser, server: Asking) -> Iterator[Page]:
    with opened(browser, f"{server.url}/") as (page, complaints):
        yield page
        assert complaints == []


def go(page: Page, server: Asking, path: str) -> None:
    page.goto(f"{server.url}/#/{path}")


def row_of(page: Page, name: str) -> Locator:
    return page.locator("tbody tr", has=page.get_by_role("link", name=name, exact=True))


def test_the_list_counts_filters_and_explains_every_condition(page: Page) -> None:
    expect(
        page.get_by_text(re.compile("7 streams: 1 failed, 1 refused, 1 output blocked"))
    ).to_contain_text("1 input blocked, 1 degraded, 1 starting, 1 running, 1 refused change")
    for name, words in (
        ("mapping", ("degraded", "at check: rejecting due to failed processing: value is null")),
        ("sender", ("output blocked", "at root.output: http://127.0.0.1:9/x: Connection refused")),
        ("starved", ("input blocked", "no broker answers")),
        ("absent", ("failed", "it cannot be started")),
        ("broken", ("refused", "broken.yaml(1,")),
        ("fine", ("running", "change refused")),
    ):
        row = row_of(page, name)
        for word in words:
            expect(row).to_contain_text(word)
    # Nothing is known of what a file that does not run would have done.
    row = row_of(page, "broken")
    expect(row.locator('[data-head="Errors"]')).to_have_text("–")
    expect(row.get_by_role("button")).to_have_count(0)
    page.get_by_role("combobox", name="State").select_option("output_blocked")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("combobox", name="State").select_option("")
    page.get_by_role("searchbox", name="Filter streams").fill("degraded")
    expect(page.locator("tbody tr")).to_have_count(1)


@pytest.mark.parametrize(
    ("name", "node", "others", "text", "error"),
    [
        ("mapping", "mapping", "drop", "Degraded for", "rejecting due to failed processing"),
        ("sender", "drop", "mapping", "Output blocked for", "Connection refused"),
        ("starved", "generate", "drop", "Input blocked for", "no broker answers"),
    ],
)
def test_a_page_says_what_fails_and_marks_the_component(
    page: Page, server: Asking, name: str, node: str, others: str, text: str, error: str
) -> None:
    go(page, server, f"streams/{name}")
    panel = page.get_by_label("Condition", exact=True)
    expect(panel).to_contain_text(re.compile(rf"{text} .*, next try in \d+ s"))
    expect(panel).to_contain_text(error)
    expect(page.locator(".node-box.is-blamed", has_text=node).first).to_be_visible()
    expect(page.locator(".node-box.is-blamed .blame").first).to_contain_text(re.compile(" for "))
    expect(page.locator(".node-box.is-blamed", has_text=others)).to_have_count(0)
    if name == "mapping":
        expect(panel).to_contain_text('Message: {"n":{}}')
        assert "\x1b" not in panel.inner_text()
        link = panel.get_by_role("link", name=f"check ({CHECK})")
        expect(link).to_have_attribute("href", re.compile("messages.node=root.pipeline"))
        # The output that got none of these messages has rejected them, and has not failed.
        expect(page.locator(".node-box", has_text="6 rejected").first).to_contain_text("drop")
        expect(page.locator(".node-box.has-failed")).to_have_count(1)


def test_a_stream_that_does_not_start_says_why_and_how_often(page: Page, server: Asking) -> None:
    go(page, server, "streams/absent")
    panel = page.get_by_label("Condition", exact=True)
    expect(panel).to_contain_text(re.compile(r"Failed for .*, 3 tries"))
    expect(panel).to_contain_text("it cannot be started")


def test_a_refused_file_has_its_findings_and_a_page_until_it_is_right(
    page: Page, server: Asking
) -> None:
    go(page, server, "streams/broken")
    panel = page.get_by_label("Refused file")
    expect(panel).to_contain_text("broken.yaml refused; its stream does not run")
    expect(panel.get_by_role("listitem")).to_contain_text("broken.yaml(1,")
    expect(page.get_by_role("navigation", name="Parts of this page")).to_be_hidden()
    go(page, server, "streams/fine")
    expect(panel).to_contain_text("refused; the stream goes on as it was")
    expect(panel).to_contain_text("(3,1) the window's size")
    expect(page.get_by_role("heading", name="Pipeline")).to_be_visible()
    server.service.manager.registry.refused_files.accept("fine")
    expect(panel).to_be_hidden()


def test_after_a_restart_the_figures_of_the_checkpoint_are_shown_as_such(
    page: Page, server: Asking, scene: Scene
) -> None:
    go(page, server, "streams/restarted")
    as_of = "as of the last micro-batch at 01:46:40"
    expect(page.locator(".as-of")).to_have_text(f"Figures {as_of}, until the next micro-batch.")
    tiles = page.locator(".tiles.earlier")
    expect(tiles).to_contain_text(re.compile("Open windows3.*Micro-batch17.*dropped: 4 late"))
    expect(page.get_by_text(f"3 open windows with 120 messages, {as_of}")).to_be_visible()
    scene.has_delivered = True
    expect(page.locator(".tiles.earlier")).to_have_count(0)
    expect(page.locator(".tiles")).to_contain_text("Micro-batch18")
    expect(page.locator(".as-of")).to_have_count(0)


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_it_can_be_read_in_both_themes_and_on_a_phone(
    browser: Browser, server: Asking, theme: str, width: int
) -> None:
    with opened(browser, f"{server.url}/", theme, width) as (page, complaints):
        for path, text in (
            ("#/", "output blocked"),
            ("#/streams/mapping", "Degraded for"),
            ("#/streams/broken", "broken.yaml"),
        ):
            page.goto(f"{server.url}/{path}")
            expect(page.get_by_text(text).first).to_be_visible()
            assert page.evaluate(LOOKS) == [], path
            wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            assert wider <= 0, f"{path} is {wider} pixels too wide"
        assert complaints == []
