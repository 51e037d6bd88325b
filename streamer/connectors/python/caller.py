"""Calls of users' functions: within a time limit, with output in the log, one failure at a time."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from streamer.connectors.python.annotations import Takes
from streamer.connectors.python.memory import MemoryGuard
from streamer.connectors.python.opened_objects import close_object, open_object
from streamer.connectors.python.owned_message import OwnedMessage, check_metadata
from streamer.connectors.python.printed_lines import print_to
from streamer.connectors.python.results import Origins
from streamer.connectors.python.tables import Tables
from streamer.connectors.python.target import METADATA, TABLES, LoadedCode
from streamer.connectors.python.user_traceback import describe_error
from streamer.core.errors import MessageError, StreamAbortedError
from streamer.core.execution import Execution
from streamer.core.json.bulk import parse_batch
from streamer.core.message import Batch, Message
from streamer.core.python_values import NoValueError, copy_plain
from streamer.core.time_limit import TimeLimitError, restart_time_limit, run_within_time
from streamer.sdk.component_ref import ComponentRef

TIMEOUT: Final = "timeout"
_TASKS_AT_ONCE: Final = 64
"""Calls of a coroutine function that are in progress at once."""

_LOCAL: Final = threading.local()
_Metadata = list[dict[str, Any]] | None


class PythonProcessor:
    """Calls a function of users' for each message, or for each batch."""

    def __init__(
        self,
        load: Callable[[], LoadedCode],
        timeout: int,
        memory: MemoryGuard,
        origin: ComponentRef,
    ) -> None:
        """Take the function.

        Args:
            load: returns the code, loaded once for the worker.
            timeout: how long a call may take, ns; 0 for any time.
            memory: bounds the memory that calls leave behind.
            origin: the component.
        """
        self._load = load
        self._timeout = timeout
        self._memory = memory
        self._origin = origin
        self._path = origin.fields["path"]

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return one batch of what the function makes of a batch, or none."""
        loaded = self._load()
        key = (ex.micro_batch.stream if ex.micro_batch is not None else "", self._path)
        made: Batch = []
        with self._logged_output(ex), self._function(key, loaded) as function:
            call = _Calls(loaded, function, self._timeout, self._origin, ex)
            made = call.run_each(batch) if loaded.takes.is_single else call.run_batch(batch)
        self._bound_memory(key, loaded, ex)
        return [made] if made else []

    @contextmanager
    def _logged_output(self, ex: Execution) -> Iterator[None]:
        process = os.getpid()
        try:
            with print_to(lambda level, text: self._origin.log(ex, level, text)):
                yield
        finally:
            _end_fork(process)

    @contextmanager
    def _function(self, key: tuple[str, str], loaded: LoadedCode) -> Iterator[Callable[..., Any]]:
        loaded.modules.activate()
        if not loaded.is_class:
            yield loaded.make()
            return
        opened = open_object(key, loaded)
        with opened.lock:
            yield opened.process

    def _bound_memory(self, key: tuple[str, str], loaded: LoadedCode, ex: Execution) -> None:
        """Load the code anew where it has taken more memory than it may."""
        grown = self._memory.measure_growth()
        if grown <= self._memory.limit:
            return
        close_object(key)
        loaded.reload()
        kept = self._memory.reset()
        text = f"The process has grown by {grown >> 20} MiB, more than memory_limit allows: its "
        text += f"code was loaded anew, which has left {kept >> 20} MiB"
        self._origin.log(ex, "WARN", text)


def _end_fork(process: int) -> None:
    """End this process where users' code has forked it, and comes back in the fork, too."""
    if os.getpid() != process:
        os._exit(0)


class _Calls:
    """The calls for one batch."""

    def __init__(
        self,
        loaded: LoadedCode,
        function: Callable[..., Any],
        timeout: int,
        origin: ComponentRef,
        ex: Execution,
    ) -> None:
        self._loaded, self._function = loaded, function
        self._timeout, self._origin, self._ex = timeout, origin, ex
        self._process = os.getpid()
        self._extras: dict[str, Any] = {TABLES: Tables()} if TABLES in loaded.extras else {}
        self._has_metadata = METADATA in loaded.extras

    def run_each(self, batch: Batch) -> Batch:
        """Return what the function makes of each message, in order."""
        made: list[Batch] = [[] for _ in batch]
        if self._loaded.is_async:
            self._run_all_async(batch, made)
            return [one for messages in made for one in messages]
        at = 0
        while at < len(batch):
            place = [at]
            try:
                self._within_time(lambda p=place: self._run_from(batch, made, p))  # type: ignore[misc]
                break
            except TimeLimitError as e:
                made[place[0]] = [self._fail(batch[place[0]], e)]
                at = place[0] + 1
        return [one for messages in made for one in messages]

    def _run_from(self, batch: Batch, made: list[Batch], place: list[int]) -> None:
        """Call the function for messages, from a place that goes along."""
        for at in range(place[0], len(batch)):
            place[0] = at
            if self._timeout:
                restart_time_limit(self._timeout)
            message = batch[at]
            try:
                given, rows, metadata = self._give_one(message)
                result = self._call(given, None if metadata is None else metadata[0])
                made[at] = self._take(result, [message], rows, metadata)
            except (NoValueError, MessageError) as e:
                made[at] = [self._origin.fail(message, str(e), self._ex)]
            except StreamAbortedError:
                raise
            except (Exception, SystemExit) as e:
                made[at] = [self._fail(message, e)]
        place[0] = len(batch) - 1

    def _run_all_async(self, batch: Batch, made: list[Batch]) -> None:
        """Call the coroutine function for all messages, some at once."""

        async def run_one(at: int, free: asyncio.Semaphore) -> None:
            message = batch[at]
            try:
                given, rows, metadata = self._give_one(message)
                async with free:
                    seconds = self._timeout / 1e9 or None
                    extra = None if metadata is None else metadata[0]
                    result = await asyncio.wait_for(self._start(given, extra), seconds)
                made[at] = self._take(result, [message], rows, metadata)
            except TimeoutError as e:
                error = _overdue_error(self._timeout).with_traceback(e.__traceback__)
                made[at] = [self._fail(message, error)]
            except (NoValueError, MessageError) as e:
                made[at] = [self._origin.fail(message, str(e), self._ex)]
            except (Exception, SystemExit) as e:
                made[at] = [self._fail(message, e)]

        async def run() -> None:
            free = asyncio.Semaphore(_TASKS_AT_ONCE)
            await asyncio.gather(*(run_one(at, free) for at in range(len(batch))))

        rounds = -(-len(batch) // _TASKS_AT_ONCE)
        try:
            # Code that never waits keeps the loop from seeing that it is late.
            self._within_time(lambda: _event_loop().run_until_complete(run()), rounds + 1)
        except TimeLimitError as e:
            _drop_event_loop()
            for at, messages in enumerate(made):
                if not messages:
                    made[at] = [self._fail(batch[at], e)]

    def run_batch(self, batch: Batch) -> Batch:
        """Return what the function makes of all messages, and those that it cannot get, failed."""
        failed: Batch = []
        good = list(batch)
        try:
            given, rows, good, failed = self._give_all(batch)
            if not good:
                return failed
            metadata = [dict(one.meta) for one in good] if self._has_metadata else None
            result = self._within_time(lambda: self._finish(given, metadata))
            return [*self._take(result, good, rows, metadata), *failed]
        except NoValueError as e:
            return [*(self._origin.fail(one, str(e), self._ex) for one in good), *failed]
        except StreamAbortedError:
            raise
        except (Exception, SystemExit) as e:
            return [*self._fail_all(good, e), *failed]

    def _finish(self, given: Any, metadata: Any) -> Any:
        result = self._call(given, metadata)
        # A generator does its work as it is read, which must be within the time.
        return list(result) if inspect.isgenerator(result) else result

    def _give_one(self, message: Message) -> tuple[Any, Sequence[dict[str, Any]], _Metadata]:
        metadata = [dict(message.meta)] if self._has_metadata else None
        if self._loaded.takes is Takes.MESSAGE:
            return OwnedMessage.own(message), (), metadata
        document = message.doc
        if not isinstance(document, dict):
            raise MessageError(f"the message is {_name(document)}; expected an object, for dict")
        copied = copy_plain(document)
        return copied, (copied,), metadata

    def _give_all(self, batch: Batch) -> tuple[Any, Sequence[dict[str, Any]], Batch, Batch]:
        """Return what the function gets, its rows, the messages that it has, and the others."""
        takes = self._loaded.takes
        if takes is Takes.MESSAGES:
            return [OwnedMessage.own(one) for one in batch], (), list(batch), []
        if takes is Takes.DICTS:
            return self._give_dicts(batch)
        from streamer.connectors.tables.batch_table import make_batch_table

        made = make_batch_table(batch)
        good = [batch[at] for at in made.indexes]
        failed = [
            self._origin.fail(batch[at], text, self._ex) for at, text in sorted(made.errors.items())
        ]
        return _to_frame(made.rows, takes), (), good, failed

    def _give_dicts(self, batch: Batch) -> tuple[Any, Sequence[dict[str, Any]], Batch, Batch]:
        rows: list[dict[str, Any]] = []
        good: Batch = []
        failed: Batch = []
        parse_batch(batch)
        for message in batch:
            try:
                given, _, _ = self._give_one(message)
            except MessageError as e:
                failed.append(self._origin.fail(message, str(e), self._ex))
                continue
            rows.append(given)
            good.append(message)
        # A list of its own: the function may change it.
        return list(rows), rows, good, failed

    def _take(
        self, result: Any, batch: Batch, rows: Sequence[dict[str, Any]], metadata: _Metadata
    ) -> Batch:
        _end_fork(self._process)
        changed = None if metadata is None else [check_metadata(one) for one in metadata]
        made = Origins(batch, rows, changed).make_messages(result)
        for number, message in enumerate(made):
            error = message.error
            if error is not None and not hasattr(error, "path"):
                made[number] = self._origin.fail(message.with_error(None), error, self._ex)
        return made

    def _call(self, given: Any, metadata: Any) -> Any:
        extras = self._extras if metadata is None else {**self._extras, METADATA: metadata}
        result = self._function(given, **extras)
        if inspect.iscoroutine(result) or inspect.isasyncgen(result):
            return _event_loop().run_until_complete(_collect(result))
        return result

    async def _start(self, given: Any, metadata: Any) -> Any:
        extras = self._extras if metadata is None else {**self._extras, METADATA: metadata}
        return await _collect(self._function(given, **extras))

    def _within_time(self, work: Callable[[], Any], times: int = 1) -> Any:
        if not self._timeout:
            return work()
        return run_within_time(work, self._timeout * times, by=TIMEOUT, wakes=True)

    def _fail(self, message: Message, error: BaseException) -> Message:
        _end_fork(self._process)
        return self._origin.fail(message, describe_error(error, self._loaded.own), self._ex)

    def _fail_all(self, batch: Batch, error: BaseException) -> Batch:
        _end_fork(self._process)
        text = describe_error(error, self._loaded.own)
        if not batch:
            return []
        first = self._origin.fail(batch[0], text, self._ex)
        return [first, *(self._origin.mark(one, text, self._ex) for one in batch[1:])]


def _overdue_error(limit: int) -> TimeLimitError:
    from streamer.core.durations import format_duration

    return TimeLimitError(f"it takes longer than the {format_duration(limit)} that timeout allows")


async def _collect(result: Any) -> Any:
    if inspect.isasyncgen(result):
        return [one async for one in result]
    return await result


def _event_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of this thread and process."""
    kept = getattr(_LOCAL, "loop", None)
    if kept is None or kept[0] != os.getpid() or kept[1].is_closed():
        kept = _LOCAL.loop = (os.getpid(), asyncio.new_event_loop())
    loop: asyncio.AbstractEventLoop = kept[1]
    return loop


def _drop_event_loop() -> None:
    """Leave a loop that was interrupted, with its tasks."""
    _LOCAL.loop = None


def _name(document: Any) -> str:
    if isinstance(document, list):
        return "an array"
    return "null" if document is None else f"no object but {type(document).__name__}"


def _to_frame(rows: Any, takes: Takes) -> Any:
    """Return rows as what a function takes."""
    import pyarrow as pa

    table = pa.Table.from_batches([rows])
    if takes is Takes.PANDAS:
        return table.to_pandas()
    if takes is Takes.POLARS:
        import polars

        return polars.from_arrow(table)
    return table
