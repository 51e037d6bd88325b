"""`compress` and `decompress`: every algorithm, against other programs' where there are any."""

from __future__ import annotations

import bz2
import gzip
import zlib

import pytest

from streamer.core.message import Message

from .conftest import Make, Run

TEXT = b"there and back again " * 20


@pytest.mark.parametrize("name", ["flate", "gzip", "lz4", "pgzip", "snappy", "zlib", "zstd"])
def test_what_is_compressed_is_decompressed_again(name: str, make: Make, a_run: Run) -> None:
    compress = make(f"compress: {{algorithm: {name}}}")
    [[packed]] = compress.process([Message(TEXT, {"k": "v"})], a_run.ex)
    assert len(packed.raw) < len(TEXT)
    [[found]] = make(f"decompress: {{algorithm: {name}}}").process([packed], a_run.ex)
    assert (found.raw, dict(found.meta), found.error) == (TEXT, {"k": "v"}, None)


def test_the_files_are_those_of_other_programs(make: Make, a_run: Run) -> None:
    for name, unpack in (("gzip", gzip.decompress), ("zlib", zlib.decompress)):
        [[packed]] = make(f"compress: {{algorithm: {name}, level: 9}}").process(
            [Message(TEXT)], a_run.ex
        )
        assert unpack(packed.raw) == TEXT
    [[found]] = make("decompress: {algorithm: bzip2}").process(
        [Message(bz2.compress(TEXT))], a_run.ex
    )
    assert found.raw == TEXT


def test_each_message_is_packed_and_a_failed_one_stays_marked(make: Make, a_run: Run) -> None:
    batch = [Message(gzip.compress(b"1")), Message(b"nope"), Message(gzip.compress(b"3"))]
    [found] = make("decompress: {algorithm: gzip}").process(batch, a_run.ex)
    assert [message.raw for message in found] == [b"1", b"nope", b"3"]
    assert [message.error is None for message in found] == [True, False, True]
    assert a_run.logged == [("ERROR", f"Failed to decompress message part: {found[1].error}")]


def test_a_level_that_there_is_not_marks_the_message(make: Make, a_run: Run) -> None:
    [[found]] = make("compress: {algorithm: gzip, level: 12}").process([Message(b"x")], a_run.ex)
    assert str(found.error) == "gzip: invalid compression level: 12"
    assert a_run.logged == [("ERROR", f"Failed to compress message: {found.error}")]
