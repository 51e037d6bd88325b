"""The page of `streamer blobl server` in a real browser.

It takes a Chromium or Chrome that is installed. Without one these tests are skipped, except where
STREAMER_TEST_SERVERS=required says that there must be one, as in continuous integration.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.cli.blobl.test_server import started
from tests.service.console.chromium import chromium

pytestmark = pytest.mark.slow

DOCUMENT = '{"name":"Ada","age":36}'
expect.set_options(timeout=60_000)  # ms: the machine may have much else to do


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("served")
    (directory / "in.json").write_text(DOCUMENT)
    (directory / "m.blobl").write_text("root.name = this.name\n")
    with started("-i", "in.json", "-m", "m.blobl", cwd=directory) as (_, port):
        yield f"http://127.0.0.1:{port}/"


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1200, "height": 700})
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(address)
    document(page).fill(DOCUMENT)
    mapping(page).fill("root.name = this.name\n")
    expect(result(page)).to_have_text('{\n  "name": "Ada"\n}')
    yield page
    # Also what the content security policy refused.
    assert complaints == []
    context.close()


def mapping(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Mapping")


def document(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Input")


def result(page: Page) -> Locator:
    return page.get_by_role("region", name="Result")


def state(page: Page) -> Locator:
    return page.get_by_role("status")


def underlined(page: Page) -> Locator:
    return page.locator("#mapping .wrong-place")


def test_the_result_follows_as_one_types(page: Page) -> None:
    mapping(page).press("ControlOrMeta+End")
    mapping(page).press_sequentially("root.age = this.age + 1")
    expect(result(page)).to_have_text('{\n  "age": 37,\n  "name": "Ada"\n}')
    document(page).fill('{"name":"Bob","age":1}')
    expect(result(page)).to_have_text('{\n  "age": 2,\n  "name": "Bob"\n}')
    expect(state(page)).to_have_text("Done")


def test_an_error_is_underlined_at_its_place_and_told(page: Page) -> None:
    mapping(page).fill("root = this\nroot.x = this.name.uppercaze()")
    told = page.get_by_role("button", name="did you mean 'uppercase'?")
    expect(told).to_be_visible()
    expect(underlined(page)).to_have_text("uppercaze")
    style = underlined(page).evaluate("node => getComputedStyle(node).textDecorationLine")
    assert style == "underline"
    expect(state(page)).to_have_text("The mapping does not run")
    # It lies on the word of the text that is edited.
    place = mapping(page).bounding_box()
    word = underlined(page).bounding_box()
    assert place is not None and word is not None
    assert place["x"] < word["x"] and place["y"] < word["y"] < place["y"] + 60
    told.click()
    expect(mapping(page)).to_be_focused()
    at = mapping(page).evaluate("area => area.value.slice(area.selectionStart)")
    assert at == "uppercaze()"
    mapping(page).fill("root = this.name.uppercase()")
    expect(result(page)).to_have_text("ADA")
    expect(told).to_be_hidden()
    expect(underlined(page)).to_have_count(0)


def test_a_failure_underlines_its_line(page: Page) -> None:
    mapping(page).fill("root = this\n  root.x = this.name.number()")
    expect(page.locator("#problem")).to_contain_text("failed assignment (line 2)")
    assert "".join(underlined(page).all_inner_texts()) == "root.x = this.name.number()"
    expect(state(page)).to_have_text("1 of 1 failed")


def test_places_are_right_behind_characters_of_any_width(page: Page) -> None:
    mapping(page).fill('root.a = "😀é" + nope()')
    expect(underlined(page)).to_have_text("nope")


def test_several_documents_and_metadata_are_shown(page: Page) -> None:
    document(page).fill('{"a":1}\n{"a":"x"}\n{"a":3}')
    mapping(page).fill('meta k = "v"\nroot = if this.a == 3 { deleted() } else { this.a + 1 }')
    expect(result(page)).to_contain_text("Document 3")
    expect(result(page)).to_contain_text("deleted")
    expect(result(page)).to_contain_text('Metadata{\n  "k": "v"\n}')
    expect(state(page)).to_have_text("1 of 3 failed")


def test_what_is_written_is_shown_and_never_run(page: Page) -> None:
    text = '<img src=x onerror="document.title=1"><script>document.title=1</script>'
    page.get_by_label("Input is text").check()
    document(page).fill(text)
    mapping(page).fill(f"# {text}\nroot = this.string()")
    expect(result(page)).to_have_text(text)
    assert page.title() == "Bloblang"
    page.get_by_label("Input is text").uncheck()


def test_an_endless_mapping_is_stopped_and_the_next_one_runs(page: Page) -> None:
    many = "range(0, 3000)"
    mapping(page).fill(f"root = {many}.map_each(a -> {many}.map_each(b -> {many}.sum()))")
    expect(page.locator("#problem")).to_contain_text("stopped after 2 seconds")
    mapping(page).fill("root = 42")
    expect(result(page)).to_have_text("42")


def test_all_of_it_can_be_used_by_keys_alone(page: Page) -> None:
    mapping(page).focus()
    page.keyboard.press("Alt+1")
    expect(document(page)).to_be_focused()
    page.keyboard.press("Alt+3")
    expect(result(page)).to_be_focused()
    page.keyboard.press("Alt+2")
    expect(mapping(page)).to_be_focused()
    page.keyboard.press("ControlOrMeta+End")
    page.keyboard.press("Tab")
    expect(mapping(page)).to_have_value("root.name = this.name\n  ")
    page.keyboard.press("ControlOrMeta+z")
    expect(mapping(page)).to_have_value("root.name = this.name\n")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(mapping(page)).not_to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(mapping(page)).to_be_focused()
    with page.expect_request("**/execute"):
        page.keyboard.press("Control+Enter")


@pytest.mark.parametrize("width", [320, 700, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_any_width_and_can_be_read_in_light_and_dark(
    page: Page, width: int, scheme: str
) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for locator in (mapping(page), document(page), result(page)):
        box = locator.bounding_box()
        assert box is not None and box["width"] >= 200 and box["height"] >= 100
    assert contrast(page, "#mapping pre:not(.numbers)", "#mapping") >= 7
    assert contrast(page, "footer", "body") >= 4.5


def contrast(page: Page, text: str, ground: str) -> float:
    """Return the contrast of a text with what is below it, by the rule of WCAG."""
    return float(
        page.evaluate(
            """([text, ground]) => {
              const light = (colour) => {
                const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
                  .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
                return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
              };
              const style = (name) => getComputedStyle(document.querySelector(name));
              const of = (name, what) => light(style(name)[what]);
              const both = [of(text, "color"), of(ground, "backgroundColor")].sort((a, b) => b - a);
              return (both[0] + 0.05) / (both[1] + 0.05);
            }""",
            [text, ground],
        )
    )


def test_the_page_comes_back_as_it_was_left(page: Page, address: str) -> None:
    mapping(page).fill("root = 1 + 1")
    expect(result(page)).to_have_text("2")
    page.goto(address)
    expect(mapping(page)).to_have_value("root = 1 + 1")
    expect(result(page)).to_have_text("2")


def test_nothing_is_loaded_from_elsewhere(browser: Browser, address: str) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    expect(result(page)).not_to_be_empty()
    assert {url for url in asked if not url.startswith("data:")} == {address, f"{address}execute"}
    page.close()


def test_a_page_of_another_origin_gets_nothing(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    page = browser.new_page()
    (tmp_path / "evil.html").write_text("<!doctype html><title>evil</title>")
    page.goto((tmp_path / "evil.html").as_uri())
    outcome = page.evaluate(
        """async (url) => {
          const outcomes = [];
          for (const [mode, type] of [["cors", "application/json"], ["no-cors", "text/plain"]]) {
            const body = JSON.stringify({ mapping: "root = 666", input: "{}" });
            const headers = { "Content-Type": type };
            try {
              const got = await fetch(url, { method: "POST", mode, body, headers });
              outcomes.push(await got.text());
            } catch (error) { outcomes.push("refused"); }
          }
          return outcomes;
        }""",
        f"{address}execute",
    )
    assert outcome == ["refused", "refused"]
    page.goto(address)
    expect(mapping(page)).not_to_have_value("root = 666")
    page.close()
