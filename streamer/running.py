"""A program that runs beside a worker: it is told messages, and its answers are read.

It is started when it is needed first, kept for as long as the worker lives, and started again after
it has ended. Messages in both directions are parted as a codec says.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, Queue
from typing import IO, Final, NamedTuple

from streamer.permissions import ALL, Permissions

LINES: Final = "lines"
LENGTHS: Final = "length_prefixed_uint32_be"
NETSTRING: Final = "netstring"
CODECS: Final = (LINES, LENGTHS, NETSTRING)

_BLOCK: Final = 64 << 10
# How long lines of an error are collected after the first, as in Benthos.
_ERROR_SECONDS: Final = 1.0
_HELD: Final = 16


class RunError(Exception):
    """The program gave no answer; the text says why."""


class EndedError(RunError):
    """The program has ended before it answered; it will be started again."""

    def __init__(self) -> None:
        super().__init__("type was closed")


class _TooLong(Exception):
    """A program wrote more than is allowed before it came to an end of a message."""


class _Heard(NamedTuple):
    """What was read: an answer, a line of an error, or that nothing will come any more."""

    text: bytes
    error: bool = False
    ended: bool = False


class Program:
    """A program and its pipes. Threads may share it; one at a time is answered."""

    def __init__(
        self,
        command: Sequence[str],
        most: int,
        send: str,
        receive: str,
        permissions: Permissions = ALL,
    ) -> None:
        """Take the command; nothing is started yet.

        Args:
            command: the program and its arguments.
            most: bytes that an answer may have.
            send: how messages are parted that the program gets.
            receive: how those are that it writes.
            permissions: whether it may be run.
        """
        self._command = command
        self._most = most
        self._send = _ENCODERS[send]
        self._receive = receive
        self._permissions = permissions
        self._running: _Running | None = None
        self._lock = threading.Lock()

    def ask(self, text: bytes, log: Callable[[str, str], None]) -> bytes:
        """Send a message, and return the answer.

        Args:
            text: the message; with lines, it holds no line break.
            log: is told level and text of what happens to the program.

        Raises:
            RunError: it could not be started, has ended, or has answered with an error.
        """
        with self._lock:
            if self._running is not None and self._running.has_ended():
                self._buried(log)
            if self._running is None:
                self._running = self._start()
                log("INFO", "Subprocess started")
            try:
                return self._running.ask(self._send(text))
            except EndedError:
                self._buried(log)
                raise

    def close(self) -> None:
        """End the program."""
        with self._lock:
            if self._running is not None:
                self._running.last_words()
                self._running = None

    def _buried(self, log: Callable[[str, str], None]) -> None:
        ended, self._running = self._running, None
        log("WARN", "Subprocess exited")
        for level, said in ended.last_words() if ended is not None else ():
            log(level, said.decode(errors="replace"))

    def _start(self) -> _Running:
        try:
            return _Running(self._command, self._most, self._receive, self._permissions)
        except (OSError, ValueError) as error:
            raise RunError(not_run(self._command[0], error)) from None


class _Running:
    """One start of a program."""

    def __init__(
        self, command: Sequence[str], most: int, receive: str, permissions: Permissions
    ) -> None:
        self._process = permissions.start(command, bufsize=0)
        self._heard: Queue[_Heard] = Queue(_HELD)
        assert self._process.stdout is not None and self._process.stderr is not None
        for stream, codec, error in (
            (self._process.stdout, receive, False),
            (self._process.stderr, LINES, True),
        ):
            threading.Thread(
                target=self._listen, args=(stream, codec, most, error), daemon=True
            ).start()

    def has_ended(self) -> bool:
        """Tell whether the process is gone already."""
        return self._process.poll() is not None

    def ask(self, text: bytes) -> bytes:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            left = memoryview(text)
            while left:
                left = left[stdin.write(left) or 0 :]
        except OSError:
            raise EndedError from None
        heard = self._heard.get()
        if heard.ended:
            raise EndedError
        if not heard.error:
            return heard.text
        until = time.monotonic() + _ERROR_SECONDS
        said = [heard.text]
        with suppress(Empty):
            while (wait := until - time.monotonic()) > 0:
                more = self._heard.get(timeout=wait)
                if more.ended:
                    self._heard.put(_Heard(b"".join(said), error=True))
                    raise EndedError
                if more.error:
                    said.append(more.text)
        raise RunError(b"".join(said).decode(errors="replace"))

    def last_words(self) -> list[tuple[str, bytes]]:
        """End the process; return what it has said unasked, with the levels of the log."""
        self._process.kill()
        said = {False: b"", True: b""}
        with suppress(Empty):
            while True:
                heard = self._heard.get(timeout=0.1)
                said[heard.error] += heard.text
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            with suppress(OSError):
                stream.close()
        levels = (("INFO", said[False]), ("ERROR", said[True]))
        return [(level, text) for level, text in levels if text]

    def _listen(self, stream: IO[bytes], codec: str, most: int, error: bool) -> None:
        with suppress(OSError, ValueError, _TooLong):
            for text in _DECODERS[codec](stream, most):
                self._heard.put(_Heard(text, error))
        self._heard.put(_Heard(b"", ended=True))


def not_run(program: str, error: Exception) -> str:
    """Return why a program could not be started, as Go tells it."""
    if not isinstance(error, OSError):
        return str(error)
    if isinstance(error, FileNotFoundError) and "/" not in program:
        return f'exec: "{program}": executable file not found in $PATH'
    return f"fork/exec {program}: {os.strerror(error.errno or 0).lower()}"


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    while block := stream.read(_BLOCK):
        yield block


def _lines(stream: IO[bytes], most: int) -> Iterator[bytes]:
    held = b""
    for block in _blocks(stream):
        *whole, held = (held + block).split(b"\n")
        for line in whole:
            if len(line) >= most:
                raise _TooLong
            yield line.removesuffix(b"\r")
        if len(held) >= most:
            raise _TooLong
    if held:
        yield held.removesuffix(b"\r")


def _prefixed(stream: IO[bytes], most: int) -> Iterator[bytes]:
    held = b""
    for block in _blocks(stream):
        held += block
        while len(held) >= 4:
            end = 4 + int.from_bytes(held[:4], "big")
            if end > most:
                raise _TooLong
            if len(held) < end:
                break
            yield held[4:end]
            held = held[end:]


def _netstrings(stream: IO[bytes], most: int) -> Iterator[bytes]:
    held = b""
    for block in _blocks(stream):
        held += block
        while b":" in held:
            length, _, rest = held.partition(b":")
            if not length.isdigit() or len(length) + int(length) + 2 > most:
                raise _TooLong
            size = int(length)
            if len(rest) <= size:
                break
            if rest[size : size + 1] != b",":
                raise _TooLong
            yield rest[:size]
            held = rest[size + 1 :]


_ENCODERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    LINES: lambda text: text + b"\n",
    LENGTHS: lambda text: len(text).to_bytes(4, "big") + text,
    NETSTRING: lambda text: b"%d:%s," % (len(text), text),
}
_DECODERS: Final[dict[str, Callable[[IO[bytes], int], Iterator[bytes]]]] = {
    LINES: _lines,
    LENGTHS: _prefixed,
    NETSTRING: _netstrings,
}
