"""The console's editor, revisions, results, playground and documentation in a real browser."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.service.api.asking import Asking
from tests.service.console.authored import COUNTED, ORDERS, authored
from tests.service.console.chromium import PATIENCE, chromium, opened
from tests.service.console.pictures import named_on_the_page, take_all

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

expect.set_options(timeout=PATIENCE)
LOOKS = (Path(__file__).parent / "looks.js").read_text()
EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Asking]:
    with authored(tmp_path) as found:
        yield found


@pytest.fixture
def page(browser: Browser, server: Asking) -> Iterator[Page]:
    with opened(browser, f"{server.url}/") as (found, complaints):
        found.on("dialog", lambda dialog: complaints.append(dialog.message))
        yield found
        # The browser tells of answers that say no, too.
        assert [one for one in complaints if "the server responded with a status" not in one] == []


def test_the_pictures_of_the_documentation_can_be_taken_anew(
    browser: Browser, tmp_path: Path
) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    take_all(browser, tmp_path, pictures, drawn_ms=500)
    assert sorted(path.name for path in pictures.iterdir()) == sorted(named_on_the_page())


def go(page: Page, server: Asking, address: str) -> None:
    page.goto(f"{server.url}/#/{address}")


def editor(page: Page, name: str = "Config of orders") -> Locator:
    return page.get_by_role("textbox", name=name)


def findings(page: Page) -> Locator:
    return page.get_by_role("region", name="Findings")


def dialog(page: Page) -> Locator:
    return page.get_by_role("dialog")


def caret(field: Locator) -> tuple[int, int]:
    text, at = field.evaluate("e => [e.value, e.selectionStart]")
    before = text[:at].split("\n")
    return len(before), len(before[-1]) + 1


def test_findings_are_marked_where_they_stand_and_lead_there(page: Page, server: Asking) -> None:
    go(page, server, "streams/orders/config")
    field = editor(page)
    expect(field).to_have_value(COUNTED)
    expect(findings(page)).to_contain_text("None: it can be deployed.")
    broken = COUNTED.replace("size: 1m", "sizes: 1m").replace("batch_size()", "batch_sise()")
    field.fill(broken)
    items = findings(page).get_by_role("listitem")
    expect(items).to_have_count(3)
    expect(page.locator(".text-mark")).to_have_text(["9", "11", "20"])
    expect(page.locator(".wrong-place").nth(1)).to_have_text("sizes")
    expect(page.locator(".wrong-place").nth(2)).to_have_text("batch_sise")
    items.nth(1).get_by_role("button", name="Line 11:5").click()
    expect(field).to_be_focused()
    assert caret(field) == (11, 5)
    expect(items.nth(1).get_by_role("link", name="unknown_field")).to_have_attribute(
        "href", "#/docs/lint-codes/unknown_field"
    )
    page.get_by_role("button", name="Deploy…").click()
    expect(page.get_by_role("alert")).to_contain_text("Fix the errors first")
    page.get_by_role("button", name="Discard edits").click()
    expect(field).to_have_value(COUNTED)
    expect(findings(page)).to_contain_text("None")
    assert server.stage.on["orders"] == COUNTED


def test_proposals_are_taken_by_keyboard_and_undone_by_the_browser(
    page: Page, server: Asking
) -> None:
    go(page, server, "streams/orders/config")
    field, proposals = editor(page), page.get_by_role("listbox", name="Proposals")
    expect(field).to_have_value(COUNTED)
    # The schema comes with the first thing that is typed.
    field.press("Control+End")
    field.press("Control+Space")
    expect(page.get_by_role("option").first).to_be_hidden()
    page.wait_for_function(
        "() => performance.getEntriesByType('resource').some(e => e.name.endsWith('/schema'))"
    )
    field.press_sequentially("log")
    first = page.get_by_role("option").first
    expect(first).to_contain_text("logger")
    expect(first).to_have_attribute("aria-selected", "true")
    assert field.get_attribute("aria-activedescendant") == first.get_attribute("id")
    field.press("Enter")
    expect(field).to_have_value(f"{COUNTED}logger:\n  ")
    # What comes next is proposed at once.
    expect(page.get_by_role("option").filter(has_text="level").first).to_be_visible()
    field.press_sequentially("lev")
    field.press("Tab")
    expect(field).to_have_value(f"{COUNTED}logger:\n  level: ")
    names = [one.split("\n")[0] for one in page.get_by_role("option").all_inner_texts()]
    assert {"DEBUG", "INFO", "WARN"} <= set(names)
    field.press("ArrowDown")
    chosen = page.locator("[role=option][aria-selected=true] .proposal-name").inner_text()
    assert chosen == names[1]
    field.press("Escape")
    expect(proposals).to_be_hidden()
    field.press("Control+z")
    expect(field).not_to_have_value(f"{COUNTED}logger:\n  level: ")
    for _ in range(20):
        if field.input_value() == COUNTED:
            break
        field.press("Control+z")
    expect(field).to_have_value(COUNTED)
    # Escape, then Tab leaves the field.
    field.press("Escape")
    field.press("Tab")
    expect(field).not_to_be_focused()


def test_a_change_that_loses_windows_is_deployed_once_one_has_said_what_becomes_of_them(
    page: Page, server: Asking
) -> None:
    go(page, server, "streams/orders/config")
    field = editor(page)
    expect(field).to_have_value(COUNTED)
    changed = COUNTED.replace("size: 1m ", "size: 5m ").replace("# Orders", f"# {EVIL} Orders")
    field.fill(changed)
    side = page.get_by_role("region", name="Effect of this change")
    expect(side).to_contain_text("reset")
    expect(side).to_contain_text("windows of 1m")
    page.get_by_role("button", name="Deploy…").click()
    box = dialog(page)
    expect(box).to_contain_text("At stake: 3 open windows with 1,236 messages (88 kB)")
    expect(box).to_contain_text(f"# {EVIL} Orders")
    assert page.locator("dialog img").count() == 0
    expect(box.get_by_role("button", name="Deploy")).to_be_disabled()
    box.get_by_role("radio", name="Drain").focus()
    page.keyboard.press("ArrowDown")
    expect(box.get_by_role("radio", name="Discard")).to_be_checked()
    box.get_by_role("button", name="Deploy").click()
    expect(page.get_by_text("Revision 3 of orders is deployed: reset")).to_be_visible()
    expect(page.get_by_role("heading", name="Revision 3")).to_be_visible()
    assert server.stage.on["orders"] == changed
    expect(page.get_by_role("button", name="Deploy…")).to_be_disabled()


def test_what_was_deployed_meanwhile_is_said_and_drafts_stay(page: Page, server: Asking) -> None:
    go(page, server, "streams/orders/config")
    field = editor(page)
    expect(field).to_have_value(COUNTED)
    field.fill(COUNTED.replace('"count"', '"mine"'))
    go(page, server, "streams/orders/revisions")
    expect(page.get_by_role("heading", name="Revisions")).to_be_visible()
    go(page, server, "streams/orders/config")
    expect(editor(page)).to_have_value(COUNTED.replace('"count"', '"mine"'))
    theirs = COUNTED.replace('"count"', '"theirs"')
    assert server.ask("PUT", "/streams/orders", theirs).status_code == 200
    page.get_by_role("button", name="Deploy…").click()
    expect(dialog(page)).to_contain_text("Revision 3 was deployed")
    expect(dialog(page)).to_contain_text('"theirs"')
    page.keyboard.press("Escape")
    expect(dialog(page)).to_have_count(0)
    assert server.stage.on["orders"] == theirs


def test_the_config_of_a_file_is_shown_and_not_deployed(page: Page, server: Asking) -> None:
    go(page, server, "streams/filed/config")
    field = editor(page, "Config of filed")
    expect(field).to_have_value(re.compile("# nowhere"))
    expect(field).to_have_attribute("readonly", "")
    expect(page.get_by_role("alert")).to_contain_text("filed.yaml")
    expect(findings(page)).to_contain_text("None.")
    expect(page.get_by_role("button", name="Deploy…")).to_be_hidden()
    go(page, server, "streams/filed/revisions")
    expect(page.get_by_role("textbox", name="Config of revision 1")).to_be_visible()
    expect(page.get_by_role("button", name="Go back to it…")).to_have_count(0)


def test_a_new_stream_is_made(page: Page, server: Asking) -> None:
    go(page, server, "new")
    create = page.get_by_role("button", name="Create stream")
    create.click()
    expect(page.get_by_role("alert")).to_contain_text("Give the stream an id")
    page.get_by_label("Id").fill("fresh")
    field = editor(page, "Config of the new stream")
    expect(field).to_have_value(re.compile("output:"))
    field.fill(f"{field.input_value()}# does-not-start\n")
    create.click()
    dialog(page).get_by_role("button", name="Create and start").click()
    expect(page.get_by_role("alert")).to_contain_text("it cannot be started")
    page.get_by_label("Begin with").select_option("sessions")
    dialog(page).get_by_role("button", name="Replace it").click()
    # The dialog closes first, and its answer reaches the editor a moment later.
    expect(field).to_have_value(re.compile("session_window"))
    text = field.input_value()
    create.click()
    dialog(page).get_by_role("button", name="Create and start").click()
    expect(page.get_by_role("heading", name="fresh")).to_be_visible()
    # The page of a stream is there as soon as the service knows of it, a moment before it runs.
    until = time.monotonic() + 30
    while "fresh" not in server.stage.on:
        assert time.monotonic() < until, "it does not run"
        time.sleep(0.02)
    assert server.stage.on["fresh"] == text


def test_an_older_revision_is_looked_at_and_deployed_again(page: Page, server: Asking) -> None:
    go(page, server, "streams/orders/revisions")
    page.get_by_role("button", name="Show revision 1").click()
    shown = page.get_by_role("region", name="Revision", exact=True)
    expect(editor(page, "Config of revision 1")).to_have_value(ORDERS)
    expect(shown.locator(".diff-new")).to_contain_text('"orders"')
    shown.get_by_role("button", name="Go back to it…").click()
    expect(dialog(page)).to_contain_text("in place")
    dialog(page).get_by_role("button", name="Deploy it again").click()
    expect(page.get_by_text("Revision 3, which is 1 again, is deployed: in place.")).to_be_visible()
    expect(page.get_by_role("button", name="Show revision 3")).to_be_visible()
    assert server.stage.on["orders"] == ORDERS


def test_a_mapping_is_tried_while_it_is_typed(page: Page, server: Asking) -> None:
    go(page, server, "playground")
    result = page.get_by_role("region", name="Result").last
    expect(result).to_contain_text('"source": "orders"')
    mapping = editor(page, "Mapping")
    mapping.fill(f'root = this\nroot.evil = "{EVIL}"')
    expect(result).to_contain_text(EVIL)
    mapping.fill("root = this\nroot.x = this.name.upercase()")
    expect(result).to_contain_text("unrecognised method 'upercase'")
    expect(page.locator(".wrong-place")).to_have_text("upercase")
    result.get_by_role("button", name="Go to line 2").click()
    assert caret(mapping)[0] == 2
    mapping.fill('root = this.name + 1\nmeta a = "b"')
    expect(result).to_contain_text("failed assignment (line 1)")


def test_a_batch_is_tried_and_shared_by_a_link(page: Page, server: Asking) -> None:
    go(page, server, "playground")
    result = page.get_by_role("region", name="Result").last
    page.get_by_role("button", name="Try a window's mapping").click()
    expect(result.get_by_role("heading", name="Batch 2")).to_be_visible()
    expect(result).to_contain_text('"total": 7')
    page.get_by_label("Group by").fill("")
    expect(result).to_contain_text('"total": 14')
    editor(page, "Mapping").fill('root = "é" + batch_size().string()')
    expect(result).to_contain_text("é3")
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_text("link").last).to_be_visible()
    link = page.url
    assert "state=" in link
    page.goto("about:blank")
    page.goto(link)
    expect(editor(page, "Mapping")).to_have_value('root = "é" + batch_size().string()')
    expect(page.get_by_label("One batch, a message a line")).to_be_checked()
    expect(result).to_contain_text("é3")
    page.goto("about:blank")
    page.goto(f"{server.url}/#/playground?state=" + "A" * 50_000)
    expect(result).to_contain_text('"source": "orders"')


def test_the_documentation_is_read_in_the_console(page: Page, server: Asking) -> None:
    go(page, server, "docs/tools")
    expect(page.get_by_role("heading", level=1)).to_have_text("Tools around a config")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    picture = page.locator(".prose img").first
    picture.scroll_into_view_if_needed()
    page.wait_for_function("() => document.querySelector('.prose img').naturalWidth > 0")
    go(page, server, "docs/lint-codes/bad_bloblang")
    expect(page.locator("#at-bad_bloblang")).to_be_focused()
    go(page, server, "docs/nope")
    expect(page.get_by_text("there is no such page")).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_all_is_named_and_can_be_read(
    browser: Browser, server: Asking, theme: str, width: int
) -> None:
    with opened(browser, f"{server.url}/", theme, width) as (page, complaints):
        go(page, server, "streams/orders/config")
        expect(editor(page)).to_have_value(COUNTED)
        editor(page).fill(COUNTED.replace("size: 1m", "sizes: 1m"))
        expect(findings(page).get_by_role("listitem")).to_have_count(2)
        assert page.evaluate(LOOKS) == []
        editor(page).fill(COUNTED.replace("size: 1m", "size: 3m"))
        expect(page.get_by_role("region", name="Effect of this change")).to_contain_text("reset")
        page.get_by_role("button", name="Deploy…").click()
        expect(dialog(page)).to_be_visible()
        assert page.evaluate(LOOKS) == []
        page.keyboard.press("Escape")
        for address, seen in (
            ("streams/orders/revisions", ".judgement"),
            ("streams/orders/results", ".results tbody tr"),
            ("new", ".new-starter select"),
            ("playground", ".result-text"),
            ("docs/windows", ".prose table"),
            ("docs?q=late", ".docs-results mark"),
        ):
            go(page, server, address)
            expect(page.locator(seen).first).to_be_visible()
            assert page.evaluate(LOOKS) == [], address
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{address} is wider than the window"
        assert complaints == []
