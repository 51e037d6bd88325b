"""The lease of a checkpoint that is no directory: one program runs on it, whatever dies or hangs.

There is a file for each term, `lease/<number>`, and the newest says who has the checkpoint. Whoever
has it writes the file anew every few seconds and then looks whether a newer term was begun; so long
after the beginning of the last such beat, and no longer, it may go on. Whoever wants it begins the
next term once the former file says that its program has ended, or has not changed for a while; and
then waits until the former program, if it lives after all, has seen that or may not go on any more.
No clock is compared with that of another machine.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from streamer.spark.checkpoint.directory_lock import Holder


class LeaseFiles(Protocol):
    """The directory of the terms' files."""

    def list_names(self) -> Iterable[str]:
        """Return the names in it; none where it is not there."""

    def read(self, name: str) -> bytes:
        """Return what is in a file."""

    def create(self, name: str, body: bytes) -> None:
        """Create a file.

        Raises:
            FileExistsError: it is there, perhaps by another program that was faster.
        """

    def put(self, name: str, body: bytes) -> None:
        """Replace a file at once."""

    def delete(self, name: str) -> None:
        """Delete a file."""


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """Interval at which the lease is checked, s.

    Attributes:
        beat_s: between two signs of life.
        silence_s: without a sign of life, a program counts as gone.
        validity_s: after the beginning of a beat, the program may go on.
    """

    beat_s: float = 4.0
    silence_s: float = 12.0
    validity_s: float = 10.0


class LeaseTakenError(Exception):
    """Another program has the lease.

    Attributes:
        holder: who that is.
    """

    def __init__(self, holder: str) -> None:
        """Take its name."""
        super().__init__(holder)
        self.holder = holder


@dataclass(frozen=True, slots=True)
class _Term:
    number: int
    body: bytes = b""

    @property
    def fields(self) -> dict[str, object]:
        with suppress(ValueError):
            document = json.loads(self.body)
            if isinstance(document, dict):
                return document
        return {}

    @property
    def holder(self) -> str:
        fields = self.fields
        return str(Holder(str(fields.get("host", "?")), int(str(fields.get("pid", 0)))))


class Lease:
    """The lease that this program has, or wants.

    Attributes:
        mark: names this holding of it.
    """

    def __init__(
        self,
        terms: LeaseFiles,
        timing: LeaseTiming | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Request the lease.

        Args:
            terms: where its files are.
            timing: how often it is looked after.
            clock: gives seconds, and goes on while the program is stopped.
        """
        self.mark = uuid.uuid4().hex
        self._terms = terms
        self._timing = timing or LeaseTiming()
        self._clock = clock
        self._number = 0
        self._beats = 0
        self._until = 0.0
        self._new_holder = ""
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def last_mark(self) -> str:
        """Return the mark of the newest holding, by whomever; empty for none.

        Raises:
            OSError: the file system refuses.
        """
        return str(self._read_newest().fields.get("mark", ""))

    def acquire(
        self, ended_mark: str = "", on_wait: Callable[[str], None] = lambda holder: None
    ) -> str:
        """Acquire the lease, and renew it from now on.

        Args:
            ended_mark: the mark of a holding whose program is known to have ended.
            on_wait: called with whose end is waited for, if that takes seconds.

        Returns:
            The mark of the holding before; empty for none.

        Raises:
            TakenError: another program has it, or was faster.
            OSError: the file system refuses.
        """
        before = self._read_newest()
        previous_mark = str(before.fields.get("mark", ""))
        is_own = bool(ended_mark) and previous_mark == ended_mark
        is_free = not before.number or is_own or before.fields.get("over") is True
        if not is_free:
            on_wait(before.holder)
            is_free = self._wait_for_silence(before)
        self._number = before.number + 1
        try:
            self._terms.create(self._file_name(self._number), self._encode_term())
        except FileExistsError:
            # It may be ours: an answer that was lost is asked for once more.
            newest = self._read_newest()
            if newest.fields.get("mark") != self.mark:
                raise LeaseTakenError(newest.holder) from None
        if not is_free:
            # It may have had its last beat at this very moment.
            self._ended.wait(self._timing.validity_s)
        self._beat()
        newest = self._read_newest()
        if self._new_holder or newest.fields.get("mark") != self.mark:
            raise LeaseTakenError(newest.holder)
        for number in self._term_numbers():
            if number < self._number:
                self._terms.delete(self._file_name(number))
        self._thread = threading.Thread(target=self._beat_until_ended, daemon=True, name="lease")
        self._thread.start()
        return previous_mark

    @property
    def new_holder(self) -> str:
        """The program that has taken the lease from this one; empty as long as none has."""
        return self._new_holder

    def wait_valid(self, stopping: Callable[[], bool]) -> bool:
        """Wait until it is sure that nobody else has the checkpoint.

        Args:
            stopping: ends the wait.

        Returns:
            Whether it is; False when another program has it, or the wait was ended.
        """
        while not self._new_holder:
            if self._clock() < self._until:
                return True
            if stopping():
                return False
            time.sleep(0.1)
        return False

    def release(self) -> None:
        """Release the lease, when nothing writes to the checkpoint any more."""
        self.stop_beating()
        if not self._new_holder:
            with suppress(OSError):
                self._terms.put(self._file_name(self._number), self._encode_term(is_over=True))

    def stop_beating(self) -> None:
        """Stop renewing the lease."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(self._timing.validity_s)

    def _beat_until_ended(self) -> None:
        while not self._ended.wait(self._timing.beat_s) and not self._new_holder:
            # What a file system refuses now it may take at the next beat.
            with suppress(OSError):
                self._beat()

    def _beat(self) -> None:
        began = self._clock()
        self._beats += 1
        self._terms.put(self._file_name(self._number), self._encode_term())
        if max(self._term_numbers(), default=0) != self._number:
            self._new_holder = self._read_newest().holder
            return
        self._until = began + self._timing.validity_s

    def _wait_for_silence(self, last_term: _Term) -> bool:
        """Wait until a program says that it has ended, or says nothing; return whether it did.

        Raises:
            TakenError: it lives.
        """
        until = self._clock() + self._timing.silence_s
        while self._clock() < until:
            time.sleep(min(1.0, self._timing.beat_s / 2))
            now = self._read_newest()
            if now.number == last_term.number and now.fields.get("over") is True:
                return True
            if now != last_term:
                raise LeaseTakenError(now.holder)
        return False

    def _read_newest(self) -> _Term:
        while True:
            number = max(self._term_numbers(), default=0)
            if not number:
                return _Term(0)
            # Whoever has begun a newer one has deleted it meanwhile.
            with suppress(FileNotFoundError):
                return _Term(number, self._terms.read(self._file_name(number)))

    def _term_numbers(self) -> Iterator[int]:
        return (int(name) for name in self._terms.list_names() if name.isdecimal())

    @staticmethod
    def _file_name(number: int) -> str:
        return f"{number:010d}"

    def _encode_term(self, is_over: bool = False) -> bytes:
        fields = {"host": socket.gethostname(), "pid": os.getpid(), "mark": self.mark}
        return json.dumps({**fields, "beats": self._beats, "over": is_over}).encode()
