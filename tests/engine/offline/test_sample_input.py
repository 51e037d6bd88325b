"""Samples: the first messages of a file or of an input."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from streamer.config import parse_config
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.engine.offline.sample_input import read_file_sample, read_input_sample
from streamer.plan import make_plan


def taken(text: str, most: int) -> list[Batch]:
    return read_input_sample(make_plan(parse_config(text)), most, Execution(lambda: 0))


def raws(batches: list[Batch]) -> list[bytes]:
    return [message.raw for batch in batches for message in batch]


def test_a_file_gives_its_lines_without_empty_ones(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_bytes(b"a\r\n\nb\nc")
    assert raws(read_file_sample(str(path), 9)) == [b"a", b"b", b"c"]
    assert raws(read_file_sample(str(path), 2)) == [b"a", b"b"]


def test_the_standard_input_gives_its_lines() -> None:
    assert raws(read_file_sample("-", 9, io.BytesIO(b"a\nb"))) == [b"a", b"b"]


def test_a_line_of_a_sample_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamer.engine.offline.sample_input.MAX_LINE_BYTES", 1_000)
    with pytest.raises(StreamerError, match="^--input /dev/zero: a line has more than 1,000 bytes"):
        read_file_sample("/dev/zero", 9)
    longest = b"x" * 999 + b"\n"
    assert raws(read_file_sample("-", 9, io.BytesIO(longest * 2))) == [b"x" * 999] * 2


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(StreamerError, match="^--input nowhere: no such file or directory$"):
        read_file_sample("nowhere", 1)


def test_a_file_input_gives_the_first_lines_of_its_files_and_deletes_none(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(f"{name}1\n{name}2\n")
    text = f"input: {{file: {{paths: [{tmp_path}/*], delete_on_finish: true}}}}"
    found = taken(text, 3)
    assert raws(found) == [b"a1", b"a2", b"b1"]
    assert found[0][0].meta["path"] == f"{tmp_path}/a"
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


@pytest.mark.parametrize("interval", ["1h", ""])
def test_a_generate_input_is_not_waited_for(interval: str) -> None:
    mapping = 'root = count("n")'
    text = f"input: {{generate: {{mapping: '{mapping}', interval: '{interval}', batch_size: 2}}}}"
    found = taken(text, 3)
    assert [len(batch) for batch in found] == [2, 1]
    assert raws(found) == [b"1", b"2", b"3"]


@pytest.mark.parametrize(
    "mapping", ["root = 1", "'root = if count(\"n\") % 2 == 0 { deleted() } else { 1 }'"]
)
def test_a_generate_input_ends_with_its_count(mapping: str) -> None:
    text = f"input: {{generate: {{mapping: {mapping}, count: 2}}}}"
    assert raws(taken(text, 9)) == [b"1", b"1"]


def test_stdin_is_read_no_further_than_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.BytesIO(b"a\nb\nc\n")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=pipe))
    assert raws(taken("input: {stdin: {}}", 2)) == [b"a", b"b"]
    assert pipe.read() == b"c\n"


def test_stdin_is_cut_by_its_own_delimiter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a;b\nc;d")))
    text = "input: {stdin: {scanner: {lines: {custom_delimiter: ';'}}}}"
    assert raws(taken(text, 9)) == [b"a", b"b\nc", b"d"]
