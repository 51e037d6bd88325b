"""Outputs `inproc` and the inputs that take what they send, without Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from streamer.components.inputs.inproc import InprocInput
from streamer.components.outputs.inproc import InprocOutput
from streamer.connectors import inproc
from streamer.connectors.inproc import CHANNELS, ReceiverClosedError
from streamer.connectors.spool.store import StoreFullError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.engine.driver import inproc_writer
from streamer.engine.driver.inproc_writer import InprocWriter
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.rooms import lodging

EX = Execution(lambda: 0)
EVERYTHING = Limit()


def frames_of(*batches: Batch) -> list[Frame]:
    items = [item for batch in batches for item in InprocOutput().encode(batch, EX)]
    return [
        Frame(FrameKind.DATA, 0, 0, number, 0, "", body) for number, (_, body) in enumerate(items)
    ]


def texts(*payloads: str) -> list[Frame]:
    return frames_of(*[[Message(one.encode())] for one in payloads])


@contextmanager
def receiving(directory: Path, name: str) -> Iterator[Callable[[], list[str]]]:
    """Open an input; the function returns the payloads of its spool."""
    directory.mkdir(exist_ok=True)
    with lodging(directory) as lodged:
        source = InprocInput(name).open(lodged.room)

        def read() -> list[str]:
            return [message.raw.decode() for batch in read_batches(source) for message in batch]

        yield read
        lodged.house.stop()
        assert lodged.house.join(10)


def read_batches(source: Any) -> list[Batch]:
    start = source.initial_offset()
    end = source.latest_offset(start, 0, EVERYTHING).offset
    chunks = [one for piece in source.split(start, end, 1) for one in source.read(piece, EX)]
    return [batch for chunk in chunks for batch in chunk]


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return request.node.name


def writer(directory: Path, name: str) -> InprocWriter:
    return InprocWriter(name, directory / "files-inproc-0.json")


def test_batches_arrive_with_metadata_and_errors(tmp_path: Path, name: str) -> None:
    batch = [Message(b"a", {"k": 1}), Message(b"b").with_error("bad")]
    with lodging(tmp_path) as lodged:
        source = InprocInput(name).open(lodged.room)
        writer(tmp_path, name).write(0, frames_of(batch, [Message(b"c")], []))
        first, second = read_batches(source)
    assert [(one.raw, dict(one.meta), one.error) for one in first] == [
        (b"a", {"k": 1}, None),
        (b"b", {}, "bad"),
    ]
    assert [one.raw for one in second] == [b"c"]


@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_a_micro_batch_that_comes_again_adds_what_is_missing(
    tmp_path: Path, name: str, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inproc_writer, "_BLOCK_BYTES", 1)
    given, taken = texts("a", "b", "c"), []
    real = inproc.ChannelReceiver.append

    def append(self: Any, *what: Any) -> None:
        if len(taken) == before:
            raise OSError("the disk is full")
        real(self, *what)
        taken.append(what)

    with receiving(tmp_path / "in", name) as read:
        writer(tmp_path, name).write(7, texts("first"))
        with monkeypatch.context() as patch:
            patch.setattr(inproc.ChannelReceiver, "append", append)
            if before < 3:
                with pytest.raises(OSError, match="the disk is full"):
                    writer(tmp_path, name).write(8, given)
            else:
                writer(tmp_path, name).write(8, given)
        # The program is started again: the sender knows its name, and the spool what it has.
        writer(tmp_path, name).write(8, given)
        assert read() == ["first", "a", "b", "c"]
    with receiving(tmp_path / "in", name) as read:
        writer(tmp_path, name).write(8, given)
        writer(tmp_path, name).write(9, texts("d"))
        assert read() == ["first", "a", "b", "c", "d"]


def test_a_sender_with_another_checkpoint_is_another_one(tmp_path: Path, name: str) -> None:
    with receiving(tmp_path / "in", name) as read:
        for sender in "ab":
            writer(tmp_path / sender, name).write(0, texts(sender))
        (tmp_path / "a" / "files-inproc-0.json").unlink()
        writer(tmp_path / "a", name).write(0, texts("new"))
        assert read() == ["a", "b", "new"]


def test_several_inputs_take_micro_batches_in_turn_and_keep_what_they_began(
    tmp_path: Path, name: str
) -> None:
    with receiving(tmp_path / "1", name) as one, receiving(tmp_path / "2", name) as two:
        for number in range(4):
            writer(tmp_path, name).write(number, texts(str(number)))
        assert (one(), two()) == (["0", "2"], ["1", "3"])
        with receiving(tmp_path / "3", name):
            writer(tmp_path, name).write(3, texts("3"))
        assert two() == ["1", "3"]


def test_an_output_waits_for_its_input(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = threading.Event()

    def send() -> None:
        writer(tmp_path, name).write(0, texts("late"))
        sent.set()

    thread = threading.Thread(target=send)
    thread.start()
    with receiving(tmp_path / "in", name) as read:
        assert sent.wait(10)
        thread.join()
        assert read() == ["late"]
    monkeypatch.setattr(inproc_writer, "_RECEIVER_TIMEOUT_S", 0)
    with pytest.raises(OSError, match="no input inproc '.*' runs in this program"):
        writer(tmp_path, name).write(1, texts("nobody"))


def test_a_full_spool_keeps_the_output_waiting_until_its_stream_stops(
    tmp_path: Path, name: str
) -> None:
    with receiving(tmp_path / "in", name) as read, lodging(tmp_path / "out") as sender:
        mine = writer(tmp_path, name)
        mine.open(sender.room)
        (receiver,) = CHANNELS._receivers[name]
        receiver._store._capacity = -1
        with pytest.raises(StoreFullError):
            receiver.append([], "s", 0, 0)
        stop = threading.Timer(0.3, sender.house.stop)
        stop.start()
        with pytest.raises(OSError, match="still to be read"):
            mine.write(0, texts("a"))
        receiver._store._capacity = 1 << 20
        mine.write(0, texts("a"))
        assert read() == ["a"]


def test_an_input_that_has_stopped_takes_nothing(tmp_path: Path, name: str) -> None:
    with receiving(tmp_path / "in", name):
        (receiver,) = CHANNELS._receivers[name]
    assert name not in CHANNELS._receivers
    with pytest.raises(ReceiverClosedError):
        receiver.append([], "s", 0, 0)


def test_senders_are_forgotten_in_their_order(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inproc, "_MAX_SENDERS", 2)
    with receiving(tmp_path / "in", name):
        (receiver,) = CHANNELS._receivers[name]
        for sender, batch in [("a", 0), ("b", 0), ("a", 1), ("c", 0)]:
            receiver.append([], sender, batch, 1)
        counts = {one: receiver.count_received(one, 0) for one in "abc"}
        assert counts == {"a": None, "b": None, "c": 1}
        assert receiver.count_received("a", 1) == 1
