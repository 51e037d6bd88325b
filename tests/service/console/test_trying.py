"""The editor before a deploy, in a real browser: trials, drafts, and a deploy by keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.service.api.asking import Asking
from tests.service.console.authored import COUNTED, authored
from tests.service.console.chromium import PATIENCE, chromium, opened

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

expect.set_options(timeout=PATIENCE)
LOOKS = (Path(__file__).parent / "looks.js").read_text()
MESSAGES = (
    '{"user":"ada","at":"2026-01-01T10:00:01Z"}\n'
    '{"user":"<img src=x>","at":"2026-01-01T10:00:59Z"}\n'
    '{"user":"ada","at":"2026-01-01T10:02:00Z"}\n'
    '{"user":"ada","at":"2026-01-01T10:00:02Z"}\n'
)
TRIED = (
    COUNTED.replace("root = now()", "root = this.at")
    + """\
tests:
  - name: counts
    target_processors: per_user
    input_batch: [ { json_content: { user: ada } } ]
    output_batches: [ [ { json_equals: { user: ada } } ] ]
  - name: differs
    target_processors: per_user
    input_batch: [ { json_content: { user: ada } } ]
    output_batches: [ [ { json_equals: { user: bob } } ] ]
"""
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    with authored(tmp_path_factory.mktemp("trying") / "streams") as found:
        yield found


@pytest.fixture
def page(browser: Browser, server: Asking) -> Iterator[Page]:
    with opened(browser, f"{server.url}/") as (found, complaints):
        yield found
        assert [one for one in complaints if "the server responded with a status" not in one] == []


def editor(page: Page, name: str = "Config of orders") -> Locator:
    return page.get_by_role("textbox", name=name)


def trials(page: Page) -> Locator:
    return page.get_by_role("region", name="Try before a deploy")


def run(page: Page, kind: str) -> Locator:
    card = trials(page)
    card.get_by_role("radio", name=kind).check()
    if card.get_by_label("Messages, one a line").is_visible():
        card.get_by_label("Messages, one a line").fill(MESSAGES)
    card.get_by_role("button", name="Run").click()
    return card


def test_tests_timeline_tap_and_dry_run_stand_beside_the_text(page: Page, server: Asking) -> None:
    page.goto(f"{server.url}/#/streams/orders/config")
    field = editor(page)
    expect(field).to_have_value(COUNTED)
    field.fill(TRIED)
    card = run(page, "Tests")
    expect(card.get_by_role("status").first).to_have_text("1 of 2 passed")
    expect(card.locator(".tone-expected")).to_contain_text("bob")
    card.get_by_role("button", name="Line 29").click()
    expect(field).to_be_focused()
    before = field.evaluate("e => e.value.slice(0, e.selectionStart).split('\\n').length")
    assert (before, TRIED.split("\n")[28]) == (29, "  - name: differs")
    card = run(page, "Timeline")
    expect(card.get_by_role("status").first).to_contain_text("1 message dropped")
    page.wait_for_function("() => document.querySelector('.trial-drawing img').naturalWidth > 500")
    expect(card.get_by_role("region", name="Messages")).to_contain_text("<img src=x>")
    expect(card.get_by_role("region", name="Windows").locator("tbody tr")).to_have_count(2)
    assert page.evaluate(LOOKS) == []
    card = run(page, "Tap")
    last = card.get_by_role("region", name="pipeline.processors.1: mapping")
    expect(last).to_contain_text('{"count":1}')
    expect(last.get_by_role("heading", name="Before")).to_be_visible()
    assert page.locator(".trial-results img").count() == 0
    assert page.evaluate(LOOKS) == []
    expect(run(page, "Dry run")).to_contain_text("Everything connects")
    field.fill(TRIED.replace("size: 1m", "sizes: 1m"))
    expect(run(page, "Tests")).to_contain_text("Fix the errors first: (9,3) field size is required")
    # A config of a file may do no more here than one that comes by API.
    page.goto(f"{server.url}/#/streams/filed/config")
    expect(run(page, "Tests")).to_contain_text("--allow-local")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_a_draft_outlives_a_reload_and_says_when_it_was_overtaken(
    page: Page, server: Asking
) -> None:
    page.goto(f"{server.url}/#/streams/orders/config")
    field = editor(page)
    expect(field).to_have_value(COUNTED)
    mine = COUNTED.replace('"count"', '"mine"')
    field.fill(mine)
    page.reload()
    expect(field).to_have_value(mine)
    expect(page.get_by_role("alert")).not_to_contain_text("was deployed")
    assert server.ask("PUT", "/streams/orders", COUNTED + "# theirs\n").status_code == 200
    page.reload()
    expect(field).to_have_value(mine)
    expect(page.get_by_role("alert")).to_contain_text("Revision 3 was deployed")
    page.get_by_role("button", name="Deploy…").click()
    expect(page.get_by_role("dialog")).to_contain_text("Revision 3 was deployed")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Discard edits").click()
    expect(field).to_have_value(COUNTED + "# theirs\n")
    page.reload()
    expect(field).to_have_value(COUNTED + "# theirs\n")


def test_a_deploy_by_keyboard_alone(page: Page, server: Asking) -> None:
    page.goto(f"{server.url}/#/streams/plain/config")
    field, keys = editor(page, "Config of plain"), page.keyboard
    deploy = page.get_by_role("button", name="Deploy…")
    expect(field).to_have_value(
        "input: { generate: { mapping: root = 1 } }\noutput: { drop: {} }\n"
    )
    for _ in range(40):
        if field.evaluate("e => e === document.activeElement"):
            break
        keys.press("Tab")
    expect(field).to_be_focused()
    text = field.input_value()
    # Tab goes on through the editor and back, until something is typed in it.
    keys.press("Tab")
    keys.press("Shift+Tab")
    expect(field).to_be_focused()
    keys.press("Shift+Tab")
    expect(field).not_to_be_focused()
    assert field.input_value() == text
    keys.press("Tab")
    keys.press("Control+End")
    keys.type("# by keyboard")
    keys.press("Control+s")
    expect(page.get_by_text("Nothing is deployed")).to_be_visible()
    keys.press("Escape")
    keys.press("Tab")
    keys.press("Tab")
    expect(deploy).to_be_focused()
    keys.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    keys.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(deploy).to_be_focused()
    keys.press("Control+Enter")
    expect(page.get_by_role("dialog").get_by_role("button", name="Deploy")).to_be_focused()
    keys.press("Enter")
    expect(page.get_by_role("heading", name="Revision 2")).to_be_focused()
    assert server.stage.on["plain"].endswith("# by keyboard")
    page.get_by_role("button", name="Notices (2)").click()
    expect(page.get_by_role("dialog")).to_contain_text("Revision 2 of plain is deployed")


def test_the_id_of_a_new_stream_is_checked_while_it_is_typed(page: Page, server: Asking) -> None:
    page.goto(f"{server.url}/#/new")
    field, said = page.get_by_label("Id"), page.locator("#new-id-problem")
    for text, problem in (
        ("orders", "already"),
        ("or ders", "found a space"),
        ("a/b", 'found "/"'),
        ("metrics", "paths of its own"),
    ):
        field.fill(text)
        expect(said).to_contain_text(problem)
        expect(field).to_have_attribute("aria-invalid", "true")
    field.fill("fresh")
    expect(said).to_have_text("")
    page.reload()
    expect(field).to_have_value("fresh")
    expect(page.get_by_label("Begin with").get_by_role("option")).to_have_count(7)
    assert page.evaluate(LOOKS) == []
