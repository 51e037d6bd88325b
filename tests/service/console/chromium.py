"""A real Chromium, and pages in it whose complaints are kept."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

from tests.servers import skip_without

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
FLAGS = (
    # In a container there is no room for the browser's own sandbox; it only sees our page.
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
PATIENCE = 60_000  # ms: the machine may have much else to do


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser; without one the test is skipped, unless STREAMER_TEST_SERVERS says it must be."""
    found = next(filter(None, map(shutil.which, (*NAMES, MAC))), None)
    if found is None:
        skip_without("chromium", "Debian: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=[*FLAGS])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(
    browser: Browser, url: str, theme: str = "light", width: int = 1280, height: int = 860
) -> Iterator[tuple[Page, list[str]]]:
    """A page, and what the browser complains of: also what the page's policy refused."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    try:
        page.goto(url)
        yield page, complaints
    finally:
        context.close()
