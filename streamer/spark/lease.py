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

from streamer.spark.lock import Holder


class Terms(Protocol):
    """The directory of the terms' files."""

    def names(self) -> Iterable[str]:
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
class Pace:
    """How often the lease is looked after, s.

    Attributes:
        beat: between two signs of life.
        silent: without a sign of life, a program counts as gone.
        valid: after the beginning of a beat, the program may go on.
    """

    beat: float = 4.0
    silent: float = 12.0
    valid: float = 10.0


class TakenError(Exception):
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
    def said(self) -> dict[str, object]:
        with suppress(ValueError):
            found = json.loads(self.body)
            if isinstance(found, dict):
                return found
        return {}

    @property
    def holder(self) -> str:
        said = self.said
        return str(Holder(str(said.get("host", "?")), int(str(said.get("pid", 0)))))


class Lease:
    """The lease that this program has, or wants.

    Attributes:
        mark: names this holding of it.
    """

    def __init__(
        self,
        terms: Terms,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Want it.

        Args:
            terms: where its files are.
            pace: how often it is looked after.
            clock: gives seconds, and goes on while the program is stopped.
        """
        self.mark = uuid.uuid4().hex
        self._terms = terms
        self._pace = pace or Pace()
        self._clock = clock
        self._number = 0
        self._beats = 0
        self._until = 0.0
        self._loser = ""
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def last(self) -> str:
        """Return the mark of the newest holding, by whomever; empty for none.

        Raises:
            OSError: the file system refuses.
        """
        return str(self._newest().said.get("mark", ""))

    def take(self, gone: str = "", waits: Callable[[str], None] = lambda holder: None) -> str:
        """Take it, and keep it from now on.

        Args:
            gone: the mark of a holding whose program is known to have ended.
            waits: hears whose end is waited for, if that takes seconds.

        Returns:
            The mark of the holding before; empty for none.

        Raises:
            TakenError: another program has it, or was faster.
            OSError: the file system refuses.
        """
        before = self._newest()
        former = str(before.said.get("mark", ""))
        ours = bool(gone) and former == gone
        sure = not before.number or ours or before.said.get("over") is True
        if not sure:
            waits(before.holder)
            sure = self._is_over_after_silence(before)
        self._number = before.number + 1
        try:
            self._terms.create(self._name(self._number), self._body())
        except FileExistsError:
            # It may be ours: an answer that was lost is asked for once more.
            newest = self._newest()
            if newest.said.get("mark") != self.mark:
                raise TakenError(newest.holder) from None
        if not sure:
            # It may have had its last beat at this very moment.
            self._ended.wait(self._pace.valid)
        self._beat()
        newest = self._newest()
        if self._loser or newest.said.get("mark") != self.mark:
            raise TakenError(newest.holder)
        for number in self._numbers():
            if number < self._number:
                self._terms.delete(self._name(number))
        self._thread = threading.Thread(target=self._keep, daemon=True, name="lease")
        self._thread.start()
        return former

    @property
    def loser(self) -> str:
        """Who has taken it from this program; empty as long as nobody has."""
        return self._loser

    def wait_valid(self, stopping: Callable[[], bool]) -> bool:
        """Wait until it is sure that nobody else has the checkpoint.

        Args:
            stopping: ends the wait.

        Returns:
            Whether it is; False when another program has it, or the wait was ended.
        """
        while not self._loser:
            if self._clock() < self._until:
                return True
            if stopping():
                return False
            time.sleep(0.1)
        return False

    def release(self) -> None:
        """Give it back, when nothing writes to the checkpoint any more."""
        self.leave()
        if not self._loser:
            with suppress(OSError):
                self._terms.put(self._name(self._number), self._body(over=True))

    def leave(self) -> None:
        """Look after it no more."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(self._pace.valid)

    def _keep(self) -> None:
        while not self._ended.wait(self._pace.beat) and not self._loser:
            # What a file system refuses now it may take at the next beat.
            with suppress(OSError):
                self._beat()

    def _beat(self) -> None:
        began = self._clock()
        self._beats += 1
        self._terms.put(self._name(self._number), self._body())
        if max(self._numbers(), default=0) != self._number:
            self._loser = self._newest().holder
            return
        self._until = began + self._pace.valid

    def _is_over_after_silence(self, seen: _Term) -> bool:
        """Wait until a program says that it has ended, or says nothing; return whether it did.

        Raises:
            TakenError: it lives.
        """
        until = self._clock() + self._pace.silent
        while self._clock() < until:
            time.sleep(min(1.0, self._pace.beat / 2))
            now = self._newest()
            if now.number == seen.number and now.said.get("over") is True:
                return True
            if now != seen:
                raise TakenError(now.holder)
        return False

    def _newest(self) -> _Term:
        while True:
            number = max(self._numbers(), default=0)
            if not number:
                return _Term(0)
            # Whoever has begun a newer one has deleted it meanwhile.
            with suppress(FileNotFoundError):
                return _Term(number, self._terms.read(self._name(number)))

    def _numbers(self) -> Iterator[int]:
        return (int(name) for name in self._terms.names() if name.isdecimal())

    @staticmethod
    def _name(number: int) -> str:
        return f"{number:010d}"

    def _body(self, over: bool = False) -> bytes:
        found = {"host": socket.gethostname(), "pid": os.getpid(), "mark": self.mark}
        return json.dumps({**found, "beats": self._beats, "over": over}).encode()
