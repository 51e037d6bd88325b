"""The contract tests hold some of our own components, and fail those that break the contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamer.core.errors import StreamerError
from streamer.sdk import (
    Access,
    Execution,
    Field,
    Kind,
    Message,
    MessageReceiver,
    Output,
    ReceivedInput,
    SendError,
    Spec,
)
from streamer.sdk.testing import (
    BufferContract,
    CacheContract,
    ComponentContract,
    InputContract,
    InputReader,
    OutputContract,
    ProcessorContract,
    RateLimitContract,
    RecordedExecution,
    RequestRecorder,
    ScannerContract,
    ScriptedClock,
    read_input,
    record_requests,
    run_processor,
    send_batches,
    use_component,
)


class TestMapping(ProcessorContract):
    component = "mapping"
    config = "root = this.a"
    batches = ([{"a": 1}], [{"a": "x"}, {"a": [2]}])
    expected = ([b"1"], [b"x", b"[2]"])


class TestSplit(ProcessorContract):
    component = "split"
    config = {"size": 2}
    batches = (["a", "b", "c"], ["d"])
    expected = ([b"a", b"b"], [b"c"], [b"d"])


class TestDedupe(ProcessorContract):
    component = "dedupe"
    config = {"cache": "seen", "key": "${! content() }"}
    resources = {"cache_resources": [{"label": "seen", "memory": {}}]}
    batches = (["a", "b", "a"],)
    expected = ([b"a", b"b"],)


class TestArchive(ProcessorContract):
    component = "archive"
    config = {"format": "lines"}
    batches = (["a", "b"],)
    expected = ([b"a\nb"],)


class TestMemoryCache(CacheContract):
    component = "memory"


class TestTtlruCache(CacheContract):
    component = "ttlru"


class TestLruCache(CacheContract):
    component = "lru"


class TestFileCache(CacheContract):
    component = "file"
    keeps_values = True

    @pytest.fixture(autouse=True)
    def directory(self, tmp_path: Path) -> None:
        self.place = tmp_path

    def make_config(self) -> Any:
        return {"directory": str(self.place)}


class TestLines(ScannerContract):
    component = "lines"
    data = b"a\r\nbb\n\nccc"
    expected = (b"a", b"bb", b"", b"ccc")


class TestCsv(ScannerContract):
    component = "csv"
    data = b'n,t\n1,"a\nb"\n2,c\n'
    expected = (b'{"n":"1","t":"a\\nb"}', b'{"n":"2","t":"c"}')


class TestChunker(ScannerContract):
    component = "chunker"
    config = {"size": 3}
    data = b"abcdefgh"
    expected = (b"abc", b"def", b"gh")


class TestTumblingWindow(BufferContract):
    component = "tumbling_window"
    config = {"timestamp_mapping": "root = this.t", "size": "10s"}
    arrivals = ((101, '{"t":101}'), (104, '{"t":103}'), (112, '{"t":111}'), (125, '{"t":124}'))
    expected = ((b'{"t":101}', b'{"t":103}'), (b'{"t":111}',), (b'{"t":124}',))


class TestSessionWindow(BufferContract):
    component = "session_window"
    config = {"timestamp_mapping": "root = this.t", "gap": "5s"}
    arrivals = ((101, '{"t":101}'), (104, '{"t":104}'), (120, '{"t":120}'))
    expected = ((b'{"t":101}', b'{"t":104}'), (b'{"t":120}',))


class TestSystemWindow(BufferContract):
    component = "system_window"
    config = {"timestamp_mapping": "root = this.t", "size": "10s"}
    arrivals = ((101, '{"t":101}'), (104, '{"t":103}'), (112, '{"t":111}'))
    expected = ((b'{"t":101}', b'{"t":103}'), (b'{"t":111}',))


class TestLocalRateLimit(RateLimitContract):
    component = "local"
    config = {"count": 3, "interval": "10s"}
    count = 3


class TestGenerate(InputContract):
    component = "generate"
    config = {"mapping": "root = batch_index()", "interval": "1h", "count": 4}
    expected = (b"0", b"0", b"0", b"0")


class TestFile(InputContract):
    component = "file"
    expected = (b"one", b"two", b"three")

    @pytest.fixture(autouse=True)
    def file(self, tmp_path: Path) -> None:
        self.path = tmp_path / "lines"
        self.path.write_text("one\ntwo\nthree\n")

    def make_config(self) -> Any:
        return {"paths": [str(self.path)]}


class TestHttpClient(OutputContract):
    component = "http_client"
    batches = (["a"], ["b"], ["d"])

    @pytest.fixture(autouse=True)
    def server(self) -> Iterator[None]:
        with record_requests() as self.recorder:
            yield

    def make_config(self) -> Any:
        recorder: RequestRecorder = self.recorder
        return {"url": recorder.url, "max_in_flight": 1, "retries": 0}

    def received(self) -> list[bytes]:
        return self.recorder.bodies

    def refuse_once(self) -> bool:
        self.recorder.refusals = 1
        return True


def make_plugin(kind: Kind, build: Any, **more: Any) -> Any:
    spec = Spec(kind, "made_up", "Is made up.", access=Access.NONE, **more)
    return type("Plugin", (), {"API_VERSION": "1.0", "SPEC": spec, "build": staticmethod(build)})


class Greetings(ReceivedInput):
    name = "greetings"
    failures = 0

    def receive(self, receiver: MessageReceiver) -> None:
        for number in range(receiver.mark or 0, 5):
            receiver.put([Message(b"hello %d" % number, {"n": number})], mark=number + 1)
            if number == 2 and not self.failures:
                self.failures += 1
                raise ConnectionError("lost")


class TestReceivedInput(InputContract):
    component = make_plugin(Kind.INPUT, lambda parsed, context: Greetings())
    expected = tuple(b"hello %d" % number for number in range(5))


def test_a_received_input_goes_on_after_an_error_and_ends(tmp_path: Path) -> None:
    with use_component(make_plugin(Kind.INPUT, lambda parsed, context: Greetings())) as tested:
        reader = InputReader(tested, tmp_path)
        batches = reader.read()
        assert [one.raw for [one] in batches] == [b"hello %d" % number for number in range(5)]
        assert [one.meta["n"] for [one] in batches] == list(range(5))
        assert reader.is_ended
        assert [line.text for line in reader.ex.lines] == [
            "Failed to receive: ConnectionError: lost; trying again"
        ]
        # The next start knows that all has come.
        assert reader.restart().read() == []
        assert read_input(tested, tmp_path / "other", 2)[0][0].raw == b"hello 0"


class Lines(Output):
    """Appends lines to a list; it loses what `fails_at` says."""

    lines: list[bytes] = []
    loses = b""

    def send(self, batch: list[Message], ex: Execution) -> None:
        for index, message in enumerate(batch):
            if message.raw == b"bad":
                raise SendError("bad", {index: "is bad"})
            if message.raw != self.loses:
                self.lines.append(message.raw)


def make_output(loses: bytes) -> type[OutputContract]:
    class Tested(OutputContract):
        component = make_plugin(
            Kind.OUTPUT,
            lambda parsed, context: type("Own", (Lines,), {"loses": loses})(),
        )

        def received(self) -> list[bytes]:
            return Lines.lines

    Lines.lines.clear()
    return Tested


def test_an_output_that_loses_a_message_breaks_the_contract() -> None:
    make_output(b"")().test_all_is_received_in_order()
    with pytest.raises(AssertionError, match="expected .*b'c'"):
        make_output(b"c")().test_all_is_received_in_order()


def test_failures_of_single_messages_are_told() -> None:
    plugin = make_plugin(Kind.OUTPUT, lambda parsed, context: Lines())
    with use_component(plugin) as tested:
        first, second = send_batches(tested, [["a", "bad"], ["b"]])
        assert first is not None and first.errors == {1: "is bad"} and second is None


CALLS: list[int] = []


def number_calls(batch: list[Message]) -> list[list[Message]]:
    """Return another message at each call."""
    CALLS.append(1)
    return [[one.with_bytes(b"%d" % len(CALLS)) for one in batch]]


def change_in_place(batch: list[Message]) -> list[list[Message]]:
    """Change metadata that others share."""
    for message in batch:
        message.meta["changed"] = True  # type: ignore[index]
    return [batch]


BREAKERS = {
    "test_incoming_messages_stay_as_they_are": change_in_place,
    "test_the_order_is_kept": lambda batch: [batch[::-1]],
    "test_a_replay_gives_the_same": number_calls,
    "test_it_makes_the_expected_messages": lambda batch: [],
}


@pytest.mark.parametrize("test", BREAKERS)
def test_a_processor_that_breaks_the_contract_fails_its_test(test: str) -> None:
    change = BREAKERS[test]

    class Breaker:
        def process(self, batch: list[Message], ex: Execution) -> list[list[Message]]:
            made: list[list[Message]] = change(batch)
            return made

    class Tested(ProcessorContract):
        component = make_plugin(Kind.PROCESSOR, lambda parsed, context: Breaker())
        batches = ([Message(b"a", {}), Message(b"b", {})],)
        expected = ([b"a", b"b"],)

    with pytest.raises(AssertionError):
        getattr(Tested(), test)()


def test_a_processor_that_raises_marks_its_messages() -> None:
    class Raising:
        def process(self, batch: list[Message], ex: Execution) -> list[list[Message]]:
            raise ValueError("no")

    with use_component(make_plugin(Kind.PROCESSOR, lambda parsed, context: Raising())) as tested:
        ex = RecordedExecution(ScriptedClock(7))
        [[message]] = run_processor(tested, [["a"]], ex)
        assert message.error is not None and "no" in message.error
        assert ex.lines[0].level == "ERROR" and ex.count_of("processor_error") == 1


def test_a_component_that_is_bad_is_refused_with_the_reason() -> None:
    plugin = make_plugin(Kind.PROCESSOR, None)
    with pytest.raises(StreamerError, match="has no function build"), use_component(plugin):
        pass
    clash = make_plugin(Kind.PROCESSOR, lambda parsed, context: None)
    clash.SPEC = Spec(Kind.PROCESSOR, "mapping", "Is ours.")
    with pytest.raises(StreamerError, match="component of streamer itself"), use_component(clash):
        pass
    with pytest.raises(StreamerError, match="no processor 'nothing'"), use_component("nothing"):
        pass


def test_unknown_fields_are_refused_by_every_contract() -> None:
    class Tested(ComponentContract):
        component = make_plugin(
            Kind.PROCESSOR,
            lambda parsed, context: object(),
            fields=(Field("size", "int", "A size.", default=1),),
        )

    Tested().test_an_unknown_field_is_refused()
