"""axe-core finds no barrier on the pages of the console, light and dark, wide and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.service.api.asking import Asking, asking
from tests.service.console import showing
from tests.service.console.authored import authored
from tests.service.console.chromium import chromium, opened

pytestmark = pytest.mark.slow

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
_VIOLATIONS = """async () => (await axe.run()).violations.map(
  (one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`)"""
WRITING = ("streams/orders/config", "streams/orders/results", "streams/orders/revisions", "new")
WATCHING = ("", "streams/lights", "streams/lights/history", "streams/lights/failed", "service")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Asking]]:
    directory: Path = tmp_path_factory.mktemp("axe")
    (directory / "configs").mkdir()
    given = showing.files(directory / "configs", 3)
    with ExitStack() as held:
        writing = held.enter_context(authored(directory / "authored"))
        watching = asking(directory / "shown", files=given, stage=showing.stage())
        yield {"writing": writing, "watching": held.enter_context(watching)}


def find_violations(page: Page) -> list[str]:
    # The console's policy lets no script in that is not its own; the browser's tools may.
    page.context.new_cdp_session(page).send("Runtime.evaluate", {"expression": f"{AXE};0"})
    found: list[str] = page.evaluate(_VIOLATIONS)
    return found


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
@pytest.mark.parametrize(("of", "paths"), [("writing", WRITING), ("watching", WATCHING)])
def test_no_page_has_a_barrier(
    browser: Browser,
    servers: dict[str, Asking],
    of: str,
    paths: tuple[str, ...],
    theme: str,
    width: int,
) -> None:
    for path in paths:
        with opened(browser, f"{servers[of].url}/#/{path}", theme, width) as (page, _):
            page.locator("main h1").first.wait_for()
            page.wait_for_timeout(500)
            assert find_violations(page) == [], path
