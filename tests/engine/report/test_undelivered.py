"""What a task cannot deliver in time goes to the driver, and is sent again: all of it, once."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from streamer.core.durations import MILLISECOND
from streamer.core.message import Failure, IndexedMessage, Message
from streamer.core.timestamps import Timestamp
from streamer.engine.driver.delivery import Delivery, DeliveryStoppedError
from streamer.engine.driver.delivery_setup import (
    DeliveredStream,
    DeliveryClocks,
    DeliveryListeners,
    DeliverySinks,
)
from streamer.engine.driver.writers import make_writers
from streamer.engine.report.metric_labels import EndpointLabels
from streamer.engine.report.rejected_messages import decode_rejected
from streamer.engine.report.result_frame import FrameKind
from streamer.engine.report.undelivered import (
    UndeliveredBatches,
    decode_undelivered,
    encode_undelivered,
)
from streamer.engine.stage.resend import resend_undelivered
from tests.engine.stream import Run, write_lines
from tests.servers.http import Asked, Reply, http_server

CONFIG = """
input:
  file: {paths: [in]}
output:
  %s
spark: {master: "local[2]"}
"""
LINES = [b"%d" % n for n in range(40)]


class Server:
    """A server that refuses some requests while it is down."""

    def __init__(self, refuses: Any = lambda asked: True) -> None:
        self.is_down = True
        self.is_down = True
        self.refuses = refuses

    def __call__(self, asked: Asked) -> Reply:
        return Reply(503 if self.is_down and self.refuses(asked) else 200)


class Blocked:
    """A stream whose tasks give up soon, and what was sent again."""

    def __init__(self, output: str, tmp_path: Any, tries: int, up: Any) -> None:
        self.run = Run(output if "input:" in output else CONFIG % output)
        self.run.plan = replace(self.run.plan, wait_budget=20 * MILLISECOND)
        self.portions: list[list[UndeliveredBatches]] = []
        self.pauses: list[float] = []
        self.is_stopping = False
        self.troubles: list[tuple[str, dict[str, str]]] = []

        def again(undelivered: Any, number: int) -> Any:
            self.portions.append(list(undelivered))
            if len(self.portions) == tries:
                up()
            # What workers get has been bytes.
            whole = [decode_undelivered(encode_undelivered(one)) for one in undelivered]
            return list(resend_undelivered(self.run.plan, whole))

        self.run.delivery = Delivery(
            make_writers(self.run.plan, tmp_path, None),
            lambda *line: self.run.log.append(line),
            lambda: self.is_stopping,
            listeners=DeliveryListeners(
                on_trouble=lambda text, place: self.troubles.append((text, dict(place)))
            ),
            clocks=DeliveryClocks(sleep=self.pauses.append),
            sinks=DeliverySinks(rejections=self.run.rejections, resend=again),
            stream=DeliveredStream(endpoint_labels=EndpointLabels.of(self.run.plan)),
        )


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "in", LINES)
    return tmp_path


def http(server: Any, more: str = "") -> str:
    return f"http_client: {{url: '{server.url}', retries: 0, max_in_flight: 1{more}}}"


def up(*states: Server) -> Any:
    def change() -> None:
        for state in states:
            state.is_down = False

    return change


def test_all_is_sent_once_and_in_order_when_the_server_is_back(source):
    state = Server(lambda asked: int(asked.body) >= 7)
    arrived: list[bytes] = []

    def answer(asked: Asked) -> Reply:
        reply = state(asked)
        if reply.status == 200:
            arrived.append(asked.body)
        return reply

    with http_server(answer) as server:
        blocked = Blocked(http(server), source, tries=4, up=up(state))
        blocked.run.step(0)
    assert arrived == LINES
    # A server that is away is asked for one batch at a time.
    assert [sum(map(len, one[0].batches)) for one in blocked.portions] == [1, 1, 1, 1, 32]
    text, place = blocked.troubles[0]
    assert text.startswith("Output blocked: ") and "503" in text
    assert place["path"] == "root.output"
    counts = blocked.run.delivery.metrics.counts
    here = (("label", ""), ("path", "root.output"))
    assert counts["output_sent", here] == 40
    assert sum(blocked.pauses) > 0.5


def test_of_several_outputs_only_the_one_that_is_away_gets_more(source):
    state = Server()
    arrived: list[bytes] = []

    def answer(asked: Asked) -> Reply:
        reply = state(asked)
        if reply.status == 200:
            arrived.append(asked.body)
        return reply

    with ExitStack() as stack:
        away, there = stack.enter_context(http_server(answer)), stack.enter_context(http_server())
        for pattern in ("fan_out", "fan_out_sequential"):
            state.is_down = True
            arrived.clear()
            before = len(there.bodies)
            output = (
                f"broker: {{pattern: {pattern}, outputs: [{{{http(there)}}}, {{{http(away)}}}, "
                "{file: {path: copy}}]}"
            )
            blocked = Blocked(output, source, tries=3, up=up(state))
            blocked.run.step(0)
            assert there.bodies[before:] == LINES, pattern
            assert arrived == LINES, pattern
            assert (source / "copy").read_bytes().split() == LINES, pattern
            (source / "copy").unlink()
            assert blocked.portions[-1][-1].path.startswith("output"), pattern


def test_what_falls_back_does_so_and_nothing_waits(source):
    with http_server(Server()) as server:
        output = f"fallback: [{{{http(server)}}}, {{file: {{path: refused}}}}]"
        blocked = Blocked(output, source, tries=1, up=lambda: None)
        blocked.run.step(0)
    assert (source / "refused").read_bytes().split() == LINES
    assert not blocked.portions


def test_a_stop_ends_it(source):
    with http_server(Server()) as server:
        blocked = Blocked(http(server), source, tries=0, up=lambda: None)
        blocked.run.delivery._clocks = DeliveryClocks(
            sleep=lambda s: setattr(blocked, "is_stopping", True)
        )
        with pytest.raises(DeliveryStoppedError, match="503"):
            blocked.run.step(0)
    assert not blocked.portions


def test_without_a_wait_budget_a_task_waits(source):
    state = Server()
    answers = iter(range(10_000))

    def answer(asked: Asked) -> Reply:
        state.is_down = next(answers) < 4
        return state(asked)

    with http_server(answer) as server:
        run = Run(CONFIG % http(server))
        assert run.plan.wait_budget == 0
        frames = run.frames
        kinds: set[int] = set()
        run.frames = lambda batch: [kinds.add(f.kind) or f for f in frames(batch)]  # type: ignore
        run.step(0)
    assert FrameKind.UNDELIVERED not in kinds
    assert server.bodies[4:] == LINES


def test_what_the_config_rejects_of_it_goes_through_the_processors_again(source, monkeypatch):
    """What the output got would be rejected for ever."""
    monkeypatch.setattr("streamer.engine.stage.output_stage.MAX_PORTION_MESSAGES", 2)
    monkeypatch.setattr("streamer.sdk.backoff.random.uniform", lambda low, high: 0.0)
    state, broken = Server(), {b"17", b"31"}

    def helped(asked: Asked) -> Reply:
        return Reply(500 if asked.body in broken else 200, asked.body)

    with http_server(state) as server, http_server(helped) as helper:
        blocked = Blocked(
            "input: { file: { paths: [in] } }\n"
            f"pipeline: {{ processors: [ {{ http: {{ url: '{helper.url}', retries: 0 }} }} ] }}\n"
            f"output: {{ reject_errored: {{ {http(server)} }} }}\n"
            'spark: { master: "local[2]" }\n',
            source,
            tries=3,
            up=up(state),
        )
        run = blocked.run
        run.step(0)
        assert blocked.portions and run.rejections.messages == 2
        delivered = [body for body in server.bodies[-38:]]
        assert delivered == [line for line in LINES if line not in broken]
        broken.clear()
        for seconds in (1, 10, 60):
            run.clock += seconds * 10**9
            run.rejections.tick()
        assert run.rejections.is_finished
        assert server.bodies[-2:] == [b"17", b"31"]


def test_parts_of_one_message_are_given_again_once(source):
    run = Run(CONFIG % "reject_errored: { stdout: {} }")
    given = {0: [Message(b"whole")], 1: [Message(b"other")], 2: [Message(b"good")]}
    failed = Failure("no", "mapping", "m", "pipeline.processors.0")

    def made(number: int, raw: bytes, error: Failure | None = failed) -> list[Message]:
        return [IndexedMessage.with_place(Message(raw, {}, error), (number, 7))]

    def unsent(task: str, way: Any, *batches: list[Message]) -> UndeliveredBatches:
        whole = UndeliveredBatches(0, 0, [*batches], "why", {"label": "", "path": "root.output"})
        whole = whole._replace(task=task, origins=given, input_path=way)
        return decode_undelivered(encode_undelivered(whole))

    first = unsent("a", (0,), made(0, b"1"), made(2, b"good", None))
    assert [*first.origins] == [0, 2]
    some = [first, unsent("a", (0,), made(0, b"2")), unsent("b", (1,), made(0, b"1"), made(1, b""))]
    bodies = [
        frame.body
        for frame in resend_undelivered(run.plan, some)
        if frame.kind == FrameKind.REJECTED
    ]
    found = [one for body in bodies for one in decode_rejected(body)]
    assert [(one.input_path, one.messages, one.batch[0].raw) for one in found] == [
        ((0,), 2, b"whole"),
        ((1,), 1, b"whole"),
        ((1,), 1, b"other"),
    ]


def test_messages_come_back_as_they_were():
    failure = Failure("no", "mapping", "m", "pipeline.processors.0")
    typed = {"at": Timestamp(1_700_000_000_000_000_000), "bytes": b"\x00\xff"}
    batches = [
        [Message(b"\xff raw", {"a": 1, "b": b"\x00"}, failure), Message.from_value({"n": 1.5})],
        [IndexedMessage.with_place(Message.from_value(typed), (0, 3))],
    ]
    place = {"label": "l", "path": "root.output"}
    whole = UndeliveredBatches(1, -5, batches, "why", place, "output.broker", 2, "s0")
    found = decode_undelivered(encode_undelivered(whole))
    assert found._replace(batches=[]) == whole._replace(batches=[])
    [[raw, document], [last]] = found.batches
    assert (raw.raw, raw.meta, raw.error) == (b"\xff raw", {"a": 1, "b": b"\x00"}, "no")
    assert isinstance(raw.error, Failure) and raw.error.path == "pipeline.processors.0"
    assert document.doc == {"n": 1.5}
    assert isinstance(last, IndexedMessage) and last.place == (0, 3)
    assert last.doc == typed
