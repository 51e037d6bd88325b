"""Contract tests: an author derives a class from one of these, and pytest runs its tests.

A class names the component, its config and its messages:

    class TestShout(ProcessorContract):
        component = shout
        config = {"mark": "?"}
        batches = (["hello"], ["a", "b"])

Every test says what it expected, so that none needs pytest's rewriting of `assert`.
"""

from __future__ import annotations

import pickle
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

from streamer.components.plugin_specs import find_spec_problem
from streamer.core.durations import SECOND
from streamer.core.errors import ConfigError
from streamer.core.message import Batch
from streamer.sdk.api_version import find_version_problem
from streamer.sdk.cache import KeyAlreadyExistsError, KeyNotFoundError
from streamer.sdk.spec import Kind
from streamer.tools.component_kit.clock import RecordedExecution
from streamer.tools.component_kit.components import (
    Content,
    TestedComponent,
    make_batch,
    use_component,
)
from streamer.tools.component_kit.drivers import InputReader, run_processor, send_batches

_UNKNOWN_FIELD: Final = "no_such_field"
_PLACE: Final = "contract_place"
_RETRIES: Final = 20


def expect(condition: bool, text: str) -> None:
    """Fail a test unless something holds; `text` says what was expected and what came."""
    if not condition:
        raise AssertionError(text)


class ComponentContract:
    """The tests of every component.

    Attributes:
        component: the module with `SPEC`, `build` and `API_VERSION`, or a component's name.
        config: its body, as YAML would have it.
        resources: sections of the config that it needs, such as `cache_resources`.
        kind: the kind of the component.
    """

    component: ClassVar[Any] = None
    config: ClassVar[Any] = None
    resources: ClassVar[Mapping[str, Any]] = {}
    kind: ClassVar[Kind] = Kind.PROCESSOR

    def make_config(self) -> Any:
        """Return the config; override it for one that needs a server's address, say."""
        return self.config

    @contextmanager
    def use(self) -> Iterator[TestedComponent]:
        """Have the component with its config."""
        with use_component(
            self.component, self.make_config(), kind=self.kind, **self.resources
        ) as tested:
            yield tested

    def test_its_spec_is_valid(self) -> None:
        """The spec can be read by lint, the schema and documentation."""
        with self.use() as tested:
            spec = tested.spec
            problem = find_spec_problem(spec, spec.kind, spec.name)
            expect(not problem, problem)
            expect(spec.kind == self.kind, f"it is of kind {spec.kind}; expected {self.kind}")
        if not isinstance(self.component, str):
            problem = find_version_problem(getattr(self.component, "API_VERSION", None))
            expect(not problem, problem)

    def test_an_unknown_field_is_refused(self) -> None:
        """Lint names a field that the spec has not."""
        with self.use() as tested:
            if tested.spec.config is not None:
                return
        config = {**(self.make_config() or {}), _UNKNOWN_FIELD: 1}
        try:
            with use_component(self.component, config, kind=self.kind, **self.resources):
                pass
        except ConfigError as error:
            expect(_UNKNOWN_FIELD in str(error), f"expected the field's name in {error}")
            return
        raise AssertionError(f"the field {_UNKNOWN_FIELD} was accepted; expected a finding")

    def test_its_config_travels_to_workers(self) -> None:
        """The parsed component is the same after it was pickled, and can be built from that."""
        with self.use() as tested:
            copied = pickle.loads(pickle.dumps(tested.parsed))
            expect(copied == tested.parsed, "the parsed component differs after it was pickled")
            tested.parsed = copied
            tested.build()


class ProcessorContract(ComponentContract):
    """The tests of a processor.

    Attributes:
        batches: batches that it processes.
        expected: the payloads of the batches that it makes of them; None to compare nothing.
        keeps_order: whether its messages come out in the order in which they came in.
        is_repeatable: whether the same batch gives the same again, as after a replay.
    """

    batches: ClassVar[Sequence[Sequence[Content]]] = ()
    expected: ClassVar[Sequence[Sequence[bytes]] | None] = None
    keeps_order: ClassVar[bool] = True
    is_repeatable: ClassVar[bool] = True

    def test_it_makes_the_expected_messages(self) -> None:
        """The batches that come out have the expected payloads, and none has failed."""
        if self.expected is None:
            return
        with self.use() as tested:
            made = run_processor(tested, self.batches)
        payloads = [[message.raw for message in batch] for batch in made]
        expected = [list(batch) for batch in self.expected]
        expect(payloads == expected, f"it made {payloads}; expected {expected}")
        errors = [message.error for batch in made for message in batch if message.error]
        expect(not errors, f"messages have failed: {errors}")

    def test_incoming_messages_stay_as_they_are(self) -> None:
        """A batch may go to several places: what a processor changes is a new message."""
        batches = [make_batch(*contents) for contents in self.batches]
        before = [_describe_batch(batch) for batch in batches]
        with self.use() as tested:
            run_processor(tested, batches)
        after = [_describe_batch(batch) for batch in batches]
        expect(before == after, f"the messages were {before}, and became {after}")

    def test_a_replay_gives_the_same(self) -> None:
        """After a failure a micro-batch is processed again, in a new process."""
        if not self.is_repeatable:
            return
        with self.use() as tested:
            first, again = (run_processor(tested, self.batches) for _ in range(2))
        expect(
            list(map(_describe_batch, first)) == list(map(_describe_batch, again)),
            f"the first run made {first}, and the second one {again}",
        )

    def test_the_order_is_kept(self) -> None:
        """Messages that come out, and still have their metadata, are in order."""
        if not self.keeps_order:
            return
        number = 0
        batches: list[Batch] = []
        for contents in self.batches:
            marked = []
            for message in make_batch(*contents):
                marked.append(message.with_added_metadata(**{_PLACE: number}))
                number += 1
            batches.append(marked)
        with self.use() as tested:
            made = run_processor(tested, batches)
        places = [one.meta[_PLACE] for batch in made for one in batch if _PLACE in one.meta]
        expect(places == sorted(places), f"messages came out in the order {places}")


class InputContract(ComponentContract):
    """The tests of an input that ends, or of which a test reads so many messages.

    Attributes:
        expected: the payloads of its messages, in order.
        timeout: seconds to wait for a message.
    """

    kind: ClassVar[Kind] = Kind.INPUT
    expected: ClassVar[Sequence[bytes]] = ()
    timeout: ClassVar[float] = 10.0

    @contextmanager
    def read_from_start(self) -> Iterator[InputReader]:
        """Start a stream that reads the input."""
        with self.use() as tested, tempfile.TemporaryDirectory() as directory:
            reader = InputReader(tested, Path(directory))
            try:
                yield reader
            finally:
                reader.close()

    def test_it_gives_its_messages_in_order(self) -> None:
        """All messages come, each once, in order."""
        with self.read_from_start() as reader:
            payloads = _payloads(reader.read(len(self.expected), self.timeout))
        expect(
            payloads == list(self.expected), f"it gave {payloads}; expected {list(self.expected)}"
        )

    def test_a_restart_goes_on_from_the_committed_position(self) -> None:
        """A stream that stops after each micro-batch loses nothing, and repeats nothing."""
        payloads: list[bytes] = []
        with self.read_from_start() as reader:
            for _ in range(len(self.expected)):
                payloads += _payloads(reader.read(1, self.timeout))
                if len(payloads) >= len(self.expected):
                    break
                reader = reader.restart()
            reader.close()
        expect(
            payloads == list(self.expected),
            f"with restarts it gave {payloads}; expected {list(self.expected)}",
        )

    def test_what_is_replayed_is_the_same(self) -> None:
        """The messages between two positions are the same at each reading, in one part or more."""
        with self.read_from_start() as reader:
            end = reader.find_end(self.timeout)
            if end is None:
                raise AssertionError(f"no message has come within {self.timeout:g} s")
            first, again = (_payloads(reader.replay(end)) for _ in range(2))
            in_parts = _payloads(reader.replay(end, parts=3))
        expect(bool(first), "messages were announced, and none was there")
        expect(first == again, f"the first reading gave {first}, and the second one {again}")
        expect(first == in_parts, f"in one part it gave {first}, in several {in_parts}")

    def test_it_ends_when_the_stream_stops(self) -> None:
        """Receivers end within 10 s after the stream has stopped."""
        with self.read_from_start() as reader:
            expect(reader.close(), "a receiver runs on 10 s after the stream has stopped")


class OutputContract(ComponentContract):
    """The tests of an output. Derive, and write `received`, and `refuse_once` if you can.

    Attributes:
        batches: batches that it sends.
    """

    kind: ClassVar[Kind] = Kind.OUTPUT
    batches: ClassVar[Sequence[Sequence[Content]]] = (["a"], ["b", "c"], ["d"])

    def received(self) -> list[bytes]:
        """Return the payloads that the receiver has, in their order, since this test began."""
        raise NotImplementedError

    def refuse_once(self) -> bool:
        """Let the receiver refuse the next request; return whether that is possible."""
        return False

    def expected(self) -> list[bytes]:
        """Return the payloads that are to be received: those of the batches."""
        return [message.raw for contents in self.batches for message in make_batch(*contents)]

    def test_all_is_received_in_order(self) -> None:
        """All messages arrive; in order, unless several batches may be on their way."""
        with self.use() as tested:
            errors = send_batches(tested, self.batches)
            keeps_order = tested.build().max_in_flight == 1
        expect(not any(errors), f"sending has failed: {errors}")
        received = self.received()
        expected = self.expected()
        if not keeps_order:
            received, expected = sorted(received), sorted(expected)
        expect(received == expected, f"the receiver has {received}; expected {expected}")

    def test_a_refused_batch_fails_and_can_be_sent_again(self) -> None:
        """Nothing counts as sent that the receiver has refused; a second try succeeds."""
        with self.use() as tested:
            if not self.refuse_once():
                return
            [first, *_] = self.batches
            output, ex = tested.build(), RecordedExecution()
            batch = make_batch(*first)
            [error] = output.deliver([batch], ex).errors
            expect(error is not None, "the receiver has refused a batch, and it counts as sent")
            for _ in range(_RETRIES):
                [error] = output.deliver([batch], ex).errors
                if error is None:
                    break
            expect(error is None, f"the batch cannot be sent again: {error}")
        received = self.received()
        for message in make_batch(*first):
            expect(message.raw in received, f"{message.raw!r} is missing in {received}")

    def test_another_task_goes_on(self) -> None:
        """An output is built anew for every task, and the one before leaves nothing behind."""
        with self.use() as tested:
            for batch in self.batches:
                [error] = send_batches(tested, [batch])
                expect(error is None, f"sending has failed: {error}")
        received, expected = self.received(), self.expected()
        expect(received == expected, f"the receiver has {received}; expected {expected}")


class CacheContract(ComponentContract):
    """The tests of a cache.

    Attributes:
        keeps_values: whether values outlive the object that has stored them.
    """

    kind: ClassVar[Kind] = Kind.CACHE
    keeps_values: ClassVar[bool] = False

    @contextmanager
    def open_cache(self) -> Iterator[tuple[Any, RecordedExecution]]:
        """Build the cache."""
        with self.use() as tested:
            yield tested.build(), RecordedExecution()

    def test_a_value_is_kept_as_it_is(self) -> None:
        """Any bytes come back; a second `set` replaces the first."""
        with self.open_cache() as (cache, ex):
            for value in (b"", b"\x00\xff", "ä".encode(), b"x" * 10_000):
                cache.set("value ä/1", value, None, ex)
                stored = cache.get("value ä/1", ex)
                expect(stored == value, f"it has {stored[:20]!r}; expected {value[:20]!r}")

    def test_a_missing_key_is_named_as_such(self) -> None:
        """`get` raises `KeyNotFoundError`; to delete what is not there is no error."""
        with self.open_cache() as (cache, ex):
            cache.delete("missing", ex)
            _expect_raised(lambda: cache.get("missing", ex), KeyNotFoundError)

    def test_add_stores_once(self) -> None:
        """A second `add` raises `KeyAlreadyExistsError`, and changes nothing."""
        with self.open_cache() as (cache, ex):
            cache.delete("added", ex)
            cache.add("added", b"1", None, ex)
            _expect_raised(lambda: cache.add("added", b"2", None, ex), KeyAlreadyExistsError)
            expect(cache.get("added", ex) == b"1", "a refused add has changed the value")

    def test_a_deleted_key_is_gone(self) -> None:
        """After `delete`, `get` finds nothing, and `add` stores again."""
        with self.open_cache() as (cache, ex):
            cache.set("deleted", b"1", None, ex)
            cache.delete("deleted", ex)
            _expect_raised(lambda: cache.get("deleted", ex), KeyNotFoundError)
            cache.add("deleted", b"2", None, ex)

    def test_of_many_threads_one_adds(self) -> None:
        """Of `add` calls of one key at the same time, one succeeds."""
        with self.open_cache() as (cache, ex):
            cache.delete("raced", ex)
            start, stored = threading.Barrier(8), []

            def add(number: int) -> None:
                start.wait(10)
                try:
                    cache.add("raced", b"%d" % number, None, ex)
                    stored.append(b"%d" % number)
                except KeyAlreadyExistsError:
                    pass

            threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(10)
            expect(len(stored) == 1, f"{len(stored)} threads have added the key; expected one")
            expect(cache.get("raced", ex) == stored[0], "another value than the added one is there")

    def test_values_outlive_the_object(self) -> None:
        """Another process, or the next start, finds what was stored."""
        if not self.keeps_values:
            return
        with self.use() as tested:
            ex = RecordedExecution()
            tested.build().set("kept", b"1", None, ex)
            expect(tested.build().get("kept", ex) == b"1", "a new object has another value")


class RateLimitContract(ComponentContract):
    """The tests of a rate limit.

    Attributes:
        count: the number of accesses that its config allows at once.
    """

    kind: ClassVar[Kind] = Kind.RATE_LIMIT
    count: ClassVar[int] = 1

    def test_it_allows_its_number_and_then_a_wait(self) -> None:
        """So many accesses are granted; then it says how long to wait, and grants again."""
        with self.use() as tested:
            limit, ex = tested.build(), RecordedExecution()
            waits = [limit.access(ex) for _ in range(self.count)]
            expect(not any(waits), f"it asked to wait {waits}; expected no waits")
            for _ in range(3):
                wait = limit.access(ex)
                expect(wait > 0, "it granted more accesses than its number")
                expect(wait <= 24 * 3600 * SECOND, f"it asked to wait for {wait} ns")
                ex.clock.advance(wait)
                granted = [limit.access(ex) for _ in range(self.count)]
                expect(granted[0] == 0, f"after the wait it asked to wait {granted[0]} ns again")


def _expect_raised(call: Callable[[], object], error: type[Exception]) -> None:
    try:
        call()
    except error:
        return
    raise AssertionError(f"expected {error.__name__}")


def _payloads(batches: Sequence[Batch]) -> list[bytes]:
    return [message.raw for batch in batches for message in batch]


def _describe_batch(batch: Batch) -> list[tuple[bytes, dict[str, Any], str | None]]:
    return [(message.raw, dict(message.meta), message.error) for message in batch]
