"""The `file` input with scanners other than lines: bounded micro-batches, pieces, restarts."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.files.scanned_files import ScannedPiece
from streamer.core.errors import ConfigError
from streamer.sdk.input.replayable import Limit

from .reading import Said, batches_of, built, planned, raws_of

ALL = Limit()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def source(how: str, *paths: str, known: tuple[str, ...] = ()) -> Any:
    text = f"input: {{file: {{paths: [{', '.join(map(repr, paths))}], {how}}}}}\n"
    return built(text).continue_from(list(known))


def everything(of: Any, limit: Limit = ALL, parts: int = 1) -> list[bytes]:
    return [
        raw
        for start, latest in planned(of, limit)
        for raw in raws_of(of, start, latest.offset, parts)
    ]


def csv(rows: int, quoted: bool = False) -> str:
    quote = '"' if quoted else ""
    return "id,name\n" + "".join(f"{n},{quote}x{n}{quote}\n" for n in range(rows))


@pytest.mark.parametrize("limit", [Limit(1), Limit(3), Limit(1000), Limit(size=50), ALL])
@pytest.mark.parametrize("quoted", [False, True])
def test_micro_batches_of_any_size_give_every_row_once_and_in_order(
    here: Path, limit: Limit, quoted: bool
) -> None:
    expected = []
    for name in "abc":
        Path(name).write_text(csv(20, quoted))
        expected += [f'{{"id":"{n}","name":"x{n}"}}'.encode() for n in range(20)]
    Path("b0").write_text("")
    assert everything(source("scanner: {csv: {}}", "*"), limit) == expected


def test_a_micro_batch_takes_no_more_than_its_limit_of_a_large_file(here: Path) -> None:
    Path("a").write_text(csv(5000))
    of = source("scanner: {csv: {}}", "a")
    counts = [len(raws_of(of, at, latest.offset)) for at, latest in planned(of, Limit(700))]
    assert counts == [700] * 7 + [100]
    waiting = [latest.waiting for _, latest in planned(of, Limit(700))]
    assert waiting[:7] == [700] * 7


def test_a_packed_file_that_is_larger_than_a_micro_batch_is_gone_on_with(here: Path) -> None:
    lines = [b"line %d" % n for n in range(30_000)]
    Path("a.gz").write_bytes(gzip.compress(b"\n".join(lines)))
    of = source("scanner: {decompress: {algorithm: gzip, into: {lines: {}}}}", "a.gz")
    steps = list(planned(of, Limit(size=100_000)))
    assert len(steps) > 2
    assert [raw for at, to in steps for raw in raws_of(of, at, to.offset)] == lines


def test_a_restart_goes_on_in_the_middle_of_a_file(here: Path) -> None:
    Path("a").write_text(csv(10))
    Path("b").write_text(csv(10))
    first = source("scanner: {csv: {}}", "a", "b")
    after = first.latest_offset(first.initial_offset(), 0, Limit(7)).offset
    again = source("scanner: {csv: {}}", "a", "b", known=first.files)
    latest = again.latest_offset(after, 0, ALL)
    assert len(raws_of(again, after, latest.offset)) == 13
    assert latest.is_ended
    assert [m.meta["csv_row"] for [m] in batches_of(again, after, latest.offset)][:3] == [7, 8, 9]


def test_new_files_follow_and_files_that_have_gone_are_left_out(here: Path) -> None:
    for name in "ab":
        Path(name).write_text(f"[{name!r}]".replace("'", '"'))
    first = source("scanner: {json_array: {}}", "*")
    end = first.latest_offset(first.initial_offset(), 0, ALL).offset
    Path("0").write_text("[0]")
    again = source("scanner: {json_array: {}}", "*", known=first.files)
    assert raws_of(again, end, again.latest_offset(end, 0, ALL).offset) == [b"0"]
    os.unlink("a")
    start = again.initial_offset()
    assert raws_of(again, start, again.latest_offset(start, 0, ALL).offset) == [b'"b"', b"0"]


def test_every_message_has_the_files_metadata_and_the_scanners(here: Path) -> None:
    Path("a").write_text("h\n1\n")
    os.utime("a", (1_700_000_000, 1_700_000_000))
    of = source("scanner: {csv: {}}", "./a")
    [[message]] = batches_of(
        of, of.initial_offset(), of.latest_offset(of.initial_offset(), 0, ALL).offset
    )
    assert dict(message.meta) == {
        "path": "./a",
        "mod_time_unix": 1_700_000_000,
        "mod_time": "2023-11-14T22:13:20Z",
        "csv_row": 0,
    }


def test_what_cannot_be_read_is_logged_and_the_next_file_is_read(here: Path) -> None:
    Path("a").write_text('{"n":1}\nnope')
    Path("b").write_text('{"n":2}')
    for limit in (ALL, Limit(1)):
        said = Said()
        of = source("scanner: {json_documents: {}}", "a", "b")
        found = [
            message.raw
            for at, to in planned(of, limit)
            for batch in batches_of(of, at, to.offset, ex=said.execution())
            for message in batch
        ]
        assert found == [b'{"n":1}', b'{"n":2}']
        expected = "Failed to read message: a: byte 8: invalid character 'o' in literal null"
        assert [(level, text.partition(" (")[0]) for level, text in said.log] == [
            ("ERROR", expected)
        ]


def test_messages_of_one_size_are_cut_into_pieces_without_a_look_into_the_file(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = os.urandom((3 << 20) + 5)
    Path("a").write_bytes(data)
    of = source("scanner: {chunker: {size: 1000}}", "a")
    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", None)
        steps = list(planned(of, Limit(2500)))
        assert [latest.waiting for _, latest in steps][0] == 2500
        pieces = of.split(of.initial_offset(), steps[-1][1].offset, 3)
    assert [type(piece) for piece in pieces] == [ScannedPiece] * 3
    assert b"".join(everything(of, Limit(2500), 3)) == data
    assert b"".join(everything(of)) == data


def test_an_empty_file_is_an_empty_message_to_the_end(here: Path) -> None:
    Path("a").write_text("")
    Path("b").write_text("b")
    assert everything(source("scanner: {to_the_end: {}}", "a", "b")) == [b"", b"b"]


def test_files_are_deleted_when_the_checkpoint_has_all_of_them(here: Path) -> None:
    for name in "abc":
        Path(name).write_text(csv(10))
    of = source("scanner: {csv: {}}, delete_on_finish: true", "a", "b", "c")
    of.on_committed(of.latest_offset(of.initial_offset(), 0, Limit(15)).offset)
    assert sorted(os.listdir()) == ["b", "c"]
    of.on_finished()
    assert os.listdir() == []


@pytest.mark.parametrize(
    ("codec", "name", "data", "expected"),
    [
        ("lines", "x", b"a\nb", [b"a", b"b"]),
        ("delim:::", "x", b"a::b", [b"a", b"b"]),
        ("all-bytes", "x", b"a\nb", [b"a\nb"]),
        ("chunker:2", "x", b"abc", [b"ab", b"c"]),
        ("csv", "x", b"a,b\n1,2\n", [b'{"a":"1","b":"2"}']),
        ("csv:|", "x", b"a|b\n1|2\n", [b'{"a":"1","b":"2"}']),
        ("regex:(?m)^#", "x", b"#1\n#2", [b"#1\n", b"#2"]),
        ("gzip", "x", gzip.compress(b"ab", mtime=0), [b"ab"]),
        ("gzip/lines", "x", gzip.compress(b"a\nb", mtime=0), [b"a", b"b"]),
        ("skipbom/csv", "x", b"\xef\xbb\xbfa\n1", [b'{"a":"1"}']),
        ("csv-gzip", "x", gzip.compress(b"a\n1", mtime=0), [b'{"a":"1"}']),
        ("auto", "x.csv", b"a\n1\n", [b'{"a":"1"}']),
        ("auto", "x.csv.gz", gzip.compress(b"a\n1\n", mtime=0), [b'{"a":"1"}']),
        ("auto", "x.txt", b"a\n1\n", [b"a\n1\n"]),
    ],
)
def test_an_old_codec_is_read_as_the_scanners_that_it_stands_for(
    here: Path, codec: str, name: str, data: bytes, expected: list[bytes]
) -> None:
    Path(name).write_bytes(data)
    assert everything(source(f"codec: {codec!r}", name)) == expected


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        ("nope", "codec was not recognised: nope; expected all-bytes"),
        ("lines/csv", "unable to follow codec 'lines' with 'csv'"),
        ("delim:", "requires a non-empty value"),
        ("csv:ab", "single character"),
        ("chunker:x", "invalid chunk size"),
        ("avro-ocf", "Avro's container files cannot be read"),
        ("csv-safe", "continue_on_error"),
        ("lines/multipart", "multipart' is not available"),
    ],
)
def test_lint_says_what_is_wrong_with_a_codec(codec: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        source(f"codec: {codec!r}", "x")
