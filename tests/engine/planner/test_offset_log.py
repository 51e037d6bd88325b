"""What Spark's log of offsets says of a micro-batch, and what is said when it cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.connectors.kafka.input.opened_input import Offsets
from streamer.core.errors import StreamerError
from streamer.engine.planner.offset_log import read_newest_planned, read_planned
from streamer.engine.planner.planner_channels import MicroBatchOffset, is_before

TEXT = 'v1\n{"batchTimestampMs":12,"conf":{}}\n{"data":{"pos":3}}\n-\n{"cars":{"0":5}}'


@pytest.fixture
def spark(tmp_path: Path) -> Path:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "7").write_text(TEXT)
    return tmp_path


def test_the_newest_micro_batch_is_read(spark: Path) -> None:
    assert read_newest_planned(spark) == (7, MicroBatchOffset({"pos": 3}), [{}, {"cars": {"0": 5}}])


@pytest.mark.parametrize(
    ("content", "how"),
    [
        (b"", "is empty"),
        (TEXT[:2].encode(), r"ends too soon or was written over \(2 bytes\)"),
        (TEXT[:20].encode(), "ends too soon"),
        (TEXT[:-3].encode(), "ends too soon"),
        (TEXT.replace("batchTimestampMs", "x").encode(), "written over"),
        (b"v1\n[]\n{}\n{}", "written over"),
        (b"\xff\xfe\x80", "written over"),
        (b"\0" * 90, "written over"),
    ],
)
def test_a_damaged_log_is_named_with_what_to_do(spark: Path, content: bytes, how: str) -> None:
    (spark / "offsets" / "7").write_bytes(content)
    with pytest.raises(StreamerError, match=f"^{spark}/offsets/7 .*{how}") as caught:
        read_planned(spark, 7)
    assert "restore the checkpoint from a backup, or start again" in str(caught.value)


def test_a_log_of_another_version_of_spark_is_told_from_a_damaged_one(spark: Path) -> None:
    (spark / "offsets" / "7").write_text(TEXT.replace("v1", "v2"))
    with pytest.raises(StreamerError, match="form v2, expected v1: another version of Spark"):
        read_planned(spark, 7)


@pytest.mark.parametrize(
    ("ends", "later", "before"),
    [
        ([{"a": {"0": 4}}], [{"a": {"0": 5}}], True),
        ([{"a": {"0": 5}}], [{"a": {"0": 5}}], False),
        ([{"a": {"0": 9, "1": 4}}], [{"a": {"0": 5, "1": 5}}], True),
        ([{"a": {"0": 5}}, {"b": {"0": 1}}], [{"a": {"0": 5}}, {"b": {"0": 2}}], True),
        ([{"a": {"0": 5}}, {"a": {"0": 9}}], [{"a": {"0": 5}}, {"a": {"0": 9}}], False),
        # A partition that is gone, and one that has come.
        ([{"a": {"0": 5}}], [{"a": {"0": 5, "1": 9}}], False),
        ([{"a": {"0": 5, "1": 0}}], [{"a": {"0": 5}}], False),
        ([{}], [{"a": {"0": 5}}], False),
        ([], [], False),
    ],
)
def test_a_position_is_before_another_where_something_lies_between(
    ends: list[Offsets], later: list[Offsets], before: bool
) -> None:
    assert is_before(ends, later) is before
