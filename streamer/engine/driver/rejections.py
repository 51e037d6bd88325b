"""Rejected messages of a stream: kept in the checkpoint, sent again by themselves, removed.

A micro-batch leaves what outputs have rejected in a file of its own, named by its number and
written before the micro-batch is committed: when it comes again, it writes the same file. What is
sent again is read from there, beside the micro-batches. What has been sent is taken out at once,
but where the driver writes it to a file: that is a part of the next micro-batch, so that it is
written exactly once, and it is taken out when a later one begins, which the checkpoint has then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

import msgpack
import orjson

from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.engine.driver.rejected_files import (
    WaitingMessages,
    decode_file,
    encode_entry,
    make_waiting,
)
from streamer.engine.planner.checkpoint_path import CheckpointPath, remove_file, replace_file
from streamer.engine.report.rejected_messages import (
    UNSENT,
    Fate,
    RejectedMessages,
    decode_rejected,
)
from streamer.engine.report.result_frame import Frame, FrameKind

MAX_MESSAGES: Final = 10_000
"""Rejected messages that may wait in a checkpoint; then the stream takes no further messages."""
MAX_BYTES: Final = 64 << 20

MAX_TRIES_AT_END: Final = 5
"""How often a message is sent, once the input has ended, before the program gives it up."""

_FIRST_PAUSE_S: Final = 1
_MAX_PAUSE_S: Final = 300
_ROUND_MESSAGES: Final = 200
_ROUND_BYTES: Final = 8 << 20
_LOG_INTERVAL_S: Final = 60
_SAMPLE_CHARACTERS: Final = 200
_STATE_NAME: Final = "state"
_FILE_MODE: Final = 0o600
_WRITE_KINDS: Final = (FrameKind.DATA, FrameKind.MULTI_PART)

Resend = Callable[[Sequence[RejectedMessages]], list[Frame]]
"""Sends messages again; what was not sent is in frames of kind `REJECTED`, with their numbers."""


class CountMetric(Protocol):
    """Adds to a counter."""

    def __call__(self, name: str, labels: Mapping[str, str], by: int = 1) -> None:
        """Add."""


class Rejections:
    """The rejected messages of a stream, on the driver. Several threads may use this object.

    Attributes:
        resend: sends messages again; None where nothing can.
    """

    def __init__(
        self,
        directory: CheckpointPath,
        log: LogLine,
        *,
        resend: Resend | None = None,
        wake: Callable[[], None] = lambda: None,
        replays: bool = True,
        clock: Callable[[], int] = time.time_ns,
        start_work: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        """Read what an earlier start has left.

        Args:
            directory: the directory of the files.
            log: takes log lines.
            resend: sends messages again; None where nothing can.
            wake: asks for a micro-batch, though there may be no message.
            replays: whether the stream's input gives again what is rejected.
            clock: the wall clock, ns.
            start_work: begins work that takes longer; in a thread when it is None.

        Raises:
            StreamerError: a file cannot be read.
        """
        self._directory = directory
        self._log = log
        self._count: CountMetric = _ignore_count
        self._gauge: Callable[[int], None] = lambda messages: None
        self.resend = resend
        self._absorb: Callable[[Sequence[Frame]], None] = lambda frames: None
        self._wake = wake
        self._clock = clock
        self._start_work = start_work or _run_in_thread
        self._lock = threading.RLock()
        self._waiting: dict[tuple[int, int], WaitingMessages] = {}
        self._lengths: dict[int, int] = {}
        self._unsaved = False
        self._busy = False
        self._closed = False
        self._pending_writes: list[Frame] = []
        self._written_keys: list[tuple[int, int]] = []
        self._batch_writes: tuple[int, list[Frame]] = (-1, [])
        self._is_first_batch = True
        self._last_logged: dict[tuple[str, str, str], tuple[float, int]] = {}
        self._replays = replays
        self._load()

    def attach(
        self,
        count: CountMetric,
        gauge: Callable[[int], None],
        absorb: Callable[[Sequence[Frame]], None],
    ) -> None:
        """Take the stream's counters; drop what an earlier start has left, if the config says so.

        Args:
            count: adds to a counter.
            gauge: called with the number of messages that wait.
            absorb: takes what was logged, counted and timed beside the micro-batches.
        """
        self._count, self._gauge, self._absorb = count, gauge, absorb
        if self._waiting and not self._replays:
            number = self.messages
            self._log(
                "WARN", f"Rejected messages dropped, since auto_replay_nacks is false: {number}", {}
            )
            self._count("output_dropped", {"reason": "rejected"}, number)
            for key in list(self._waiting):
                self._remove(key)
            self._save()
        self._set_gauge()

    def _load(self) -> None:
        state: dict[str, Any] = {}
        with suppress(FileNotFoundError):
            state = orjson.loads((self._directory / f"{_STATE_NAME}.json").read_bytes())
        now = self._clock()
        for file in self._directory.glob("*.rejected"):
            batch = int(file.name.partition(".")[0])
            try:
                since, entries = decode_file(file.read_bytes())
            except (ValueError, TypeError, msgpack.UnpackException) as error:
                raise StreamerError(
                    f"{file} cannot be read ({error}): it holds rejected messages; restore it from "
                    "a backup, or delete it to lose them"
                ) from None
            self._lengths[batch] = len(entries)
            for index, (one, size) in enumerate(entries):
                kept = state.get(f"{batch}.{index}", {})
                if kept.get("gone"):
                    continue
                # Who starts the program again has mostly mended something.
                made = make_waiting(batch, index, one, size, since, now)
                made.tries, made.tries_now = kept.get("tries", 1), 0
                made.text, made.reason = kept.get("text", one.text), kept.get("reason", one.reason)
                made.written = kept.get("written")
                self._waiting[batch, index] = made

    @property
    def messages(self) -> int:
        """Number of messages that wait."""
        with self._lock:
            return sum(one.messages for one in self._waiting.values() if one.written is None)

    @property
    def is_full(self) -> bool:
        """Whether no more can be kept than there are."""
        with self._lock:
            ours = [one for key, one in self._waiting.items() if key not in self._written_keys]
            ours = [one for one in ours if one.written is None]
            size = sum(one.size for one in ours)
            return sum(one.messages for one in ours) >= MAX_MESSAGES or size >= MAX_BYTES

    @property
    def is_finished(self) -> bool:
        """Whether nothing waits to be sent again, or to be written."""
        with self._lock:
            return not self._busy and not self._pending_writes and not self.messages

    @property
    def is_given_up(self) -> bool:
        """Whether all that waits was sent as often as is of use once the input has ended."""
        with self._lock:
            waiting = [one for one in self._waiting.values() if one.written is None]
            tried = all(one.tries_now >= MAX_TRIES_AT_END for one in waiting)
            return bool(waiting) and tried and not self._busy and not self._pending_writes

    def is_finished_at_end(self, checkpoint: str) -> bool:
        """Return whether nothing waits any more; called once the input has ended.

        Args:
            checkpoint: where what waits is, in words.

        Raises:
            StreamerError: something waits, and was sent again often enough.
        """
        oldest, number = self.oldest(), self.messages
        if not self.is_given_up or oldest is None:
            return self.is_finished
        what = "message is" if number == 1 else "messages are"
        raise StreamerError(
            f"the input has ended, and {number} rejected {what} left in the checkpoint "
            f"{checkpoint}, sent {MAX_TRIES_AT_END} times at least; the first to "
            f"{oldest.labels['path']}: {' '.join(oldest.text.split())}; a further start sends them "
            "again, and with auto_replay_nacks: false in the input it drops them"
        )

    def oldest(self) -> WaitingMessages | None:
        """Return the messages that wait for longest, or None."""
        with self._lock:
            waiting = [one for one in self._waiting.values() if one.written is None]
            return min(waiting, key=lambda one: (one.since, one.batch, one.index), default=None)

    def take_writes(self, batch: int) -> list[Frame]:
        """Return what is to be written beside a micro-batch; the same when it comes again.

        Args:
            batch: the micro-batch.
        """
        with self._lock:
            if self._is_first_batch:
                # Of an earlier start: what this micro-batch had written is taken back now, and
                # what a former one had is in the checkpoint.
                self._is_first_batch = False
                for key, one in list(self._waiting.items()):
                    if one.written == batch:
                        one.written = None
                    elif one.written is not None:
                        self._remove(key)
            if self._batch_writes[0] != batch:
                for key, one in list(self._waiting.items()):
                    if one.written is not None:
                        self._remove(key)
                self._batch_writes = (batch, self._pending_writes)
                for key in self._written_keys:
                    if key in self._waiting:
                        self._waiting[key].written = batch
                        self._unsaved = True
                self._pending_writes, self._written_keys = [], []
            return self._batch_writes[1]

    def keep_rejected(
        self, batch: int, rejected: Sequence[RejectedMessages], *, counts: bool = True
    ) -> None:
        """Take what a micro-batch has left, before it is committed.

        Args:
            batch: the micro-batch.
            rejected: what outputs have rejected.
            counts: whether it is counted and logged; not when it has been before.

        Raises:
            OSError: it cannot be kept.
        """
        kept = [one for one in rejected if one.fate == Fate.KEPT]
        with self._lock:
            before = {key for key in self._waiting if key[0] == batch}
            for key in before:
                del self._waiting[key]
            if kept:
                now = self._clock()
                _make_directory(self._directory)
                bodies = [*map(encode_entry, kept)]
                self._lengths[batch] = len(bodies)
                replace_file(
                    self._path_of(batch), b"".join([msgpack.packb(now), *bodies]), _FILE_MODE
                )
                for index, (one, body) in enumerate(zip(kept, bodies, strict=True)):
                    made = make_waiting(batch, index, one, len(body), now, now)
                    made.due = now + _FIRST_PAUSE_S * SECOND
                    self._waiting[batch, index] = made
            elif before:
                remove_file(self._path_of(batch))
            if before or self._unsaved:
                self._save()
        if counts:
            for one in rejected:
                self._count_and_log(one)
        self._set_gauge()

    def tick(self) -> None:
        """Begin to send again what is due, unless that is being done."""
        with self._lock:
            if (
                self.resend is None
                or self._busy
                or self._closed
                or self._pending_writes
                or self._is_first_batch
            ):
                return
            now = self._clock()
            due = [o for o in self._waiting.values() if o.written is None and o.due <= now]
            due.sort(key=lambda one: (one.due, one.batch, one.index))
            selected: list[WaitingMessages] = []
            size = 0
            for one in due:
                if selected and (
                    len(selected) >= _ROUND_MESSAGES or size + one.size > _ROUND_BYTES
                ):
                    break
                selected.append(one)
                size += one.size
            if not selected:
                return
            self._busy = True
        self._start_work(lambda: self._resend_round(selected))

    def close(self) -> None:
        """Send nothing more."""
        self._closed = True

    def _resend_round(self, selected: Sequence[WaitingMessages]) -> None:
        """Send messages again, and note what has become of each."""
        assert self.resend is not None
        try:
            whole = self._load_messages(selected)
            numbered = [
                whole[one.batch, one.index]._replace(number=number)
                for number, one in enumerate(selected)
                if (one.batch, one.index) in whole
            ]
            frames = self.resend(numbered)
        except Exception as error:  # noqa: BLE001 - whatever it is, they are sent again later
            text = str(error) or type(error).__name__
            self._finish_round(selected, [], dict.fromkeys(range(len(selected)), (text, UNSENT)))
            return
        failed: dict[int, tuple[str, str]] = {}
        for frame in frames:
            if frame.kind == FrameKind.REJECTED:
                for one in decode_rejected(frame.body):
                    failed[one.number] = (one.text, one.reason)
        self._finish_round(selected, [f for f in frames if f.kind != FrameKind.REJECTED], failed)

    def _finish_round(
        self,
        selected: Sequence[WaitingMessages],
        frames: list[Frame],
        failed: Mapping[int, tuple[str, str]],
    ) -> None:
        writes = any(frame.kind in _WRITE_KINDS for frame in frames)
        with self._lock:
            self._busy = False
            if self._closed:
                return
            now = self._clock()
            for number, one in enumerate(selected):
                key = one.batch, one.index
                self._count("output_resent", {**one.labels, "reason": one.reason}, one.messages)
                if self._waiting.get(key) is not one:
                    continue  # its micro-batch has come again meanwhile
                one.tries += 1
                one.tries_now += 1
                if number in failed:
                    one.text, one.reason = failed[number]
                    pause = min(_FIRST_PAUSE_S << min(one.tries - 1, 30), _MAX_PAUSE_S)
                    one.due = now + pause * SECOND
                elif writes:
                    self._written_keys.append(key)
                else:
                    self._remove(key)
            self._pending_writes += [frame for frame in frames if frame.kind in _WRITE_KINDS]
            with suppress(OSError):
                # It is known here; after a crash something is sent once more.
                self._save()
        self._set_gauge()
        self._absorb([frame for frame in frames if frame.kind not in _WRITE_KINDS])
        if writes:
            self._wake()

    def _load_messages(
        self, selected: Sequence[WaitingMessages]
    ) -> dict[tuple[int, int], RejectedMessages]:
        messages = {}
        for batch in {one.batch for one in selected}:
            _, entries = decode_file(self._path_of(batch).read_bytes())
            for index, (one, _) in enumerate(entries):
                messages[batch, index] = one
        return messages

    def _path_of(self, batch: int) -> Any:
        return self._directory / f"{batch}.rejected"

    def _remove(self, key: tuple[int, int]) -> None:
        self._waiting.pop(key, None)
        self._unsaved = True
        if not any(batch == key[0] for batch, _ in self._waiting):
            with suppress(OSError):
                remove_file(self._path_of(key[0]))

    def _save(self) -> None:
        """Write down how often each was sent; what is not there any more is gone."""
        state: dict[str, Any] = {}
        for one in self._waiting.values():
            state[f"{one.batch}.{one.index}"] = {
                "tries": one.tries,
                "text": one.text,
                "reason": one.reason,
                "written": one.written,
            }
        for batch in {one.batch for one in self._waiting.values()}:
            last = max(index for number, index in self._waiting if number == batch)
            for index in range(max(last + 1, self._lengths.get(batch, 0))):
                state.setdefault(f"{batch}.{index}", {"gone": True})
        file = self._directory / f"{_STATE_NAME}.json"
        if state:
            replace_file(file, orjson.dumps(state), _FILE_MODE)
        else:
            remove_file(file)
        self._unsaved = False

    def _count_and_log(self, one: RejectedMessages) -> None:
        """Count rejected messages, and log one of a kind in a while."""
        labels = {**one.labels, "reason": one.reason}
        self._count("output_rejected", labels, one.messages)
        if one.fate == Fate.DROPPED:
            self._count("output_dropped", {"reason": "rejected"}, one.messages)
        kind = (one.output, one.reason, one.fate)
        now = self._clock() / SECOND
        at, left_out = self._last_logged.get(kind, (now - _LOG_INTERVAL_S, 0))
        if now - at < _LOG_INTERVAL_S:
            self._last_logged[kind] = at, left_out + one.messages
            return
        self._last_logged[kind] = now, 0
        number = one.messages + left_out
        what = "A message was rejected" if number == 1 else f"{number} messages were rejected"
        text = f"{what} ({_FATE_TEXTS[Fate(one.fate)]}): {one.text}{_format_source(one.source)}"
        fields: dict[str, Any] = {**one.labels, "reason": one.reason}
        if one.batch:
            raw = one.batch[0].raw[: _SAMPLE_CHARACTERS + 1].decode(errors="replace")
            fields["sample"] = raw[:_SAMPLE_CHARACTERS] + "…" * (len(raw) > _SAMPLE_CHARACTERS)
        self._log("WARN", text, fields)

    def _set_gauge(self) -> None:
        self._gauge(self.messages)


_FATE_TEXTS: Final = {
    Fate.ANSWERED: "the sender was answered",
    Fate.DROPPED: "dropped, since auto_replay_nacks is false",
    Fate.KEPT: "kept and sent again by itself",
}


def _format_source(source: Sequence[str]) -> str:
    """Return which component a failure comes from, in words, when it is known."""
    if not source:
        return ""
    name, label, path = source
    return f" (by {name}{f' {label!r}' if label else ''} at {path})"


def _make_directory(directory: CheckpointPath) -> None:
    make: Callable[..., Any] | None = getattr(directory, "mkdir", None)
    if make is not None:
        make(mode=0o700, parents=True, exist_ok=True)


def _ignore_count(name: str, labels: Mapping[str, str], by: int = 1) -> None:
    """Nobody counts yet."""


def _run_in_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True, name="resend").start()
