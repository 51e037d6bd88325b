"""The `csv` input: rows as objects and arrays, batches, what it forgives, restarts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from streamer.core.errors import ConfigError
from streamer.sdk.input.replayable import Limit

from .reading import Said, batches_of, built, planned

ALL = Limit()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def source(more: str = "", paths: str = "[in.csv]") -> Any:
    return built(f"input: {{csv: {{paths: {paths}{more}}}}}").continue_from([])


def batches(of: Any, limit: Limit = ALL, said: Said | None = None) -> list[list[Any]]:
    ex = (said or Said()).execution()
    return [
        [message.doc for message in batch]
        for start, latest in planned(of, limit)
        for batch in batches_of(of, start, latest.offset, ex=ex)
    ]


def test_the_first_row_names_the_fields(here: Path) -> None:
    rows = "foo,bar,baz\nfirst foo,first bar,first baz\nsecond foo,second bar,second baz\n"
    Path("in.csv").write_text(rows)
    assert batches(source()) == [
        [{"foo": "first foo", "bar": "first bar", "baz": "first baz"}],
        [{"foo": "second foo", "bar": "second bar", "baz": "second baz"}],
    ]
    assert batches(source(", parse_header_row: false"))[2] == [
        ["second foo", "second bar", "second baz"]
    ]


def test_metadata_name_the_file_and_the_columns_in_order(here: Path) -> None:
    Path("in.csv").write_text("z,a\n1,2\n")
    os.utime("in.csv", (1_700_000_000, 1_700_000_000))
    expected = {
        "path": "in.csv",
        "mod_time_unix": 1_700_000_000,
        "mod_time": "2023-11-14T22:13:20Z",
    }
    of = source()
    [[message]] = batches_of(
        of, of.initial_offset(), of.latest_offset(of.initial_offset(), 0, ALL).offset
    )
    assert dict(message.meta) == {**expected, "header": ["z", "a"]}
    of = source(", parse_header_row: false")
    [_, [message]] = batches_of(
        of, of.initial_offset(), of.latest_offset(of.initial_offset(), 0, ALL).offset
    )
    assert dict(message.meta) == expected


@pytest.mark.parametrize("limit", [Limit(1), Limit(2), Limit(5), Limit(size=30), ALL])
@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_batches_are_those_of_each_file_wherever_micro_batches_end(
    here: Path, limit: Limit, quote: str, size: int
) -> None:
    expected = []
    for name in "abc":
        documents = [{"n": f"{name}{n}"} for n in range(10)]
        rows = [f"{quote}{document['n']}{quote}" for document in documents]
        Path(f"{name}.csv").write_text("\n".join(["n", *rows]))
        expected += [documents[at : at + size] for at in range(0, 10, size)]
    found = batches(source(f", batch_count: {size}", "['*.csv']"), limit)
    assert found == expected


def test_every_place_where_a_batch_ends_is_one_to_go_on_from(here: Path) -> None:
    rows = [str(n) if n % 3 else f'"{n}\n"' for n in range(50)]
    Path("in.csv").write_text("\n".join(["n", *rows]) + "\n")
    of = source(", batch_count: 4")
    whole = batches(of)
    at, found = of.initial_offset(), []
    while True:
        latest = of.latest_offset(json.loads(json.dumps(at)), 0, Limit(4))
        found += [[m.doc for m in batch] for batch in batches_of(of, at, latest.offset)]
        at = latest.offset
        if latest.is_ended:
            break
    assert found == whole
    assert [len(batch) for batch in whole] == [4] * 12 + [2]


def test_rows_that_do_not_fit_the_header_are_taken_as_they_are(here: Path) -> None:
    Path("in.csv").write_text('a,b\n1,2\n3\n4,5,6\n7,x"y\nx"\n8,9\n')
    said = Said()
    assert batches(source(), said=said) == [
        [{"a": "1", "b": "2"}],
        [{"a": "3"}],
        [["4", "5", "6"]],
        [{"a": "7"}],
        [{"a": "8", "b": "9"}],
    ]
    text = 'Failed to read message: in.csv: parse error on line 6, column 2: bare " in non-quoted-f'
    assert [(level, said[: len(text)]) for level, said in said.log] == [("ERROR", text)]


def test_delimiter_and_lazy_quotes(here: Path) -> None:
    Path("in.csv").write_text('a;b\nx"y;"z"w"\n')
    assert batches(source(", delimiter: ;, lazy_quotes: true")) == [[{"a": 'x"y', "b": 'z"w'}]]


def test_files_are_deleted_when_the_checkpoint_has_them(here: Path) -> None:
    Path("in.csv").write_text("a\n1\n")
    of = source(", delete_on_finish: true")
    of.on_committed(of.latest_offset(of.initial_offset(), 0, ALL).offset)
    assert os.listdir() == []


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (", delimiter: ''", "exactly one letter"),
        (", delimiter: ab", "exactly one letter"),
        (", batch_count: 0", "expected 1 or more"),
    ],
)
def test_lint_refuses_what_cannot_be(more: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        source(more)
