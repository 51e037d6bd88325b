"""What was taken and is damaged on the disk: the stream stops, and goes on behind it when asked."""

from __future__ import annotations

import re
import shutil
import urllib.request
from pathlib import Path

import pytest

from tests.faults.program import program
from tests.faults.test_http_input import FILE, INPUT, LATER, lines_of, post
from tests.servers import free_port

pytestmark = pytest.mark.slow


def test_a_flipped_bit_of_what_was_taken_stops_the_stream_until_it_is_to_be_skipped(
    tmp_path: Path,
) -> None:
    port, out, checkpoint = free_port(), tmp_path / "out", tmp_path / "c"
    config = tmp_path / "http.yaml"
    stream = INPUT.format(port=port) + FILE.replace("OUT", str(out))
    config.write_text(stream + LATER)
    sent = [b"%d" % number for number in range(20)]
    with program(config, checkpoint) as running:
        running.wait_running()
        for body in sent:
            assert post(port, "/a/post", body)[0] == 200
        running.kill()
    (segment,) = checkpoint.glob("spool/*.seg")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 4
    segment.write_bytes(data)
    config.write_text(stream)
    with program(config, checkpoint) as running:
        assert running.finish(120) == 1
        (text,) = [one for one in running.messages() if "the spool is damaged" in one]
    assert str(segment) in text and "--skip-damaged" in text
    (lost,) = re.findall(r"(\d+) messages? that came in", text)
    assert segment.read_bytes() == data and not lines_of(out)
    with program(config, checkpoint, "--skip-damaged") as running:
        running.wait_for(
            lambda: len(lines_of(out)) >= len(sent) - int(lost), 120, "what is not damaged"
        )
        page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        assert re.search(rf"^input_lost{{.*}} {lost}(\.0)?$", page, re.M)
        assert post(port, "/a/post", b"more")[0] == 200
        running.wait_for(lambda: b"a:more" in lines_of(out), 120, "what comes after it")
        assert running.stop() == 0
    expected = iter([*(b"a:" + body for body in sent), b"a:more"])
    found = lines_of(out)
    assert len(found) == 21 - int(lost) and all(line in expected for line in found)


WINDOWS = """
buffer:
  tumbling_window: { size: 1h, end_of_input: flush }
output: { drop: {} }
spark: { shards: 1, trigger_interval: 500ms, master: "local[1]" }
"""


def state_of_three_micro_batches(tmp_path: Path) -> tuple[int, Path, Path, dict[int, Path]]:
    """Return port, config, checkpoint, and the logs of the shard's state by their versions."""
    port, checkpoint = free_port(), tmp_path / "c"
    config = tmp_path / "windows.yaml"
    config.write_text(INPUT.format(port=port) + WINDOWS)

    def logged() -> int:
        return len(list(checkpoint.glob("spark/commits/[0-9]*")))

    with program(config, checkpoint) as running:
        running.wait_running()
        for number in range(3):
            before = logged()
            assert post(port, "/a/post", b'{"n":%d}' % number)[0] == 200
            running.wait_for(lambda before=before: logged() > before, 60, "a micro-batch")
        assert running.stop() == 0
    logs = {
        int(path.name.partition("_")[0]): path
        for path in checkpoint.glob("spark/state/0/0/**/*.changelog")
    }
    return port, config, checkpoint, logs


def test_an_older_copy_of_a_file_of_state_is_not_gone_on_with(tmp_path: Path) -> None:
    port, config, checkpoint, logs = state_of_three_micro_batches(tmp_path)
    newest = max(logs)
    for name in ("{}", ".{}.crc"):  # With Hadoop's check sum beside it, which else would not fit.
        older, newer = (logs[n].with_name(name.format(logs[n].name)) for n in (newest - 1, newest))
        shutil.copy(older, newer)
    with program(config, checkpoint) as running:
        running.wait_running()
        post(port, "/a/post", b'{"n":9}')
        assert running.finish(120) == 1
        # By Spark's own record of what led to it, or by the mark in what it holds.
        signs = ("holds cannot be read: ", "the windows' state is damaged")
        assert any(sign in text for text in running.messages() for sign in signs)


def test_a_file_of_state_that_is_damaged_or_gone_stops_the_stream(
    tmp_path: Path,
) -> None:
    port, config, checkpoint, logs = state_of_three_micro_batches(tmp_path)
    out, whole, newest = tmp_path / "out", tmp_path / "whole", logs[max(logs)]
    text = config.read_text().replace("drop: {}", f"file: {{ path: {out} }}")
    config.write_text(text)
    shutil.copytree(checkpoint, whole)
    data = newest.read_bytes()
    middle = len(data) // 2
    harms = {
        "flipped": data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :],
        "deleted": None,
    }
    for harm, left in harms.items():
        shutil.rmtree(checkpoint)
        shutil.copytree(whole, checkpoint)
        if left is None:
            newest.unlink()
        else:
            newest.write_bytes(left)
        with program(config, checkpoint) as running:
            running.wait_running()
            post(port, "/a/post", b'{"n":9}')
            assert running.finish(120) == 1, harm
            # Of one that is gone Spark does not say which it was.
            signs = ("cannot be read: ", f"the checkpoint {checkpoint} was removed or changed")
            assert any(sign in one for one in running.messages() for sign in signs), harm
        assert not lines_of(out), harm
