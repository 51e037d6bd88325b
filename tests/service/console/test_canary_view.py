"""A canary in a real browser: begun in the dialog of a deploy, watched, promoted and dropped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from streamer.service.run.canary_run import Outcome
from tests.service.api.asking import Asking, asking
from tests.service.console.chromium import PATIENCE, chromium, opened
from tests.service.fleet.pretended_canary import PretendedCanaryRun, pretend_canaries
from tests.service.fleet.test_canaries import CONFIG

pytestmark = pytest.mark.slow
expect.set_options(timeout=PATIENCE)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asking]:
    pretend_canaries(monkeypatch)
    with asking(tmp_path / "state") as found:
        assert found.ask("POST", "/streams/counts", CONFIG).status_code == 200
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def page(browser: Browser, server: Asking) -> Iterator[Page]:
    with opened(browser, f"{server.url}/#/streams/counts/canary") as (page, complaints):
        yield page
        assert complaints == []


def test_a_change_is_tried_from_the_editor_and_then_promoted(page: Page, server: Asking) -> None:
    expect(page.get_by_text("The stream has no canary.")).to_be_visible()
    page.get_by_role("link", name="Config").click()
    field = page.get_by_role("textbox", name="Config")
    expect(field).to_have_value(CONFIG.replace("url-password", "!!!SECRET_SCRUBBED!!!"))
    field.fill(field.input_value().replace('"one"', '"two"'))
    page.get_by_role("button", name="Deploy…").click()
    box = page.get_by_role("dialog")
    box.get_by_role("checkbox", name="Try it beside the stream first").check()
    box.get_by_role("spinbutton", name="Windows").fill("5")
    box.get_by_role("spinbutton", name="May differ").fill("1")
    box.get_by_role("button", name="Begin the canary").click()
    expect(page.get_by_text("The canary runs beside the stream.")).to_be_visible()
    run = PretendedCanaryRun.newest
    assert (run.settings.windows, run.settings.max_differences) == (5, 1)
    assert not run.settings.is_automatic and server.stage.on["counts"] == CONFIG
    run.compare(5, different=2)
    run.end(Outcome.DIFFERENT)
    expect(page.get_by_text("The canary has ended: promote or drop it.")).to_be_visible()
    expect(page.get_by_text("5 of 5 windows compared · 2 different (1 may be)")).to_be_visible()
    rows = page.locator(".canary-differences tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("1970-01-01 00:00:00 – 1970-01-01 00:00:01")
    expect(rows.first.locator("code")).to_have_text(["sum", "1", '"<img src=x>"'])
    assert page.locator(".canary-differences img").count() == 0
    page.get_by_role("button", name="Promote…").click()
    page.get_by_role("dialog").get_by_role("button", name="Promote").click()
    expect(page.get_by_text("The canary was promoted: revision 2 runs.")).to_be_visible()
    assert '"two"' in server.stage.on["counts"] and "url-password" in server.stage.on["counts"]
    expect(page.get_by_role("button", name="Promote…")).to_be_hidden()


def test_a_canary_is_dropped_by_a_button(page: Page, server: Asking) -> None:
    changed = CONFIG.replace('"one"', '"two"')
    assert server.ask("POST", "/streams/counts/canary", changed).status_code == 200
    page.get_by_role("button", name="Drop…").click()
    page.get_by_role("dialog").get_by_role("button", name="Drop").click()
    expect(page.get_by_text("The canary was dropped: somebody has dropped it.")).to_be_visible()
    assert server.stage.on["counts"] == CONFIG
