"""Takes the pictures of the console that its page in the documentation shows.

`python -m tests.service.console.pictures` writes them anew, after the console has changed.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, Page, expect

from tests.service.api.asking import asking
from tests.service.console import showing
from tests.service.console.authored import COUNTED, authored
from tests.service.console.chromium import PATIENCE, chromium, opened

DOCS = Path(__file__).parents[3] / "streamer" / "docs"
_SIZE = {"width": 1180, "height": 720}
_DRAWN_MS = 12_000
"""A line of throughput takes its time to be drawn."""


class Picture(NamedTuple):
    """A picture: its name, the page, its theme, what is done before it is taken, and whether it
    shows throughput."""

    name: str
    address: str
    theme: str
    before: Callable[[Page], None]
    throughput: bool = False


def _editor(page: Page) -> None:
    field = page.get_by_role("textbox", name="Config of orders")
    expect(field).to_have_value(COUNTED)
    field.fill(COUNTED.replace("size: 1m ", "sizes: 1m ").replace("drop: {}", ""))
    expect(page.locator(".text-mark")).to_have_count(3)
    page.wait_for_function(
        "() => performance.getEntriesByType('resource').some(e => e.name.endsWith('/schema'))"
    )
    at = field.input_value().rindex("  \n") + 2
    field.evaluate("(e, at) => { e.focus(); e.setSelectionRange(at, at); }", at)
    field.press_sequentially("ka")
    expect(page.get_by_role("listbox")).to_be_visible()
    expect(page.locator(".text-mark")).to_have_count(3)


def _deploy(page: Page) -> None:
    field = page.get_by_role("textbox", name="Config of orders")
    expect(field).to_have_value(COUNTED)
    field.fill(COUNTED.replace("size: 1m ", "size: 5m "))
    expect(page.get_by_role("region", name="Effect of this change")).to_contain_text("reset")
    page.get_by_role("button", name="Deploy…").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def _revisions(page: Page) -> None:
    page.get_by_role("button", name="Show revision 1").click()
    expect(page.locator(".diff").first).to_be_visible()


def _playground(page: Page) -> None:
    expect(page.locator(".result-text").first).to_be_visible()


def _results(page: Page) -> None:
    expect(page.locator(".results tbody tr").first).to_be_visible()


def _streams(page: Page) -> None:
    expect(page.get_by_role("link", name="lights")).to_be_visible()


def _stream(page: Page) -> None:
    expect(page.get_by_role("heading", name="lights")).to_be_visible()


AUTHORED = (
    Picture("console-editor.png", "streams/orders/config", "light", _editor),
    Picture("console-deploy.png", "streams/orders/config", "dark", _deploy),
    Picture("console-revisions.png", "streams/orders/revisions", "light", _revisions),
    Picture("console-results.png", "streams/orders/results", "dark", _results),
    Picture("console-playground.png", "playground", "dark", _playground),
)
SHOWN = (
    Picture("console-streams.png", "", "light", _streams, throughput=True),
    Picture("console-stream.png", "streams/lights", "dark", _stream, throughput=True),
)


def take(
    browser: Browser, url: str, picture: Picture, directory: Path, drawn_ms: float = 0
) -> None:
    """Take a picture of a page, after lines of throughput have been drawn for so long."""
    with opened(browser, f"{url}/#/{picture.address}", picture.theme, **_SIZE) as (page, _):
        picture.before(page)
        if picture.throughput:
            page.wait_for_timeout(drawn_ms)
        page.screenshot(path=directory / picture.name, animations="disabled", caret="hide")


def take_all(browser: Browser, held: Path, directory: Path, drawn_ms: float = _DRAWN_MS) -> None:
    """Take all pictures.

    Args:
        browser: the browser.
        held: a directory for what the services keep.
        directory: where the pictures go.
        drawn_ms: for how long lines of throughput are drawn before they are taken.
    """
    with authored(held / "authored") as server:
        for picture in AUTHORED:
            take(browser, server.url, picture, directory)
    configs = held / "configs"
    configs.mkdir()
    given = showing.files(configs, 8)
    with asking(held / "shown", files=given, stage=showing.stage()) as server:
        for picture in SHOWN:
            take(browser, server.url, picture, directory, drawn_ms)


def named_on_the_page() -> list[str]:
    """Return the pictures that the page on the console shows."""
    return re.findall(r"\]\(pictures/(console-[\w-]+\.png)\)", (DOCS / "console.md").read_text())


def main() -> None:
    """Take all pictures, for the documentation."""
    expect.set_options(timeout=PATIENCE)
    with chromium() as browser, tempfile.TemporaryDirectory() as held:
        take_all(browser, Path(held), DOCS / "pictures")


if __name__ == "__main__":
    main()
