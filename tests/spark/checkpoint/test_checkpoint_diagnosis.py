"""Which file of a checkpoint is said to be damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.engine.report.metric_labels import EndpointLabels
from streamer.spark.checkpoint.checkpoint_diagnosis import diagnose_failure, find_damaged_file

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
    assert find_damaged_file(checkpoint) == ""
    assert find_damaged_file(tmp_path / "none") == ""


@pytest.mark.parametrize("log", ["offsets", "commits"])
@pytest.mark.parametrize(
    "content",
    [b"", b"v1", b"v1\n", b"\xff\xfe\x80", b"v1\nhello\n", b"hello", b'{"a":1}\n', b'v1\n{"data":'],
    ids=str,
)
def test_a_file_that_is_needed_and_cannot_be_read_is_named(
    checkpoint: Path, log: str, content: bytes
) -> None:
    (checkpoint / log / "9").write_bytes(content)
    assert find_damaged_file(checkpoint) == "", "an older one is not read"
    (checkpoint / log / "10").write_bytes(content)
    assert find_damaged_file(checkpoint) == f"{log}/10"
    (checkpoint / log / "11").write_bytes(content)
    assert find_damaged_file(checkpoint) == f"{log}/11"


@pytest.mark.parametrize(
    "error",
    [
        "java.lang.IllegalStateException: Incomplete log file in the offset commit log",
        "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.",
    ],
)
@pytest.mark.parametrize(
    ("content", "how"),
    [(b"", "is empty"), (b"v2\n", "ends too soon or was written over (3 bytes)")],
)
def test_the_file_what_was_found_and_what_to_do_are_said(
    checkpoint: Path, error: str, content: bytes, how: str
) -> None:
    (checkpoint / "commits" / "11").write_bytes(content)
    places = EndpointLabels({"path": "root.input"}, None, ())
    found = diagnose_failure(error, places, checkpoint.parent, checkpoint)
    assert found.is_permanent and found.text == (
        f"the checkpoint {checkpoint.parent} is damaged, {checkpoint}/commits/11 {how}; "
        "restore the checkpoint from a backup, or start again with another one"
    )
