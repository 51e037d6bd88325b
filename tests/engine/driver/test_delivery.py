"""Delivery: order, exactly once into files, back pressure while an output fails."""

import errno
import io
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamer.engine.driver import writers
from streamer.engine.driver.delivery import Delivery, DeliveryStoppedError
from streamer.engine.driver.delivery_setup import DeliveredStream, DeliveryClocks, DeliveryListeners
from streamer.engine.driver.file_routes import RefusedRoutesError
from streamer.engine.driver.writers import FileWriter, StreamWriter
from streamer.engine.report.metric_labels import EndpointLabels
from streamer.engine.report.result_frame import (
    Frame,
    FrameKind,
    Payload,
    make_frames,
    sort_frames,
    split_parts,
)
from tests.examples import examples


def data(body: bytes, order: int = 0, shard: int = 0, seq: int = 0, route: str = "") -> Frame:
    return Frame(FrameKind.DATA, order, shard, seq, 0, route, body)


def no_log(level, text, fields):
    pass


def test_frames_are_written_by_window_end_then_shard():
    out = io.BytesIO()
    delivery = Delivery([StreamWriter(out)], no_log, lambda: False)
    delivery.deliver(
        0,
        [
            data(b"d", order=20, shard=0),
            data(b"c", order=10, shard=1),
            data(b"b", order=10, shard=0, seq=1),
            data(b"a", order=10, shard=0, seq=0),
        ],
    )
    assert out.getvalue() == b"abcd"


def test_a_replayed_micro_batch_replaces_what_it_wrote(tmp_path):
    file, journal = tmp_path / "out" / "f", tmp_path / "journal"
    first = FileWriter(journal, append=True)
    first.write(0, [data(b"zero\n", route=str(file))])
    first.write(1, [data(b"one\n", route=str(file))])
    # The program is killed before micro-batch 1 is committed, half of it written once more.
    with file.open("ab") as torn:
        torn.write(b"on")
    again = FileWriter(journal, append=True)
    again.write(1, [data(b"one\n", route=str(file))])
    again.write(2, [data(b"two\n", route=str(file))])
    assert file.read_bytes() == b"zero\none\ntwo\n"


def test_a_replay_cuts_every_file_of_the_micro_batch(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    writer = FileWriter(tmp_path / "journal", append=True)
    batch = [data(b"1\n", route=str(a)), data(b"2\n", route=str(b), seq=1)]
    writer.write(7, batch)
    FileWriter(tmp_path / "journal", append=True).write(7, batch)
    assert (a.read_bytes(), b.read_bytes()) == (b"1\n", b"2\n")


def test_a_file_that_was_moved_away_is_not_padded(tmp_path):
    file = tmp_path / "f"
    writer = FileWriter(tmp_path / "journal", append=True)
    writer.write(0, [data(b"zero\n", route=str(file))])
    writer.write(1, [data(b"one\n", route=str(file))])
    file.unlink()
    FileWriter(tmp_path / "journal", append=True).write(1, [data(b"one\n", route=str(file))])
    assert file.read_bytes() == b"one\n"


@pytest.mark.parametrize("append", [True, False])
def test_a_directory_is_marked_once_what_is_written_there_is_on_the_disk(
    tmp_path, monkeypatch, append
):
    file, mark = tmp_path / "10" / "f", tmp_path / "10" / "_SUCCESS"
    synced = []
    for name in ("writers.sync_data", "success_files.sync_directory"):
        monkeypatch.setattr(
            f"streamer.engine.driver.{name}", lambda fd: synced.append(mark.exists())
        )
    writer = FileWriter(tmp_path / "journal", append, varies=True, success_file="_SUCCESS")
    # The mark of one shard comes before the messages of another.
    writer.write(0, [data(b"", route=str(mark)), data(b"one\n", route=str(file), seq=1)])
    assert (file.read_bytes(), mark.read_bytes()) == (b"one\n", b"")
    assert synced == [False, False, True]


def test_a_replay_takes_the_mark_back_before_it_writes_again(tmp_path, monkeypatch):
    file, mark = tmp_path / "10" / "f", tmp_path / "10" / "_SUCCESS"
    frames = [data(b"one\n", route=str(file)), data(b"", route=str(mark), seq=1)]
    journal = tmp_path / "journal"
    FileWriter(journal, append=True, success_file="_SUCCESS").write(0, frames)
    before = []
    append = writers._append
    monkeypatch.setattr(
        writers, "_append", lambda *given: (before.append(mark.exists()), append(*given))
    )
    FileWriter(journal, append=True, success_file="_SUCCESS").write(0, frames)
    assert before == [False]
    assert (file.read_bytes(), mark.exists()) == (b"one\n", True)
    # One that an earlier micro-batch has made stays.
    again = FileWriter(journal, append=True, success_file="_SUCCESS")
    again.write(1, frames)
    again.write(1, [])
    assert (file.read_bytes(), mark.exists()) == (b"one\n", True)


def test_a_directory_whose_files_were_refused_is_not_marked(tmp_path):
    (tmp_path / "10" / "f").mkdir(parents=True)
    mark = tmp_path / "10" / "_SUCCESS"
    writer = FileWriter(tmp_path / "journal", append=True, varies=True, success_file="_SUCCESS")
    with pytest.raises(RefusedRoutesError):
        writer.write(
            0, [data(b"1", route=str(tmp_path / "10" / "f")), data(b"", route=str(mark), seq=1)]
        )
    assert not mark.exists()


def test_all_bytes_replaces_the_file(tmp_path):
    file = tmp_path / "f"
    writer = FileWriter(tmp_path / "journal", append=False)
    writer.write(0, [data(b"first", route=str(file)), data(b"last", route=str(file), seq=1)])
    assert file.read_bytes() == b"last"


class Failing:
    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.written: list[bytes] = []

    def write(self, batch, frames):
        if self.failures:
            self.failures -= 1
            raise OSError(errno.ENOSPC, "No space left on device")
        self.written += [frame.body for frame in frames]


def test_a_failing_output_is_tried_again_and_said_so():
    said: list[str] = []
    writer = Failing(2)
    delivery = Delivery(
        [writer],
        lambda level, text, fields: said.append(text) if level == "ERROR" else None,
        lambda: False,
        clocks=DeliveryClocks(sleep=lambda s: None),
    )
    delivery.deliver(0, [data(b"x")])
    assert writer.written == [b"x"]
    assert len(said) == 2 and "No space left on device" in said[0]


def test_the_output_that_fails_is_named_while_it_does() -> None:
    heard: list[tuple[str, dict]] = []
    said: list[dict] = []
    place = {"label": "dst", "path": "root.output"}
    delivery = Delivery(
        [Failing(1)],
        lambda level, text, fields: said.append(dict(fields)) if level == "ERROR" else None,
        lambda: False,
        listeners=DeliveryListeners(
            on_trouble=lambda text, place: heard.append((text, dict(place)))
        ),
        clocks=DeliveryClocks(sleep=lambda s: None),
        stream=DeliveredStream(endpoint_labels=EndpointLabels({}, None, (place,))),
    )
    delivery.deliver(4, [data(b"x")])
    why = "Failed to write to the output: [Errno 28] No space left on device"
    assert heard == [(why, place)]
    assert said == [{**place, "micro_batch": 4}]


def test_a_failing_output_gives_up_when_the_program_stops():
    delivery = Delivery(
        [Failing(99)], no_log, lambda: True, clocks=DeliveryClocks(sleep=lambda s: None)
    )
    with pytest.raises(DeliveryStoppedError):
        delivery.deliver(0, [data(b"x")])
    assert delivery.batch == -1


def test_logs_counts_and_statuses_reach_the_driver():
    said: list[tuple] = []
    delivery = Delivery(
        [StreamWriter(io.BytesIO())], lambda *line: said.append(line), lambda: False
    )
    log = json.dumps([["WARN", "late", {"n": 1}]]).encode()
    count = json.dumps([["input_dropped", 2, {"reason": "too_long"}]]).encode()
    delivery.deliver(
        3,
        [
            Frame(FrameKind.LOG, 0, 0, 0, 0, "", log),
            Frame(FrameKind.COUNT, 0, 0, 0, 0, "", count),
            Frame(FrameKind.STATUS, 0, 1, 0, 0, "", b'{"ended":true}'),
        ],
    )
    assert said[0] == ("WARN", "late", {"n": 1, "micro_batch": 3})
    assert delivery.metrics.counts["input_dropped", (("reason", "too_long"),)] == 2
    assert delivery.statuses == {1: {"ended": True}}
    assert delivery.batch == 3


def test_neighbours_of_one_route_become_one_frame_whatever_their_order():
    made = list(
        make_frames(
            [
                Payload(1, 0, "a", b"1", True),
                Payload(1, 0, "a", b"2", True),
                Payload(1, 0, "b", b"3", True),
                Payload(2, 0, "b", b"4", True),
                Payload(2, 0, "b", b"5", False),
                Payload(2, 0, "b", b"6", False),
            ],
            shard=4,
        )
    )
    assert [f.seq for f in made] == [0, 1, 2, 3]
    assert [(f.order, f.route, f.body) for f in split_parts(made)] == [
        (1, "a", b"12"),
        (1, "b", b"3"),
        (2, "b", b"4"),
        (2, "b", b"5"),
        (2, "b", b"6"),
    ]


def test_parts_of_the_frames_of_two_shards_are_written_by_window_end():
    out = io.BytesIO()
    delivery = Delivery([StreamWriter(out)], no_log, lambda: False)
    ends = {1: ((-(2**63), b"a"), (10, b"b"), (10, b"c"), (30, b"f")), 2: ((10, b"d"), (20, b"e"))}
    made = [
        list(make_frames([Payload(end, 0, "", body, True) for end, body in parts], shard))
        for shard, parts in ends.items()
    ]
    assert [len(of_shard) for of_shard in made] == [1, 1]
    delivery.deliver(0, [frame for of_shard in made for frame in of_shard])
    assert out.getvalue() == b"abcdef"


PAYLOADS = st.lists(
    st.builds(
        Payload,
        st.integers(-3, 3),
        st.integers(0, 1),
        st.sampled_from(["", "", "", "a"]),
        st.binary(min_size=1, max_size=3),
        st.sampled_from([True, True, True, False]),
    ),
    max_size=8,
)

AGAIN = ((2, 0), (0, 0), (0, 1), (1, 0), (0, 0))
"""Orders and outputs: another output comes between two frames of one, whose orders overlap."""


@example(made=[[Payload(o, n, "", b"%d" % i, True) for i, (o, n) in enumerate(AGAIN)]])
@settings(max_examples=examples(200, 2_000), deadline=None)
@given(made=st.lists(PAYLOADS, max_size=3))
def test_frames_in_parts_are_delivered_as_if_none_was(made: list[list[Payload]]) -> None:
    some = [frame for shard, payloads in enumerate(made) for frame in make_frames(payloads, shard)]
    want: dict[tuple[int, str], bytes] = {}
    for frame in sorted(split_parts(some), key=lambda frame: frame[:4]):
        place = frame.output, frame.route
        want[place] = want.get(place, b"") + frame.body
    got: dict[tuple[int, str], bytes] = {}
    delivered = sort_frames(some)
    for frame in delivered:
        place = frame.output, frame.route
        got[place] = got.get(place, b"") + frame.body
    assert got == want
    assert delivered == sorted(delivered, key=lambda frame: frame[:4])


def test_each_micro_batch_leaves_a_line_with_its_figures_when_asked():
    said = []
    delivery = Delivery([StreamWriter(io.BytesIO())], lambda *line: said.append(line), bool)
    status = {"ended": False, "held": 3, "counters": {"taken": 5, "dropped": {"late": 2}}}
    body = json.dumps(status).encode()
    delivery.deliver(4, [data(b"abc"), Frame(FrameKind.STATUS, 0, 1, 0, 0, "", body)])
    [(level, text, fields)] = said
    assert (level, text) == ("DEBUG", "Delivered a micro-batch")
    assert fields.pop("write_ms") >= 0
    assert fields == {
        "micro_batch": 4,
        "messages": 7,
        "dropped": 2,
        "frames": 1,
        "bytes": 3,
        "held": [3],
    }


def test_a_micro_batch_that_comes_again_counts_once():
    delivery = Delivery([StreamWriter(io.BytesIO())], no_log, lambda: False)
    body = json.dumps([["input_received", 5, {}]]).encode()
    for batch in (0, 1, 1):
        delivery.deliver(batch, [Frame(FrameKind.COUNT, 0, 0, 0, 0, "", body)])
    assert delivery.metrics.counts["input_received", ()] == 10


def test_an_output_s_connection_is_what_writing_to_it_shows():
    clock = iter(range(1_000))
    delivery = Delivery(
        [writer := Failing(0)],
        no_log,
        lambda: False,
        clocks=DeliveryClocks(sleep=lambda s: None, now=lambda: float(next(clock))),
        stream=DeliveredStream(
            endpoint_labels=EndpointLabels({}, None, ({"label": "", "path": "root.output"},))
        ),
    )

    def counted() -> list[int]:
        names = ("connection_up", "connection_lost", "connection_failed", "error")
        place = (("label", ""), ("path", "root.output"))
        return [delivery.metrics.counts[f"output_{name}", place] for name in names]

    delivery.deliver(0, [data(b"x")])
    assert counted() == [1, 0, 0, 0]
    writer.failures = 3
    delivery.deliver(1, [data(b"y")])
    assert counted() == [2, 1, 2, 3]
    [(_, times)] = [item for item in delivery.metrics.times().items() if "output" in item[0][0]]
    # A write that failed, and the pause after it, are no part of how long writing takes.
    assert (times.count, times.total) == (2, 2 * 10**9)
