"""The console under content that is big or sly: values of a megabyte, long logs, long configs.

Every test has a bound in time, within which the page must answer again: before, it did not within
a minute.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from streamer.core.durations import SECOND
from tests.engine.results.kept import Row, T, keep
from tests.service.api.asking import Asking, asking
from tests.service.console.chromium import PATIENCE, chromium, opened
from tests.slowness import wall_slowness

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
expect.set_options(timeout=PATIENCE)

MB = 1_000_000
RLO = "\u202e"
SLY = f"a{RLO}b\u2066c\x1b[31m\u200bd"
SHOWN = "aU+202EbU+2066cU+001B[31mU+200Bd"
PLAIN = "input: { generate: { mapping: root = 1 } }\noutput: { drop: {} }\n"
LONG = PLAIN + "# a line\n" * 50_000
ANSWERS_S = 5.0
"""Within which a page shows what it is asked for, on a machine of an ordinary speed."""
EDITOR_ANSWERS_S = 10.0
"""The same of the editor: the browser lays out all lines of the field with each key."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    with asking(tmp_path_factory.mktemp("big")) as found:
        assert found.ask("POST", "/streams/big", PLAIN).status_code == 200
        managed = found.service.manager.registry.get("big")
        big = json.dumps({"v": "x" * MB}).encode()
        rows = [
            Row("k" * 100_000, T, big, metadata=json.dumps({"m": "y" * MB}), error="e" * MB),
            Row(SLY, T + SECOND, json.dumps({"v": SLY}, ensure_ascii=False).encode()),
            *(
                Row(f"n{n}", T + (n + 2) * SECOND, b'{"n":12345678901234567890}')
                for n in range(900)
            ),
        ]
        keep(Path(managed.directory) / "results", *rows)
        yield found


@pytest.fixture
def page(browser: Browser, server: Asking) -> Iterator[Page]:
    with opened(browser, f"{server.url}/") as (found, complaints):
        yield found
        assert complaints == []


def answers(page: Page, since: float, limit_s: float = ANSWERS_S) -> None:
    """Look how long it takes until the page does something again."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    took = time.monotonic() - since
    assert took < limit_s or took < limit_s * wall_slowness()


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def test_results_of_a_megabyte_are_cut_and_saved_whole(
    page: Page, server: Asking, tmp_path: Path
) -> None:
    since = time.monotonic()
    page.goto(f"{server.url}/#/streams/big/results?order=oldest")
    rows = page.locator(".results tbody tr")
    expect(rows).to_have_count(50)
    answers(page, since)
    first = rows.first
    expect(first.locator(".cut")).to_have_text(
        ["… 98 kB more", "… 998 kB more", "… 998 kB more", "… 998 kB more"]
    )
    assert fits(page)
    key = first.locator("td").first.bounding_box()
    assert key is not None and key["width"] < 700
    with page.expect_download() as saved:
        first.get_by_role("button", name="Save the whole").click()
    saved.value.save_as(tmp_path / "saved.json")
    (result,) = json.loads((tmp_path / "saved.json").read_text())["results"]
    assert result["content"] == {"v": "x" * MB} and len(result["key"]) == 100_000
    expect(rows.nth(2)).to_contain_text("1234567890")


def test_long_lists_are_drawn_as_they_are_looked_at(page: Page, server: Asking) -> None:
    page.goto(f"{server.url}/#/streams/big/results?order=oldest")
    page.get_by_role("combobox", name="Rows per page").select_option("1000")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_text("902 results")).to_be_visible()
    rows = page.locator(".results tbody tr")
    assert rows.count() <= 300
    for _ in range(12):
        page.mouse.wheel(0, 60_000)
        page.wait_for_timeout(100)
    rows.last.scroll_into_view_if_needed()
    expect(rows).to_have_count(902)


def test_what_reorders_or_hides_is_shown_as_a_mark(page: Page, server: Asking) -> None:
    managed = server.service.manager.registry.get("big")
    managed.log("INFO", f"text {SLY}", {f"name{RLO}": SLY})
    page.goto(f"{server.url}/#/streams/big/results?order=oldest")
    row = page.locator(".results tbody tr").nth(1)
    expect(row.locator("td.key")).to_have_text(SHOWN)
    expect(row.locator("pre")).to_contain_text(SHOWN.replace("U+001B", "\\u001b"))
    page.goto(f"{server.url}/#/streams/big/logs")
    line = page.locator(".log li", has_text="text a")
    expect(line).to_contain_text(f"text {SHOWN}")
    expect(line).to_contain_text(f"nameU+202E={SHOWN}")
    assert line.locator("bdi").first.evaluate("one => getComputedStyle(one).unicodeBidi") == (
        "isolate"
    )
    assert RLO not in page.locator("main").inner_text()


def editor(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Config of big")


def test_the_editor_and_the_diff_show_what_misleads(page: Page, server: Asking) -> None:
    page.goto(f"{server.url}/#/streams/big/config")
    editor(page).fill(PLAIN + f"# only {RLO}if\u2066 admins\n")
    note = page.locator(".sly-note")
    expect(note).to_contain_text("line 3 (U+202E right-to-left override, U+2066 left-to-right")
    expect(page.locator(".text-numbers .warn")).to_have_text("3")
    shown = page.locator(".text-shown")
    expect(shown.locator(".sly")).to_have_count(2)
    assert RLO not in str(shown.text_content())
    assert shown.evaluate("one => getComputedStyle(one).unicodeBidi") == "bidi-override"
    changed = page.locator(".diff-new .diff-text")
    expect(changed.first).to_contain_text("# only U+202EifU+2066 admins")
    assert RLO not in str(page.locator(".diff").text_content())
    editor(page).fill(PLAIN)
    expect(note).to_be_hidden()


def paste(field: Locator, text: str) -> None:
    field.evaluate(
        """(one, text) => {
          const clipboardData = new DataTransfer();
          clipboardData.setData("text/plain", text);
          const about = { clipboardData, bubbles: true, cancelable: true };
          one.select();
          one.dispatchEvent(new ClipboardEvent("paste", about));
        }""",
        text,
    )


def test_the_editor_takes_50_000_lines(page: Page, server: Asking) -> None:
    page.goto(f"{server.url}/#/streams/big/config")
    field = editor(page)
    expect(field).to_have_value(PLAIN)
    since = time.monotonic()
    paste(field, LONG)
    answers(page, since, EDITOR_ANSWERS_S)
    numbers, shown = page.locator(".text-numbers"), page.locator(".text-shown")
    assert str(numbers.text_content()).split()[:2] == ["1", "2"]
    assert len(str(shown.text_content())) < 20_000
    since = time.monotonic()
    field.evaluate("one => { one.scrollTop = 20 * 40_000 }")
    answers(page, since, EDITOR_ANSWERS_S)
    expect(numbers).to_contain_text("40005")
    line = page.evaluate(
        """() => {
          const shown = document.querySelector(".text-shown");
          const area = document.querySelector(".text-area");
          const first = Number(document.querySelector(".text-numbers").textContent.split("\\n")[0]);
          const at = shown.firstElementChild.clientHeight - (first - 1) * 20;
          return [at, shown.scrollTop - area.scrollTop];
        }"""
    )
    assert line == [0, 0]  # The lines lie where the field has them.
    since = time.monotonic()
    field.press("End")
    field.press_sequentially("abc")
    answers(page, since, EDITOR_ANSWERS_S)


def test_a_hundred_thousand_lines_of_a_log(page: Page, server: Asking, tmp_path: Path) -> None:
    managed = server.service.manager.registry.get("big")
    for number in range(100_000):
        managed.log_tail.add(T, "INFO", f"line {number} " + "z" * 300, {"n": number})
    managed.log_tail.add(T, "WARN", "w" * MB, {"v": "x" * MB, "n" * MB: 1})
    since = time.monotonic()
    page.goto(f"{server.url}/#/streams/big/logs")
    lines = page.locator(".log li")
    expect(lines).to_have_count(1000)
    answers(page, since)
    last = lines.last
    expect(last.locator(".cut").first).to_have_text("… 996 kB more")
    assert fits(page)
    with page.expect_download() as saved:
        last.get_by_role("button", name="Save the whole").click()
    saved.value.save_as(tmp_path / "line.json")
    assert json.loads((tmp_path / "line.json").read_text())["msg"] == "w" * MB
    since = time.monotonic()
    page.get_by_role("searchbox", name="Filter lines").fill("line 99998")
    expect(page.get_by_text("1 line of")).to_be_visible()
    answers(page, since)
