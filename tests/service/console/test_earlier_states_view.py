"""Earlier states of a stream in a real browser: chosen, compared, and refused with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.service.api.asking import Asking
from tests.service.api.test_earlier_states_api import pretended_states
from tests.service.console.chromium import PATIENCE, chromium, opened

pytestmark = pytest.mark.slow
expect.set_options(timeout=PATIENCE)

LOOKS = (Path(__file__).parent / "looks.js").read_text()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asking]:
    with pretended_states(tmp_path, monkeypatch) as found:
        yield found


def show_states(page: Page) -> Locator:
    page.locator("summary").filter(has_text="Earlier states").click()
    view = page.locator("details").filter(has_text="Earlier states")
    expect(view.get_by_role("status")).to_contain_text("3 windows open after micro-batch 4.")
    return view


def test_states_are_chosen_and_compared(browser: Browser, server: Asking) -> None:
    with opened(browser, f"{server.url}/#/streams/visits") as (page, complaints):
        view = show_states(page)
        rows = view.locator("tbody tr")
        expect(rows).to_have_count(3)
        expect(rows.filter(has_text="SECRET_SCRUBBED")).to_have_count(1)
        view.get_by_label("After micro-batch").select_option("3")
        expect(view.get_by_role("status")).to_contain_text("after micro-batch 3.")
        view.get_by_label("Compare with").select_option("4")
        said = view.get_by_role("status")
        expect(said).to_contain_text("3 windows differ between micro-batches 3 and 4.")
        expect(rows.first).to_contain_text("messages 1 → 2")
        expect(rows.filter(has_text="opened")).to_contain_text("messages – → 1")
        key = view.get_by_role("searchbox", name="The whole key of windows")
        key.fill("b")
        key.press("Enter")
        expect(rows).to_have_count(1)
        expect(rows).to_contain_text("closed")
        assert "url-password" not in page.content()
        assert complaints == []


def test_a_refusal_is_shown_with_the_reason(browser: Browser, server: Asking) -> None:
    with opened(browser, f"{server.url}/#/streams/visits") as (page, _):
        view = show_states(page)
        run: Any = server.service.manager.registry.get("visits").run
        run.host = None
        view.get_by_role("button", name="Refresh").click()
        expect(view.get_by_role("status")).to_contain_text("use `streamer state`")


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_states_are_named_and_can_be_read(
    browser: Browser, server: Asking, theme: str, width: int
) -> None:
    with opened(browser, f"{server.url}/#/streams/visits", theme, width) as (page, complaints):
        view = show_states(page)
        view.get_by_label("Compare with").select_option("3")
        expect(view.locator("tbody tr")).to_have_count(3)
        assert page.evaluate(LOOKS) == []
        wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wider <= 0
        assert complaints == []
