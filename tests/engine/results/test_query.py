"""Results are found by key and time, page by page, while others write."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from streamer.core.durations import DAY, MINUTE, SECOND
from streamer.core.json.dump import dump_json
from streamer.engine.results import query
from streamer.engine.results.layout import RetentionError
from streamer.engine.results.query import find_results, iterate_results
from streamer.engine.results.query_model import MAX_RESULTS, ResultQuery, ResultQueryError
from streamer.engine.results.query_times import parse_time
from streamer.engine.results.result_store import COMPACT_AFTER_FILES

from .kept import Row, T, contents, keep, portion, read, store


def numbered(count: int, keys: int = 7) -> list[Row]:
    return [Row(f"k{n % keys}", T + n // 3 * SECOND, b'{"n":%d}' % n) for n in range(count)]


def test_from_and_to_name_the_windows_that_lie_between(tmp_path: Path) -> None:
    keep(tmp_path, *(Row("a", T + n * 10 * SECOND, b'{"n":%d}' % n) for n in range(6)))
    assert contents(tmp_path, since=T, until=T + 30 * SECOND) == [{"n": n} for n in (1, 2, 3)]
    assert contents(tmp_path, since=T + 1, until=T + 30 * SECOND - 1) == [{"n": 2}]
    assert contents(tmp_path, since=T + 40 * SECOND) == [{"n": 5}]
    assert contents(tmp_path, until=T) == [{"n": 0}]


@pytest.fixture(scope="module")
def revised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty windows, some with revisions, in files that were compacted and new ones."""
    directory = tmp_path_factory.mktemp("revised")
    kept = store(directory)
    rows = numbered(40)
    random.Random(7).shuffle(rows)
    for batch in range(COMPACT_AFTER_FILES + 4):
        again = rows[: batch % 5]  # revisions of some windows
        kept.write(batch, [portion([*rows[batch * 2 : batch * 2 + 2], *again])], T)
    return directory


@pytest.mark.parametrize(
    ("limit", "until", "windows"),
    # A page for each result is enough of fewer results.
    [(1, T + 3 * SECOND, 12), (2, None, 40), (7, None, 40), (100, None, 40)],
)
@pytest.mark.parametrize(("revisions", "newest_first"), [(False, True), (True, False)])
def test_pages_together_are_all_results_in_order(
    revised: Path,
    limit: int,
    until: int | None,
    windows: int,
    revisions: bool,
    newest_first: bool,
) -> None:
    whole = read(revised, revisions=revisions, until=until, newest_first=newest_first)
    found = []
    question = ResultQuery(limit=limit, revisions=revisions, until=until, newest_first=newest_first)
    while True:
        page = find_results(revised, question, T)
        assert len(page.results) <= limit
        found += page.results
        if not page.next:
            break
        question = replace(question, after=page.next)
    assert found == whole
    assert [one.end for one in found] == sorted((one.end for one in found), reverse=newest_first)
    assert len({(one.key, one.end) for one in found}) == windows
    assert (len(found) == windows) is not revisions


def test_pages_of_the_newest_first_repeat_and_miss_nothing_while_new_results_come(
    tmp_path: Path,
) -> None:
    kept = store(tmp_path)
    kept.write(0, [portion([Row("a", T + n * SECOND, b'{"n":%d}' % n) for n in range(6)])], T)
    first = find_results(tmp_path, ResultQuery(limit=2, newest_first=True), T)
    newer = [Row("a", T + n * SECOND, b'{"n":%d}' % n) for n in (6, 7)]
    # A later revision of what the first page had, and of what is still to come.
    again = [Row("a", T + n * SECOND, b'{"n":%d,"again":1}' % n) for n in (5, 1)]
    kept.write(1, [portion([*newer, *again])], T)
    rest = find_results(tmp_path, ResultQuery(limit=10, newest_first=True, after=first.next), T)
    assert [one.content for one in (*first.results, *rest.results)] == [
        *(b'{"n":5}', b'{"n":4}', b'{"n":3}', b'{"n":2}', b'{"n":1,"again":1}', b'{"n":0}')
    ]
    with pytest.raises(ResultQueryError, match="after is of a page in the other order"):
        find_results(tmp_path, ResultQuery(after=first.next), T)


def test_a_page_ends_with_its_bytes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "MAX_PAGE_BYTES", 100)
    keep(tmp_path, *(Row(str(n), T + n, b"x" * 60) for n in range(10)))
    page = find_results(tmp_path, ResultQuery(), T)
    assert len(page.results) == 2 and page.next
    assert len(list(iterate_results(tmp_path, ResultQuery(), T))) == 10


@pytest.mark.parametrize(
    ("question", "problem"),
    [
        (ResultQuery(limit=0), "limit is 0, expected 1 to 10000"),
        (ResultQuery(limit=MAX_RESULTS + 1), "limit is 10001, expected 1 to 10000"),
        (ResultQuery(since=T + 1, until=T), "from is .* which is after to"),
        (ResultQuery(after="nonsense"), "after is 'nonsense', which is no place among results"),
        (ResultQuery(after="WzFd"), "is no place among results"),
        (ResultQuery(after="WzEsMiwiYSIsIngiLDEsMSwxXQ"), "is no place among results"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(
    tmp_path: Path, question: ResultQuery, problem: str
) -> None:
    keep(tmp_path, Row())
    with pytest.raises(ResultQueryError, match=problem):
        find_results(tmp_path, question, T)


@pytest.mark.parametrize(
    "key",
    ["it's", "a\0b", "", "[x]", "'; DROP TABLE results; --", "\\", "k%", "ключ", "a*", "null"],
)
def test_keys_are_texts_and_nothing_else(tmp_path: Path, key: str) -> None:
    keep(tmp_path, Row(key, T, b"1"), Row("other", T, b"2"), Row(key + "x", T, b"3"))
    assert [one.content for one in read(tmp_path, key=key)] == [b"1"]
    page = find_results(tmp_path, ResultQuery(limit=1), T)
    follow = find_results(tmp_path, ResultQuery(after=page.next), T)
    assert len(page.results) + len(follow.results) == 3


def test_contents_come_back_as_they_were(tmp_path: Path) -> None:
    raws = [
        b"\xff\xfe",
        b"",
        b"plain text",
        b'{"n": 1.0, "big": 123456789012345678901}',
        "ü".encode(),
    ]
    keep(tmp_path, *(Row("a", T + n, raw) for n, raw in enumerate(raws)))
    found = read(tmp_path)
    assert [one.content for one in found] == raws
    shown = [one.to_json_values() for one in found]
    assert shown[0]["content_base64"] == "//4=" and "content" not in shown[0]
    assert [one.get("content") for one in shown[1:3]] == ["", "plain text"]
    assert b'"big":123456789012345678901' in dump_json(shown[3])


def test_what_is_said_of_a_result(tmp_path: Path) -> None:
    keep(tmp_path, Row([1, "b"], T + 1, b"{}", T - 5, "flush", 0, 0, '{"topic":"x"}', "it failed"))
    [found] = read(tmp_path)
    assert found.to_json_values() == {
        "key": [1, "b"],
        "start": "2023-11-14T22:13:19.999999995Z",
        "end": "2023-11-14T22:13:20.000000001Z",
        "emitted_at": "2023-11-14T22:13:20Z",
        "emit": "flush",
        "revision": 1,
        "content": {},
        "metadata": {"topic": "x"},
        "error": "it failed",
    }


def test_where_no_results_are_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(RetentionError, match=r"there are no results in .*has the field retention"):
        find_results(tmp_path / "nowhere", ResultQuery(), T)
    store(tmp_path)
    assert find_results(tmp_path, ResultQuery(), T).results == ()


def test_a_directory_may_be_called_anything(tmp_path: Path) -> None:
    odd = tmp_path / "it's [a] *dir?"
    kept = store(odd)
    for batch in range(COMPACT_AFTER_FILES + 2):
        kept.write(batch, [portion([Row("a", T + batch)])], T)
    assert len(read(odd)) == COMPACT_AFTER_FILES + 2


def test_files_that_vanish_while_they_are_read_are_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = store(tmp_path)
    for batch in range(COMPACT_AFTER_FILES):
        kept.write(batch, [portion([Row("a", T + batch)])], T)
    plain = query.take_snapshot
    looks = []

    def slow(layout):
        found = plain(layout)
        looks.append(found)
        if len(looks) == 1:
            kept.write(COMPACT_AFTER_FILES, [], T)
            for path in found.new:
                path.unlink()
        return found

    monkeypatch.setattr(query, "take_snapshot", slow)
    assert len(read(tmp_path)) == COMPACT_AFTER_FILES
    assert len(looks) == 2


def test_a_file_that_is_damaged_is_an_error_and_no_traceback(tmp_path: Path) -> None:
    keep(tmp_path, Row())
    [path] = (tmp_path / "new").iterdir()
    path.write_bytes(b"PAR1 this is no Parquet PAR1")
    with pytest.raises(RetentionError, match="cannot be read: .* is not a file of results"):
        read(tmp_path)
    with pytest.raises(RetentionError, match="is not a file of results"):
        store(tmp_path, afresh=False)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2023-11-14T22:13:20Z", T),
        ("2023-11-14T23:13:20+01:00", T),
        ("1700000000", T),
        ("1700000000.5", T + SECOND // 2),
        ("2023-11-15T22:14:20Z", T + DAY + MINUTE),
    ],
)
def test_times_are_written_as_everywhere(text: str, time: int) -> None:
    assert parse_time("from", text) == time


@pytest.mark.parametrize("text", ["", "soon", "true", "[1]", "null", "2023-11-14", '"x"', "1e400"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ResultQueryError, match="from is .* expected a time such as"):
        parse_time("from", text)
