"""The newest commits of tables on a stream's page, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, Page, expect

from streamer.connectors.tables.commit_record import CommitRecord
from streamer.engine.driver.table_commits import TableCommits
from streamer.service.monitoring.stream_view import StreamState
from tests.service.api.asking import Asking, asking
from tests.service.console.chromium import PATIENCE, chromium, opened
from tests.service.console.showing import files, stage

pytestmark = pytest.mark.slow
expect.set_options(timeout=PATIENCE)

SNAPSHOT = 7_351_870_292_011_123_457
"""An identifier of Iceberg, which has more digits than JavaScript's numbers."""

BAD = "<img src=x onerror='window.hacked=1'>"
_AT_MS = 1_767_225_600_000


def commits_of(newest: int) -> list[dict[str, object]]:
    """Return the tables of the API, after a micro-batch: of Iceberg, and one that others write."""
    own = [
        CommitRecord(SNAPSHOT + batch, _AT_MS + batch * 1000, "append", 12, 2, 3_456, 0, "w", batch)
        for batch in range(newest, newest - 2, -1)
    ]
    others = [CommitRecord(4, _AT_MS, BAD, -1, 1, 99, 0, "", -1)]
    tables = [
        ("root.output.broker.outputs.0", TableCommits("the Iceberg table demo.windows", own, 2, 1)),
        ("root.output.broker.outputs.1", TableCommits("the Delta table ./t", others, 0, 0)),
    ]
    return [{"path": path, "label": "", **one.as_document()} for path, one in tables]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    directory = tmp_path_factory.mktemp("tables")
    shown = stage()
    without = shown.now

    def now(stream: str, polls: int) -> StreamState:
        state = without(stream, polls)
        return replace(state, tables=commits_of(polls)) if stream == "lights" else state

    shown.now = now
    with asking(directory / "state", files=files(directory), stage=shown) as found:
        yield found


@pytest.fixture
def page(browser: Browser, server: Asking) -> Iterator[Page]:
    with opened(browser, f"{server.url}/") as (page, complaints):
        yield page
        assert complaints == []


def test_the_newest_commits_of_tables_are_shown_and_grow(page: Page, server: Asking) -> None:
    page.goto(f"{server.url}/#/streams/lights")
    table = page.get_by_role("table", name="The newest commits of tables")
    expect(table.locator("tbody tr")).to_have_count(3)
    [newest, older, other] = [
        [cell.strip() for cell in row.locator("th, td").all_inner_texts()]
        for row in table.locator("tbody tr").all()
    ]
    # Newest first; all digits of an identifier are there.
    batch = int(newest[0]) - SNAPSHOT
    assert (int(newest[0]) - int(older[0]), newest[1]) == (1, "the Iceberg table demo.windows")
    assert newest[3:7] == ["append", "12", "2", "3,456"] and newest[7] == str(batch)
    # What is in the log of a table is never HTML, and another program's commit is named so.
    assert (other[0], other[1], other[3], other[7]) == (
        "4",
        "the Delta table ./t",
        BAD,
        "another program",
    )
    assert other[4] in ("–", "?", "")  # How many rows it adds, its history does not say.
    assert page.evaluate("window.hacked") is None
    expect(page.get_by_text("2 retries and 1 conflict in this run")).to_be_visible()
    expect(table.locator("tbody tr").first).not_to_contain_text(newest[0])


def test_a_stream_without_tables_shows_none(page: Page, server: Asking) -> None:
    page.goto(f"{server.url}/#/streams/orders")
    expect(page.get_by_text("Micro-batch").first).to_be_visible()
    expect(page.get_by_role("heading", name="Tables")).to_be_hidden()
