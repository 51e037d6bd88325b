"""What is wrong with the URL of a checkpoint, and what keeps to a directory: said without Spark."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from streamer.cli.main import invoke
from streamer.plan.checkpoint_dir import local_directory
from streamer.spark.checkpoint import remote_checkpoint
from streamer.spark.checkpoint.checkpoint import CheckpointError, lock_directory
from streamer.spark.checkpoint.remote_checkpoint import (
    file_manager_settings,
    start_and_acquire,
    validate_url,
)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3a://me:secret@lights/a", "s3a://…@lights/a has credentials in it: give them in spark"),
        ("s3://lights/a", "Spark reaches S3 by s3a://lights/a"),
        ("s3a://lights", "expected a directory in it, such as s3a://lights/checkpoints/traffic"),
        ("hdfs://name:8020/", "expected a directory in it"),
    ],
)
def test_a_url_that_is_of_no_use_is_refused_without_its_secrets(url: str, said: str) -> None:
    with pytest.raises(CheckpointError) as refused:
        validate_url(url)
    assert said in str(refused.value) and "secret" not in str(refused.value)


def test_what_stays_on_the_machine_is_told_apart_by_the_url(tmp_path: Path) -> None:
    env = {"XDG_STATE_HOME": str(tmp_path)}
    one, same = (local_directory(f"s3a://lights/a{end}", env) for end in ("", "/"))
    assert one == same and one.parent == tmp_path / "streamer" and one.name.startswith("a-")
    assert one != local_directory("s3a://others/a", env)


def test_objects_are_sent_at_once_and_other_files_renamed() -> None:
    name = "spark.sql.streaming.checkpointFileManagerClass"
    assert "AbortableStream" in file_manager_settings("s3a://a/b")[name]
    assert "FileContext" in file_manager_settings("hdfs://a/b")[name]


def test_a_second_program_of_the_machine_is_refused_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How long it waits for the JVM of a program that was killed is a matter of other tests.
    monkeypatch.setattr(remote_checkpoint, "lock_directory", partial(lock_directory, wait=0.0))
    env, url = {"XDG_STATE_HOME": str(tmp_path)}, "s3a://lights/a"
    held = lock_directory(local_directory(url, env))
    try:
        with pytest.raises(
            CheckpointError, match=r"uses the checkpoint s3a://lights/a \(.+:\d+\);"
        ):
            start_and_acquire(url, env, lambda lock: pytest.fail("Spark was started"), print)
    finally:
        held.close()


def test_a_service_cannot_stand_by_for_one_of_another_machine(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke(["streams", "--standby", "--checkpoints", "s3a://lights/a"]) == 1
    refused = capsys.readouterr().err
    assert "waits for the lock of a directory" in refused and refused.count("\n") == 1
