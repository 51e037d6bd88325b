"""The spool: what is published survives, what is half written does not show."""

from pathlib import Path

import pytest

from streamer.connectors.spool.byte_spool import (
    ByteSpoolWriter,
    DurablePosition,
    delete_segments,
    pump_into_spool,
    read_durable,
    segment_path,
)
from streamer.core.disk import sync_data


def content(directory: Path) -> bytes:
    durable = read_durable(directory)
    out = b""
    for number in range(1, durable.segment + 1):
        path = segment_path(directory, number)
        if path.exists():
            body = path.read_bytes()
            out += body[: durable.size] if number == durable.segment else body
    return out


def test_nothing_is_safe_before_the_first_line(tmp_path):
    assert read_durable(tmp_path) == DurablePosition(0, 0, False)
    spool = ByteSpoolWriter(tmp_path)
    spool.append(b"half a li")
    assert content(tmp_path) == b""


def test_readers_hear_of_lines_that_they_can_see_and_of_the_end(tmp_path):
    seen = []
    spool = ByteSpoolWriter(tmp_path, on_append=lambda: seen.append(read_durable(tmp_path)))
    for data in (b"one\ntw", b"o", b"\n"):
        spool.append(data)
    spool.close()
    news = [(one.size, one.is_closed) for one in seen]
    assert news[-3:] == [(4, False), (8, False), (8, True)]


def test_lines_are_published_whole(tmp_path):
    spool = ByteSpoolWriter(tmp_path)
    spool.append(b"one\ntw")
    assert content(tmp_path) == b"one\n"
    spool.append(b"o\nthr")
    assert content(tmp_path) == b"one\ntwo\n"
    assert not read_durable(tmp_path).is_closed
    spool.close()
    assert content(tmp_path) == b"one\ntwo\nthr"
    assert read_durable(tmp_path).is_closed


def test_bytes_that_were_not_published_are_cut_off_at_the_next_start(tmp_path):
    ByteSpoolWriter(tmp_path).append(b"safe\n")
    with segment_path(tmp_path, 1).open("ab") as torn:
        torn.write(b"torn by a cra")
    spool = ByteSpoolWriter(tmp_path)
    spool.append(b"next\n")
    assert content(tmp_path) == b"safe\nnext\n"


def test_segments_are_begun_and_forgotten(tmp_path):
    spool = ByteSpoolWriter(tmp_path, segment_size=8)
    for number in range(5):
        spool.append(b"%08d\n" % number)
    assert read_durable(tmp_path).segment == 6
    delete_segments(tmp_path, 4)
    assert sorted(int(p.stem) for p in tmp_path.glob("*.seg")) == [4, 5, 6]


def test_a_pump_tries_again_when_the_disk_refuses(tmp_path, monkeypatch):
    spool = ByteSpoolWriter(tmp_path)
    failures = [OSError(28, "No space left on device")]
    synced = sync_data

    def sync(fd: int) -> None:
        if failures:
            raise failures.pop()
        synced(fd)

    monkeypatch.setattr("streamer.connectors.spool.byte_spool.sync_data", sync)
    monkeypatch.setattr("streamer.connectors.spool.byte_spool.time.sleep", lambda s: None)
    chunks = [b"a\nb", b"\nc\n"]
    said: list[str] = []
    pump_into_spool(lambda size: chunks.pop(0) if chunks else b"", spool, tmp_path, said.append)
    assert content(tmp_path) == b"a\nb\nc\n"
    assert len(said) == 1 and "No space left" in said[0]


@pytest.mark.parametrize("failing", range(1, 12))
def test_whichever_step_the_disk_refuses_every_byte_is_there_once(tmp_path, monkeypatch, failing):
    spool = ByteSpoolWriter(tmp_path, segment_size=3)
    calls = iter(range(1, 1000))
    synced, opened = sync_data, Path.open

    def sync(fd: int) -> None:
        if next(calls) == failing:
            raise OSError(28, "No space left on device")
        synced(fd)

    def open_(self: Path, *arguments, **more):
        if self.suffix == ".seg" and next(calls) == failing:
            raise OSError(28, "No space left on device")
        return opened(self, *arguments, **more)

    chunks = [b"a\nb", b"\nc\nd\n", b"e\n", b"f\ng"]
    with monkeypatch.context() as broken:
        broken.setattr("streamer.connectors.spool.byte_spool.sync_data", sync)
        broken.setattr("streamer.connectors.spool.byte_spool.Path.open", open_)
        broken.setattr("streamer.connectors.spool.byte_spool.time.sleep", lambda s: None)
        pump_into_spool(
            lambda size: chunks.pop(0) if chunks else b"", spool, tmp_path, lambda text: None
        )
    assert next(calls) > failing, "the failure came"
    assert content(tmp_path) == b"a\nb\nc\nd\ne\nf\ng"
    assert read_durable(tmp_path).is_closed


def test_a_full_spool_stops_reading(tmp_path, monkeypatch):
    spool = ByteSpoolWriter(tmp_path, segment_size=4)
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        delete_segments(tmp_path, read_durable(tmp_path).segment)

    monkeypatch.setattr("streamer.connectors.spool.byte_spool.time.sleep", sleep)
    chunks = [b"aaaaaaaa\n", b"bbbbbbbb\n", b"cccccccc\n"]
    pump_into_spool(
        lambda size: chunks.pop(0) if chunks else b"", spool, tmp_path, pytest.fail, capacity=8
    )
    assert waits and read_durable(tmp_path).is_closed
