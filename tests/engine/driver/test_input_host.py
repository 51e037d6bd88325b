"""The rooms of inputs: what they remember, share and start on the driver."""

import threading

import pytest

from streamer.core.errors import StreamerError
from streamer.sdk.input.input_context import open_input
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import built, raws_of
from tests.components.inputs.rooms import lodging


def test_rooms_of_inputs_have_names_and_directories_of_their_own(tmp_path):
    with lodging(tmp_path) as lodged:
        outer = lodged.room
        one, other = outer.child("a/b"), outer.child("..")
        assert (outer.name, outer.directory) == ("", tmp_path)
        assert one.name != other.name
        assert one.directory.parent == other.directory.parent == tmp_path
        assert one.child("c").directory.parent == one.directory


def test_what_is_remembered_is_known_at_the_next_start(tmp_path):
    with lodging(tmp_path) as first:
        first.room.child("orders").save_state(["a", "b"])
        remembered = first.house.remembered
    with lodging(tmp_path, remembered) as second:
        assert second.room.child("orders").load_state() == ["a", "b"]
        assert second.room.load_state() is None


def test_what_is_remembered_later_is_kept_at_once(tmp_path):
    saved = []
    with lodging(tmp_path) as lodged:
        lodged.room.child("a").save_state(1)
        lodged.house.save = lambda remembered: saved.append(dict(remembered))
        lodged.room.child("b").save_state(2)
    assert saved == [{"/a": 1, "/b": 2}]


def test_a_claim_is_for_one(tmp_path):
    with lodging(tmp_path) as lodged:
        lodged.room.child("a").claim("the standard input")
        with pytest.raises(StreamerError, match="two inputs read the standard input"):
            lodged.room.child("b").claim("the standard input")


def test_a_receiver_that_breaks_down_says_so(tmp_path):
    def run() -> None:
        raise ValueError("no")

    with lodging(tmp_path) as lodged:
        said = threading.Event()
        lodged.house.log = lambda level, text, fields: (
            lodged.log.append((level, text)),
            said.set(),
        )
        lodged.room.start("socket", run)
        assert said.wait(30)
        assert lodged.log == [("ERROR", "The receiver socket broke down: ValueError: no")]


def test_a_stop_is_told_to_all_and_ends_waiting(tmp_path):
    told = []
    with lodging(tmp_path) as lodged:
        lodged.room.on_stop(lambda: told.append(1))
        lodged.room.child("x").on_stop(lambda: told.append(2))
        assert not lodged.room.stopping and not lodged.room.wait(0)
        lodged.house.stop()
        assert lodged.room.stopping and lodged.room.wait(60)
    assert sorted(told) == [1, 2]


def test_files_and_the_standard_input_are_opened_side_by_side(tmp_path):
    (tmp_path / "a.txt").write_text("1\n2\n")
    (tmp_path / "b.txt").write_text("3\n")
    piped = [b"4\n", b"5\n", b""]
    source = built(
        "input: {broker: {inputs: ["
        f"{{label: files, file: {{paths: [{tmp_path}/*.txt]}}}}, {{label: pipe, stdin: {{}}}}]}}}}"
    )
    with lodging(tmp_path / "spool", read_stdin=lambda size: piped.pop(0)) as lodged:
        ready = open_input(source, lodged.room)
        files = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
        assert lodged.house.remembered == {"/files": files}
        found: list[bytes] = []
        start = ready.initial_offset()
        while len(found) < 5:
            latest = ready.latest_offset(start, 0, Limit())
            found += raws_of(ready, start, latest.offset)
            start = latest.offset
    assert sorted(found) == [b"1", b"2", b"3", b"4", b"5"]


def test_a_house_is_left_when_all_its_receivers_have_done_what_they_were_at(tmp_path):
    with lodging(tmp_path) as lodged:
        house, going = lodged.house, threading.Event()
        branch = house.stoppable_child("b", tmp_path / "b")
        branch.context.start("slow", lambda: going.wait(60) and None)
        house.stop()
        assert not house.join(0.05), "the receiver of a branch is at work"
        going.set()
        assert house.join(60) and not house.is_alive()
        branch.stop()
        branch.stop()
