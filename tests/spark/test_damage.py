"""Which file of a checkpoint is said to be damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.spark.damage import damaged

OFFSETS = 'v1\n{"batchWatermarkMs":0,"conf":{"a":"b"}}\n{"data":{"pos":3},"tick":%d}\n-'
COMMITS = 'v2\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{}}'


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    for log, text in (("offsets", OFFSETS), ("commits", COMMITS)):
        (tmp_path / log).mkdir()
        for number in range(12):
            (tmp_path / log / str(number)).write_text(text.replace("%d", str(number)))
            (tmp_path / log / f".{number}.crc").write_bytes(b"crc\0\xff")
    return tmp_path


def test_one_that_spark_has_written_is_whole(checkpoint: Path, tmp_path: Path) -> None:
    assert damaged(checkpoint) == ""
    assert damaged(tmp_path / "none") == ""


@pytest.mark.parametrize("log", ["offsets", "commits"])
@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe\x80", b"v1\nhello\n", b"hello", b'{"a":1}\n', b'v1\n{"data":'],
    ids=str,
)
def test_a_file_that_is_needed_and_cannot_be_read_is_named(
    checkpoint: Path, log: str, content: bytes
) -> None:
    (checkpoint / log / "9").write_bytes(content)
    assert damaged(checkpoint) == "", "an older one is not read"
    (checkpoint / log / "10").write_bytes(content)
    assert damaged(checkpoint) == f"{log}/10"
    (checkpoint / log / "11").write_bytes(content)
    assert damaged(checkpoint) == f"{log}/11"
