"""A program that runs beside a worker: it is sent messages, and its answers are read.

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

from streamer.core.permissions import ALL, Permissions

LINES: Final = "lines"
LENGTH_PREFIXED: Final = "length_prefixed_uint32_be"
NETSTRING: Final = "netstring"
CODECS: Final = (LINES, LENGTH_PREFIXED, NETSTRING)

_BLOCK_BYTES: Final = 64 << 10
# How long lines of an error are collected after the first, as in Benthos.
_STDERR_WAIT_S: Final = 1.0
_QUEUE_CHUNKS: Final = 16


class RunError(Exception):
    """The program gave no answer; the text says why."""


class ProcessEndedError(RunError):
    """The program has ended before it answered; it will be started again."""

    def __init__(self) -> None:
        super().__init__("type was closed")


class _MessageTooLongError(Exception):
    """A program wrote more than is allowed before it came to an end of a message."""


class _Chunk(NamedTuple):
    """A read from the process: an answer, a line of an error, or the end."""

    text: bytes
    error: bool = False
    ended: bool = False


class SubprocessClient:
    """A program and its pipes. Threads may share it; one at a time is answered."""

    def __init__(
        self,
        command: Sequence[str],
        max_bytes: int,
        send: str,
        receive: str,
        permissions: Permissions = ALL,
    ) -> None:
        """Take the command; nothing is started yet.

        Args:
            command: the program and its arguments.
            max_bytes: bytes that an answer may have.
            send: how messages are parted that the program gets.
            receive: how those are that it writes.
            permissions: whether it may be run.
        """
        self._command = command
        self._max_bytes = max_bytes
        self._send = _ENCODERS[send]
        self._receive = receive
        self._permissions = permissions
        self._process: _Process | None = None
        self._lock = threading.Lock()

    def request(self, text: bytes, log: Callable[[str, str], None]) -> bytes:
        """Send a message, and return the answer.

        Args:
            text: the message; with lines, it holds no line break.
            log: is told level and text of what happens to the program.

        Raises:
            RunError: it could not be started, has ended, or has answered with an error.
        """
        with self._lock:
            if self._process is not None and self._process.has_ended():
                self._reap(log)
            if self._process is None:
                self._process = self._start()
                log("INFO", "Subprocess started")
            try:
                return self._process.request(self._send(text))
            except ProcessEndedError:
                self._reap(log)
                raise

    def close(self) -> None:
        """End the program."""
        with self._lock:
            if self._process is not None:
                self._process.terminate()
                self._process = None

    def _reap(self, log: Callable[[str, str], None]) -> None:
        ended, self._process = self._process, None
        log("WARN", "Subprocess exited")
        for level, output in ended.terminate() if ended is not None else ():
            log(level, output.decode(errors="replace"))

    def _start(self) -> _Process:
        try:
            return _Process(self._command, self._max_bytes, self._receive, self._permissions)
        except (OSError, ValueError) as error:
            raise RunError(start_error_text(self._command[0], error)) from None


class _Process:
    """One start of a program."""

    def __init__(
        self, command: Sequence[str], max_bytes: int, receive: str, permissions: Permissions
    ) -> None:
        self._popen = permissions.start(command, bufsize=0)
        self._chunks: Queue[_Chunk] = Queue(_QUEUE_CHUNKS)
        assert self._popen.stdout is not None and self._popen.stderr is not None
        for stream, codec, error in (
            (self._popen.stdout, receive, False),
            (self._popen.stderr, LINES, True),
        ):
            threading.Thread(
                target=self._read_chunks, args=(stream, codec, max_bytes, error), daemon=True
            ).start()

    def has_ended(self) -> bool:
        """Return whether the process is gone already."""
        return self._popen.poll() is not None

    def request(self, text: bytes) -> bytes:
        stdin = self._popen.stdin
        assert stdin is not None
        try:
            left = memoryview(text)
            while left:
                left = left[stdin.write(left) or 0 :]
        except OSError:
            raise ProcessEndedError from None
        chunk = self._chunks.get()
        if chunk.ended:
            raise ProcessEndedError
        if not chunk.error:
            return chunk.text
        until = time.monotonic() + _STDERR_WAIT_S
        errors = [chunk.text]
        with suppress(Empty):
            while (wait := until - time.monotonic()) > 0:
                more = self._chunks.get(timeout=wait)
                if more.ended:
                    self._chunks.put(_Chunk(b"".join(errors), error=True))
                    raise ProcessEndedError
                if more.error:
                    errors.append(more.text)
        raise RunError(b"".join(errors).decode(errors="replace"))

    def terminate(self) -> list[tuple[str, bytes]]:
        """End the process; return its unread output, with the levels of the log."""
        self._popen.kill()
        output = {False: b"", True: b""}
        with suppress(Empty):
            while True:
                chunk = self._chunks.get(timeout=0.1)
                output[chunk.error] += chunk.text
        self._popen.wait()
        for stream in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            assert stream is not None
            with suppress(OSError):
                stream.close()
        levels = (("INFO", output[False]), ("ERROR", output[True]))
        return [(level, text) for level, text in levels if text]

    def _read_chunks(self, stream: IO[bytes], codec: str, max_bytes: int, error: bool) -> None:
        with suppress(OSError, ValueError, _MessageTooLongError):
            for text in _DECODERS[codec](stream, max_bytes):
                self._chunks.put(_Chunk(text, error))
        self._chunks.put(_Chunk(b"", ended=True))


def start_error_text(program: str, error: Exception) -> str:
    """Return why a program could not be started, as Go tells it."""
    if not isinstance(error, OSError):
        return str(error)
    if isinstance(error, FileNotFoundError) and "/" not in program:
        return f'exec: "{program}": executable file not found in $PATH'
    return f"fork/exec {program}: {os.strerror(error.errno or 0).lower()}"


def _read_blocks(stream: IO[bytes]) -> Iterator[bytes]:
    while block := stream.read(_BLOCK_BYTES):
        yield block


def _decode_lines(stream: IO[bytes], max_bytes: int) -> Iterator[bytes]:
    buffer = b""
    for block in _read_blocks(stream):
        *whole, buffer = (buffer + block).split(b"\n")
        for line in whole:
            if len(line) >= max_bytes:
                raise _MessageTooLongError
            yield line.removesuffix(b"\r")
        if len(buffer) >= max_bytes:
            raise _MessageTooLongError
    if buffer:
        yield buffer.removesuffix(b"\r")


def _decode_length_prefixed(stream: IO[bytes], max_bytes: int) -> Iterator[bytes]:
    buffer = b""
    for block in _read_blocks(stream):
        buffer += block
        while len(buffer) >= 4:
            end = 4 + int.from_bytes(buffer[:4], "big")
            if end > max_bytes:
                raise _MessageTooLongError
            if len(buffer) < end:
                break
            yield buffer[4:end]
            buffer = buffer[end:]


def _decode_netstrings(stream: IO[bytes], max_bytes: int) -> Iterator[bytes]:
    buffer = b""
    for block in _read_blocks(stream):
        buffer += block
        while b":" in buffer:
            length, _, rest = buffer.partition(b":")
            if not length.isdigit() or len(length) + int(length) + 2 > max_bytes:
                raise _MessageTooLongError
            size = int(length)
            if len(rest) <= size:
                break
            if rest[size : size + 1] != b",":
                raise _MessageTooLongError
            yield rest[:size]
            buffer = rest[size + 1 :]


_ENCODERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    LINES: lambda text: text + b"\n",
    LENGTH_PREFIXED: lambda text: len(text).to_bytes(4, "big") + text,
    NETSTRING: lambda text: b"%d:%s," % (len(text), text),
}
_DECODERS: Final[dict[str, Callable[[IO[bytes], int], Iterator[bytes]]]] = {
    LINES: _decode_lines,
    LENGTH_PREFIXED: _decode_length_prefixed,
    NETSTRING: _decode_netstrings,
}
