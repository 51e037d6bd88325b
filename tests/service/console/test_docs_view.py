"""The documentation in the console: groups of pages, search by keyboard, copying, page by page."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.service.api.asking import Asking, asking
from tests.service.console.chromium import PATIENCE, chromium, opened

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

expect.set_options(timeout=PATIENCE)
# As in a page that is served by plain HTTP from another machine.
_WITHOUT_CLIPBOARD = "Object.defineProperty(navigator, 'clipboard', { value: undefined })"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    with asking(tmp_path_factory.mktemp("service")) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def page(browser: Browser, server: Asking) -> Iterator[Page]:
    with opened(browser, f"{server.url}/#/docs") as (found, complaints):
        yield found
        assert complaints == []


def title(page: Page, text: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(text)


def test_pages_stand_in_groups_and_lead_on(page: Page) -> None:
    title(page, "Documentation")
    pages = page.get_by_role("navigation", name="Pages", exact=True)
    assert pages.get_by_role("heading", level=2).all_inner_texts()[:2] == ["Start", "Learn windows"]
    pages.get_by_role("link", name="Getting started", exact=True).click()
    title(page, "Getting started")
    expect(page.locator(".docs-path")).to_have_text("Start")
    expect(page.locator(".prose")).not_to_contain_text("All pages")
    around = page.get_by_role("navigation", name="Previous and next page")
    around.get_by_role("link", name="Previous Install").click()
    title(page, "Install")
    around.get_by_role("link", name="Next Getting started").click()
    title(page, "Getting started")
    page.goto(f"{page.url.partition('#')[0]}#/docs/components.buffers.system_window")
    title(page, "system_window (buffer)")
    page.locator(".docs-path").get_by_role("link", name="Components").click()
    title(page, "Components")


def test_all_text_is_searched_by_keyboard_alone(page: Page) -> None:
    title(page, "Documentation")
    page.keyboard.press("/")
    page.keyboard.type("late")
    title(page, "Results for “late”")
    results = page.locator(".docs-results li")
    first = [text.partition("\n")[0] for text in results.all_inner_texts()[:6]]
    assert any("Early and late results" in one for one in first), first
    assert "late" in page.locator(".docs-results mark").all_inner_texts()
    expect(page.get_by_label("Search the documentation")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    link = results.first.get_by_role("link")
    expect(link).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".docs-path")).to_be_visible()
    page.go_back()
    title(page, "Results for “late”")
    page.reload()
    title(page, "Results for “late”")


def test_words_that_are_typed_before_the_page_is_there_are_kept(page: Page) -> None:
    page.route(
        "**/console/docs/index", lambda route: (page.wait_for_timeout(1_000), route.continue_())
    )
    page.reload()
    field = page.get_by_label("Search the documentation")
    field.fill("late")
    title(page, "Results for “late”")
    page.wait_for_timeout(1_500)
    expect(field).to_have_value("late")
    title(page, "Results for “late”")


def test_recipes_and_components_are_found_too(page: Page) -> None:
    field = page.get_by_label("Search the documentation")
    for words, found in (("top k", "Running top K"), ("kafka input", "kafka (input)")):
        field.fill(words)
        title(page, f"Results for “{words}”")
        expect(page.locator(".docs-results").get_by_role("link", name=found).first).to_be_visible()
    field.fill("no<b>where tobefound")
    expect(page.get_by_text("Nothing found")).to_be_visible()
    field.fill("")
    title(page, "Documentation")


@pytest.mark.parametrize("has_clipboard", [True, False])
def test_a_block_is_copied(browser: Browser, server: Asking, has_clipboard: bool) -> None:
    with opened(browser, server.url) as (page, complaints):
        if has_clipboard:
            page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        else:
            page.add_init_script(_WITHOUT_CLIPBOARD)
        page.goto(f"{server.url}/?{has_clipboard}#/docs/getting-started")
        button = page.get_by_role("button", name="Copy hello.yaml")
        button.focus()
        page.keyboard.press("Enter")
        expect(button).to_have_text("Copied")
        expect(button).to_be_focused()
        field = page.get_by_label("Search the documentation")
        field.focus()
        page.keyboard.press("ControlOrMeta+V")
        pasted = "pipeline:   processors:     - mapping: root.greeting ="
        expect(field).to_have_value(re.compile("^" + re.escape(pasted)))
        assert complaints == []


def test_on_a_telephone_the_list_of_pages_is_folded(browser: Browser, server: Asking) -> None:
    with opened(browser, f"{server.url}/#/docs/getting-started", width=390) as (page, complaints):
        title(page, "Getting started")
        assert page.locator(".prose h1").bounding_box()["y"] < 400
        page.get_by_text("All pages", exact=True).first.click()
        pages = page.get_by_role("navigation", name="Pages", exact=True)
        pages.get_by_role("link", name="Glossary", exact=True).click()
        title(page, "Glossary")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert complaints == []
