"""A message that an output rejects is dealt with by itself, and all others go on."""

from __future__ import annotations

import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from streamer.core.errors import StreamerError
from streamer.engine.driver.delivery import DeliveryStoppedError
from streamer.engine.driver.rejected_files import WaitingMessages
from streamer.engine.driver.writers import make_writers
from streamer.sdk.sync_response import REQUEST
from tests.engine.stream import MemoryPlace, Run, State, write_lines
from tests.servers.http import Asked, Reply, http_server

SECOND = 10**9
INPUT = "input: { file: { paths: [in] %s } }\n"
FILE = INPUT % ""
BAD = """
pipeline:
  processors:
    - { label: judge, mapping: 'root = if this.n == 3 { throw("three is bad") } else { this }' }
"""
NUMBERS = [{"n": n} for n in range(1, 7)]


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("streamer.sdk.backoff.random.uniform", lambda low, high: 0.0)
    path = tmp_path / "in"
    path.touch()
    return path


def count(run: Run, name: str, **labels: str) -> int:
    return run.delivery.metrics.counts[name, tuple(sorted(labels.items()))]


def printed(run: Run) -> list[Any]:
    """Return all that was written since the last call, whichever output it is of."""
    return [line for number in range(len(run.outs)) for line in run.printed(number)]


def rejected(run: Run, reason: str, path: str = "root.output") -> int:
    return count(run, "output_rejected", label="", path=path, reason=reason)


def oldest(run: Run) -> WaitingMessages:
    found = run.rejections.oldest()
    assert found is not None
    return found


def later(run: Run, seconds: int) -> None:
    run.clock += seconds * SECOND
    run.rejections.tick()


REJECTING = {
    "reject_errored": BAD + "output: { reject_errored: { stdout: {} } }\n",
    "strict": "error_handling: { strict: true }\n" + BAD + "output: { stdout: {} }\n",
    "reject": "output: { switch: { cases: [ { check: this.n == 3, "
    "output: { reject: 'three ${! this.n } is bad' } }, { output: { stdout: {} } } ] } }\n",
    "switch": "output: { switch: { strict_mode: true, cases: [ "
    "{ check: this.n > 3, output: { stdout: {} } }, "
    "{ check: this.n < 3, output: { stdout: {} } } ] } }\n",
}


@pytest.mark.parametrize("config", REJECTING.values(), ids=REJECTING)
def test_a_message_that_the_config_rejects_is_kept_and_all_others_go_on(
    source: Path, config: str
) -> None:
    write_lines(source, NUMBERS)
    run = Run(FILE + config)
    run.step(0, tries=2)
    written = [line["n"] for line in printed(run)]
    assert sorted(written) == [1, 2, 4, 5, 6]
    assert rejected(run, "config") == 1 and run.rejections.messages == 1
    [[level, text, fields]] = run.said("A message was rejected")
    assert level == "WARN" and "kept and sent again by itself" in text
    assert fields["sample"] == '{"n": 3}' and fields["reason"] == "config"
    # Messages that come later are not held up.
    write_lines(source, [{"n": 7}])
    run.step(0)
    assert [line["n"] for line in printed(run)] == [7]


@pytest.mark.parametrize("config", REJECTING.values(), ids=REJECTING)
def test_a_message_that_no_input_gives_again_is_dropped_and_counted(
    source: Path, config: str
) -> None:
    write_lines(source, NUMBERS)
    run = Run(INPUT % ", auto_replay_nacks: false" + config)
    run.step(0, tries=2)
    written = [line["n"] for line in printed(run)]
    assert sorted(written) == [1, 2, 4, 5, 6]
    assert (run.rejections.messages, rejected(run, "config")) == (0, 1)
    assert count(run, "output_dropped", reason="rejected") == 1
    [[_, text, fields]] = run.said("A message was rejected")
    assert "dropped, since auto_replay_nacks is false" in text and fields["sample"] == '{"n": 3}'
    assert not run.state.rejected.files


def test_what_is_said_of_one_kind_is_said_once_a_minute(source: Path) -> None:
    run = Run(INPUT % ", auto_replay_nacks: false" + REJECTING["reject_errored"])
    for _ in range(5):
        write_lines(source, [{"n": 3}] * 100)
        run.step(0)
    assert len(run.said("rejected")) == 1
    run.clock += 61 * SECOND
    write_lines(source, [{"n": 3}])
    run.step(0)
    [_, [_, text, _]] = run.said("rejected")
    assert text.startswith("500 messages were rejected (dropped")


def test_the_message_of_the_input_goes_through_the_processors_again(source: Path) -> None:
    """It is not what the output got that is sent again: that would be rejected for ever."""
    down = {"b"}
    with http_server(lambda a: Reply(500 if a.body.decode() in down else 200, a.body + b"!")) as s:
        write_lines(source, [b"a", b"b", b"c"])
        run = Run(
            FILE
            + f"pipeline: {{ processors: [ {{ http: {{ url: '{s.url}', retries: 0 }} }} ] }}\n"
            + "output: { reject_errored: { stdout: {} } }\n"
        )
        run.step(0)
        assert printed(run) == [b"a!", b"c!"]
        later(run, 1)
        assert (oldest(run).tries, printed(run)) == (2, [])
        later(run, 1)
        assert oldest(run).tries == 2, "the pause has grown"
        later(run, 1)
        assert oldest(run).tries == 3
        down.clear()
        later(run, 4)
    assert run.woken == 1
    # What the driver writes is a part of the next micro-batch, and there once.
    run.step(0, tries=2)
    assert printed(run) == [b"b!"] and run.rejections.is_finished
    run.step(0)
    assert printed(run) == [] and not run.state.rejected.files
    assert count(run, "output_resent", label="", path="root.output", reason="config") == 3


def test_what_waits_survives_a_start_and_a_kill(source: Path) -> None:
    write_lines(source, NUMBERS)
    config = FILE + REJECTING["reject_errored"]
    first = Run(config)
    batch = first.step(0)
    # Killed before the micro-batch was committed: it comes again, and leaves the same.
    before = first.state.rejected.files["0.rejected"]
    again = Run(config, State(rejected=first.state.rejected))
    again.step(0)
    assert before == again.state.rejected.files["0.rejected"] and again.rejections.messages == 1
    # Killed later: whoever starts the program has mended the config.
    mended = Run(FILE + "output: { reject_errored: { stdout: {} } }\n", again.state)
    assert mended.rejections.messages == 1 and batch.end == again.state.offset
    mended.step(0)
    later(mended, 0)
    mended.step(0)
    assert printed(mended) == [{"n": 3}] and mended.rejections.is_finished


@pytest.mark.parametrize("killed", ["before it was noted", "after it was noted"])
def test_what_is_written_again_is_in_a_file_once_wherever_the_program_is_killed(
    source: Path, tmp_path: Path, killed: str
) -> None:
    config = FILE + BAD + "output: { reject_errored: { file: { path: out } } }\n"
    good = FILE + "output: { reject_errored: { file: { path: out } } }\n"

    def writers(plan: Any) -> list[Any]:
        return list(make_writers(plan, tmp_path, io.BytesIO()))

    def lines() -> list[Any]:
        return [json.loads(line)["n"] for line in (tmp_path / "out").read_text().splitlines()]

    write_lines(source, NUMBERS)
    first = Run(config, writers=writers)
    first.step(0)
    write_lines(source, [{"n": 7}])
    second = Run(good, first.state, writers=writers)
    second.step(0)
    later(second, 0)
    assert second.woken == 1
    place = MemoryPlace(dict(second.state.rejected.files))
    number, offset = second.state.number, second.state.offset
    second.step(0)
    assert lines() == [1, 2, 4, 5, 6, 7, 3]
    if killed == "after it was noted":
        place = second.state.rejected
    # The last micro-batch was not committed, and comes again.
    third = Run(good, State(offset, [], number, place), writers=writers)
    third.step(0)
    later(third, 10)
    third.step(0)
    assert lines() == [1, 2, 4, 5, 6, 7, 3]
    third.step(0)
    assert third.rejections.is_finished and not place.files


class Strict:
    """A server that refuses some bodies for what they are."""

    def __init__(self, *statuses: int, bad: str = "bad") -> None:
        self.statuses = statuses
        self.bad = bad.encode()
        self.mended = False

    def __call__(self, asked: Asked) -> Reply:
        return Reply(self.statuses[0] if self.bad in asked.body and not self.mended else 200)


@pytest.mark.parametrize(
    ("status", "fields", "reason"),
    [
        (400, "", "refused"),
        (413, "", "too_large"),
        (422, "batch_as_multipart: true, batching: { count: 4 }", "refused"),
        (404, "drop_on: [404]", "refused"),
    ],
)
def test_a_message_that_a_server_refuses_is_sent_again_by_itself(
    source: Path, status: int, fields: str, reason: str
) -> None:
    lines = [b"bad" if n == 5 else b"%d" % n for n in range(10)]
    write_lines(source, lines)
    refusing = Strict(status)
    with http_server(refusing) as server:
        output = f"http_client: {{ url: '{server.url}', max_in_flight: 1, {fields} }}"
        run = Run(FILE + f"output: {{ {output} }}")
        run.step(0)
        assert rejected(run, reason) == 1 == run.rejections.messages
        taken = b"".join(body for body in server.bodies if b"bad" not in body)
        assert all(line in taken for line in lines if line != b"bad")
        later(run, 1)
        assert (oldest(run).tries, oldest(run).reason) == (2, reason)
        refusing.mended = True
        later(run, 60)
        assert run.rejections.is_finished
        assert server.bodies[-1] == b"bad"


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
def test_a_server_that_is_away_or_does_not_know_us_holds_the_stream_back(
    source: Path, status: int
) -> None:
    statuses = iter([status] * 3)
    write_lines(source, [b"a", b"b"])
    with http_server(lambda asked: Reply(next(statuses, 200))) as server:
        run = Run(FILE + f"output: {{ http_client: {{ url: '{server.url}', retries: 0 }} }}")
        run.step(0)
    assert sorted(set(server.bodies)) == [b"a", b"b"]
    assert run.rejections.is_finished and not run.said("rejected")


@pytest.mark.parametrize(
    "fields",
    [
        "url: '%s/${! content() }'",
        "url: '%s', headers: { X-Name: '${! content() }' }",
        "url: '%s', headers: { X-Name: '${! json() }' }",
    ],
    ids=["url", "header", "interpolation"],
)
@pytest.mark.parametrize("bad", [b"a\\u0000b", b"x\\r\\nX-Injected: 1"], ids=["NUL", "line break"])
def test_a_message_of_which_no_request_can_be_made_is_rejected(
    source: Path, fields: str, bad: bytes
) -> None:
    write_lines(source, [b'"one"', b'"%s"' % bad, b'"two"'])
    # A body that is no text but a value with what makes it unusable.
    mapping = "pipeline: { processors: [ { mapping: 'root = content().parse_json().bytes()' } ] }\n"
    with http_server() as server:
        run = Run(FILE + mapping + f"output: {{ http_client: {{ {fields % server.url} }} }}")
        run.step(0)
    if "json()" in fields:
        assert rejected(run, "invalid") == 3
        return
    assert sorted(server.bodies) == [b"one", b"two"]
    assert rejected(run, "invalid") == 1


def test_of_rows_that_go_together_the_one_that_breaks_a_constraint_is_found(
    source: Path, tmp_path: Path
) -> None:
    write_lines(source, NUMBERS)
    init = "CREATE TABLE IF NOT EXISTS t (n INTEGER CHECK (n <> 3))"
    run = Run(
        FILE + f"output: {{ sql_insert: {{ driver: sqlite, dsn: '{tmp_path}/db', table: t, "
        f"columns: [n], args_mapping: 'root = [this.n]', init_statement: '{init}', "
        "batching: { count: 6 } } }\n"
    )
    run.step(0)
    with closing(sqlite3.connect(tmp_path / "db")) as database:
        rows = database.execute("SELECT n FROM t ORDER BY n").fetchall()
    assert rows == [(n,) for n in (1, 2, 4, 5, 6)]
    assert rejected(run, "refused") == 1 and "CHECK constraint" in oldest(run).text


@pytest.mark.parametrize("name", ["a\\u0000b", "x" * 300, "folder"], ids=["NUL", "long", "folder"])
def test_a_message_that_no_file_can_be_for_is_rejected(
    source: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "folder").mkdir()
    write_lines(source, [b'"one"', b'"%s"' % name.encode(), b'"two"'])

    def writers(plan: Any) -> list[Any]:
        return list(make_writers(plan, tmp_path, io.BytesIO()))

    run = Run(FILE + "output: { file: { path: '${! this }' } }\n", writers=writers)
    run.step(0)
    assert (tmp_path / "one").read_text() == '"one"\n' and (tmp_path / "two").exists()
    assert rejected(run, "invalid") == 1 == run.rejections.messages
    later(run, 1)
    run.step(0)
    if name == "folder":
        (tmp_path / "folder").rmdir()
        later(run, 400)
        run.step(0)
        assert (tmp_path / "folder").read_text() == '"folder"\n'
        run.step(0)
        assert run.rejections.is_finished
    else:
        assert oldest(run).tries == 2


def test_what_a_fallback_catches_is_not_rejected(source: Path) -> None:
    write_lines(source, NUMBERS)
    run = Run(
        FILE + BAD + "output: { fallback: [ { reject_errored: { stdout: {} } }, "
        "{ file: { path: failed }, processors: [ { mapping: root = @fallback_error } ] } ] }"
    )
    run.step(0)
    assert run.rejections.is_finished and not run.said("rejected")
    [failed] = run.printed(2)
    assert failed.startswith(b"rejecting due to failed processing: ")


def test_what_one_output_of_a_broker_rejects_the_others_do_not_get_again(source: Path) -> None:
    write_lines(source, [b"a", b"bad", b"c"])
    refusing = Strict(400)
    with http_server(refusing) as server:
        run = Run(
            FILE + "output: { broker: { outputs: [ { stdout: {} }, "
            f"{{ http_client: {{ url: '{server.url}' }} }} ] }} }}"
        )
        run.step(0)
        assert [line for line in run.printed(1)] == [b"a", b"bad", b"c"]
        assert rejected(run, "refused", "root.output.broker.outputs.1") == 1
        refusing.mended = True
        later(run, 1)
        run.step(0)
    assert run.rejections.is_finished and run.printed(1) == []
    assert sorted(server.bodies) == [b"a", b"bad", b"bad", b"c"]


def test_a_window_gives_what_the_output_got_once_more(source: Path) -> None:
    write_lines(source, [{"at": 1_700_000_001, "n": n} for n in range(3)])
    refusing = Strict(409, bad='"n": 1')
    with http_server(refusing) as server:
        run = Run(
            FILE + "buffer: { system_window: { timestamp_mapping: root = this.at, size: 10s } }\n"
            f"output: {{ http_client: {{ url: '{server.url}' }} }}"
        )
        for t in (1_700_000_000, 1_700_000_011):
            run.step(t * SECOND)
        assert rejected(run, "refused") == 1 and len(server.bodies) == 3
        refusing.mended = True
        later(run, 1)
    assert run.rejections.is_finished and len(server.bodies) == 4


def test_no_more_is_kept_than_there_is_room_for(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamer.engine.driver.rejections.MAX_MESSAGES", 2)
    write_lines(source, [{"n": 3}] * 3)
    run = Run(FILE + REJECTING["reject_errored"])
    run.step(0)
    assert run.rejections.is_full
    run.delivery._stopping = lambda: True
    write_lines(source, [{"n": 1}])
    with pytest.raises(DeliveryStoppedError, match="3 rejected messages wait, and no more"):
        run.step(0)
    assert printed(run) == []


def test_what_has_been_given_up_stays_and_says_so(source: Path) -> None:
    write_lines(source, NUMBERS)
    run = Run(FILE + REJECTING["reject_errored"])
    run.step(0)
    for _ in range(4):
        assert not run.rejections.is_given_up
        later(run, 400)
    assert run.rejections.is_given_up and run.rejections.messages == 1
    with pytest.raises(StreamerError, match="1 rejected message is left in the checkpoint here"):
        run.rejections.is_finished_at_end("here")
    # Another start tries it again, as often.
    again = Run(FILE + REJECTING["reject_errored"], run.state)
    again.step(0)
    for number in range(5):
        assert not again.rejections.is_finished_at_end("here")
        later(again, 400)
        assert oldest(again).tries == 6 + number
    assert again.rejections.is_given_up
    assert oldest(run).to_document() == {
        "label": "",
        "path": "root.output",
        "since": "1970-01-01T00:00:00Z",
        "tries": 5,
        "reason": "config",
        "error": oldest(run).text,
        "source": "root.pipeline.processors.0",
        "sample": '{"n": 3}',
    }


def test_who_waits_for_a_message_gets_the_reason_and_it_is_not_kept(source: Path) -> None:
    from streamer.core.message import Message
    from streamer.engine.stage.stateless_stage import StatelessStage
    from streamer.engine.stage.task_input import SourcePiece, TaskPlan

    run = Run(FILE + BAD + "output: { reject_errored: { stdout: {} } }\n")

    class Requests:
        def read(self, piece: Any, ex: Any) -> Any:
            for request, raw in piece:
                ex.answers.setdefault(request, [])
                yield [[Message(raw, {REQUEST: request})]]

        def partition_of(self, piece: Any) -> str:
            return ""

    stage = StatelessStage(TaskPlan.of(run.plan))
    piece = [("one", b'{"n":1}'), ("two", b'{"n":3}'), ("three", b'{"n":4}')]
    frames = stage.frames(SourcePiece(Requests(), 0, piece))
    run.delivery.deliver(0, [*frames, stage.status(False, 0)])
    assert [line["n"] for line in printed(run)] == [1, 4]
    [[answers, refusals]] = run.answered
    assert sorted(answers) == ["one", "three", "two"] and [*refusals] == ["two"]
    assert refusals["two"].startswith("rejecting due to failed processing: failed assignment")
    assert run.rejections.is_finished and rejected(run, "config") == 1
