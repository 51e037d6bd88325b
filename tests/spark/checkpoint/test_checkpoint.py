"""The checkpoint directory: who may use it, what fits it, and when it begins anew."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from streamer.spark.checkpoint.checkpoint import Checkpoint, CheckpointError

FITS = {"input": "file", "window": "system_window(10s,10s,0s)", "key": None, "shards": 2}


def begun(checkpoint: Checkpoint) -> None:
    """Leave what Spark leaves when a stream has started."""
    (checkpoint.spark / "offsets").mkdir(parents=True)
    (checkpoint.spark / "offsets" / "0").touch()


@pytest.fixture
def held(tmp_path):
    checkpoint = Checkpoint(tmp_path / "c")
    yield checkpoint
    checkpoint.close()


def test_the_directory_is_made_with_its_parents(tmp_path):
    checkpoint = Checkpoint(tmp_path / "a" / "b" / "c")
    assert checkpoint.directory.is_dir() and not checkpoint.is_resumable
    assert checkpoint.read_record() == {}
    checkpoint.close()


def test_a_second_user_is_refused_until_the_first_has_gone(tmp_path):
    first = Checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match="another streamer uses.*--checkpoint"):
        Checkpoint(tmp_path, wait=0)
    first.close()
    Checkpoint(tmp_path, wait=0).close()


def test_whoever_inherits_the_lock_holds_it_after_the_program_is_gone(tmp_path):
    first = Checkpoint(tmp_path)
    command = [sys.executable, "-c", "input()"]
    jvm = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[first.lock])
    first.close()
    with pytest.raises(CheckpointError):
        Checkpoint(tmp_path, wait=0)
    jvm.communicate(b"\n")
    Checkpoint(tmp_path, wait=0).close()


def test_waiting_is_worth_it_when_the_other_is_about_to_go(tmp_path):
    first = Checkpoint(tmp_path)
    command = [sys.executable, "-c", "import time; time.sleep(0.2)"]
    jvm = subprocess.Popen(command, pass_fds=[first.lock])
    first.close()
    Checkpoint(tmp_path, wait=20).close()
    assert jvm.wait() == 0


def test_the_jvm_of_a_program_that_was_killed_is_waited_for(tmp_path):
    code = """
import os, subprocess, sys
from streamer.spark.checkpoint.checkpoint import Checkpoint
held = Checkpoint(sys.argv[1])
jvm = [sys.executable, "-c", "import sys; sys.stdin.read()"]
subprocess.Popen(jvm, pass_fds=[held.lock])
print("held", flush=True)
os.kill(os.getpid(), 9)
"""
    killed = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert killed.stdout.readline() == b"held\n"
    killed.wait()
    # Far longer than one waits for a program that is well.
    threading.Timer(0.5, killed.stdin.close).start()
    Checkpoint(tmp_path, wait=0.01).close()


def test_what_a_start_left_before_its_first_micro_batch_is_nothing_to_go_on_with(held):
    offsets = held.spark / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.34aedfe6.tmp").write_text("v1")
    assert not held.is_resumable
    held.forget_unplanned()
    assert not held.spark.exists()
    offsets.mkdir(parents=True)
    (offsets / "0").write_text("v1")
    assert held.is_resumable
    held.forget_unplanned()
    assert (offsets / "0").read_text() == "v1"


def test_a_url_of_a_local_file_is_a_path(tmp_path):
    checkpoint = Checkpoint(f"file://{tmp_path}/c")
    assert checkpoint.directory == tmp_path / "c"
    checkpoint.close()


def test_a_remote_path_is_refused():
    with pytest.raises(CheckpointError, match="s3a://bucket/c: expected a directory of this mac"):
        Checkpoint("s3a://bucket/c")


def test_a_place_that_cannot_be_written_says_what_to_do(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="cannot be written.*name another one"):
        Checkpoint(tmp_path / "file" / "c")


def test_what_it_is_bound_to_is_written_down(held):
    held.bind(FITS, {"": ["/data/a", "/data/b"]})
    assert held.read_record()["inputs"] == {"": ["/data/a", "/data/b"]}
    assert held.check_fingerprint(FITS) == FITS
    assert [path.name for path in held.directory.iterdir() if path.suffix == ".tmp"] == []


def test_a_new_directory_fits_everything(held):
    assert held.check_fingerprint(FITS) == FITS


def test_the_number_of_shards_is_the_checkpoints(held):
    held.bind(FITS, {})
    assert held.check_fingerprint({**FITS, "shards": 8}) == FITS


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("input", "stdin", "input file, the config has input stdin"),
        ("window", "none", "buffer system_window (size: 10s), the config has buffer none"),
        ("key", "${! this.a }", "grouping none, the config has grouping by ${! this.a }"),
    ],
)
def test_another_input_buffer_or_grouping_is_refused(held, name, value, what):
    held.bind(FITS, {})
    begun(held)
    with pytest.raises(CheckpointError) as caught:
        held.check_fingerprint({**FITS, name: value})
    text = str(caught.value)
    assert f"was made with {what}, which cannot go on with its open windows; " in text
    # What loses nothing comes before what loses the open windows.
    first, second = text.index("to lose nothing"), text.index("--checkpoint to start from")
    assert first < text.index("the earlier config once with -w --on-reset drain") < second


def test_where_the_earlier_config_is_known_its_windows_can_come_out_at_once(held):
    held.bind(FITS, {})
    begun(held)
    (held.directory / "running.plan").touch()
    with pytest.raises(CheckpointError, match="to lose nothing, start with -w --on-reset drain: "):
        held.check_fingerprint({**FITS, "window": "none"})


def test_without_open_windows_nothing_is_to_be_drained(held):
    held.bind({**FITS, "window": "none"}, {})
    begun(held)
    with pytest.raises(CheckpointError, match="input file, the config has input stdin; change it"):
        held.check_fingerprint({**FITS, "window": "none", "input": "stdin"})


def test_a_spark_checkpoint_of_something_else_is_refused(held):
    begun(held)
    assert held.is_resumable
    with pytest.raises(CheckpointError, match="holds a Spark checkpoint but no streamer.json"):
        held.read_record()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"null"])
def test_a_record_that_cannot_be_read_says_what_to_do(held, content):
    (held.directory / "streamer.json").write_bytes(content)
    with pytest.raises(CheckpointError, match="cannot be read.*restore it from a backup"):
        held.clear_finished_run()


def test_another_format_is_refused(held):
    (held.directory / "streamer.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(CheckpointError, match="has format 99, this program reads 1"):
        held.check_fingerprint(FITS)


def filled(checkpoint: Checkpoint) -> None:
    begun(checkpoint)
    checkpoint.bind(FITS, {})
    for name in ("spool", "signals"):
        (checkpoint.directory / name).mkdir()
    for name in ("files.json", "files.newest", "files-1.json"):
        (checkpoint.directory / name).write_text('{"batch": 0, "lengths": {"out": 0}}')


def test_a_run_that_was_not_finished_is_continued(held):
    filled(held)
    before = sorted(os.listdir(held.directory))
    assert not held.clear_finished_run()
    assert sorted(os.listdir(held.directory)) == before and held.is_resumable


def test_after_a_finished_run_nothing_is_left_that_a_new_one_could_take_for_its_own(held):
    filled(held)
    held.finish()
    assert held.clear_finished_run()
    assert os.listdir(held.directory) == ["lock"]
    assert held.read_record() == {} and not held.is_resumable
    assert not held.clear_finished_run()


def test_the_lock_stays_over_a_new_beginning(held, tmp_path):
    filled(held)
    held.finish()
    held.clear_finished_run()
    with pytest.raises(CheckpointError):
        Checkpoint(Path(tmp_path / "c"), wait=0)
