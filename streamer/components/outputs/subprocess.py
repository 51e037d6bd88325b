"""`subprocess`: "executes a command, runs it as a subprocess, and writes messages to it".

"The process is expected to terminate gracefully when stdin is closed." One that ends before is
started again.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections import deque
from typing import IO, Final

from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.core.permissions import ALL, Permissions
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.output.protocols import NotConnectedError, Output, SendError
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

NAME: Final = "name"
ARGS: Final = "args"
CODEC: Final = "codec"

_MAX_KEPT_BLOCKS: Final = 16
_BLOCK_BYTES: Final = 4 << 10

SPEC: Final = Spec(
    Kind.OUTPUT,
    "subprocess",
    "Runs a command and writes messages to its standard input, a line for each.",
    description=(
        "Each worker has a process of its own, with the worker's environment and directory, which "
        "lasts as long as the worker. When it ends by itself, its exit code and the end of what it "
        "has written to its standard error are logged, and it is started again. A message counts "
        "as sent when it is written to the pipe."
    ),
    status="beta",
    fields=(
        Field(
            NAME,
            "string",
            "The command.",
            access=Access.PROGRAM,
            check=lambda name: None if name else "is empty; expected a command",
            examples=("cat",),
        ),
        Field(ARGS, "string", "Its arguments.", access=Access.NONE, default=(), shape="array"),
        Field(
            CODEC,
            "string",
            "Separation of messages: `lines` writes a line break after each.",
            default="lines",
            options=("lines",),
        ),
    ),
    examples=(
        Example(
            "Sort into a file",
            "output:\n  subprocess:\n    name: sort\n    args: [ -o, sorted.txt ]\n",
        ),
    ),
    categories=("Utility",),
)


class OutputProcess:
    """A process of one worker, which is started when it is needed."""

    def __init__(self, command: list[str], permissions: Permissions = ALL) -> None:
        self._command = command
        self._permissions = permissions
        self._popen: subprocess.Popen[bytes] | None = None
        self._output: dict[str, deque[bytes]] = {}
        self._readers: list[threading.Thread] = []

    def start(self) -> None:
        """Start the program, unless it runs.

        Raises:
            OSError: there is no such command.
        """
        if self._popen is not None:
            return
        self._popen = self._permissions.start(self._command)
        self._output = {}
        self._readers = []
        for name, stream in (("stdout", self._popen.stdout), ("stderr", self._popen.stderr)):
            assert stream is not None
            self._output[name] = deque(maxlen=_MAX_KEPT_BLOCKS)
            reader = threading.Thread(
                target=_keep_end, args=(stream, self._output[name]), daemon=True, name=name
            )
            reader.start()
            self._readers.append(reader)

    def write(self, data: bytes) -> None:
        """Write bytes to its standard input.

        Raises:
            NotConnectedError: it does not run.
            OSError: it has ended meanwhile.
        """
        if self._popen is None or self._popen.poll() is not None:
            raise NotConnectedError("the process has ended" if self._popen else "not started")
        assert self._popen.stdin is not None
        self._popen.stdin.write(data)
        self._popen.stdin.flush()

    def exit_report(self) -> tuple[int, str, str] | None:
        """Return the exit code of a process that has ended, and the ends of its output and errors.

        It can be started again then. None when it runs, or was not started.
        """
        running = self._popen
        if running is None or running.poll() is None:
            return None
        for reader in self._readers:
            # What it has started itself may go on, and hold its end of the pipe.
            reader.join(1.0)
        with contextlib.suppress(OSError):
            self._close(running)
        self._popen = None
        out, err = (b"".join(self._output[name]).decode(errors="replace") for name in self._output)
        return running.returncode, out, err

    def _close(self, running: subprocess.Popen[bytes]) -> None:
        for stream in (running.stdin, running.stdout, running.stderr):
            if stream is not None:
                stream.close()

    def __del__(self) -> None:
        """Close its standard input, which ends it."""
        if self._popen is not None and self._popen.stdin is not None:
            with contextlib.suppress(OSError):
                self._popen.stdin.close()


def _keep_end(stream: IO[bytes], output: deque[bytes]) -> None:
    """Read all that a process says, and keep the end of it."""
    with contextlib.suppress(ValueError, OSError):
        while block := stream.read1(_BLOCK_BYTES):  # type: ignore[attr-defined]
            output.append(block)


class SubprocessOutput(Output):
    """Writes messages to a process."""

    def __init__(self, process: OutputProcess, origin: ComponentRef) -> None:
        self._process = process
        self._origin = origin

    def connect(self, ex: Execution) -> None:
        """Start the process; it may run since an earlier task. Say how the last one has ended."""
        self._report_exit(ex)
        try:
            self._process.start()
        except OSError as error:
            raise SendError(str(error)) from None

    def send(self, batch: Batch, ex: Execution) -> None:
        """Write a batch, line by line."""
        try:
            self._process.write(b"".join(message.raw + b"\n" for message in batch))
        except OSError as error:
            self._report_exit(ex)
            raise SendError(str(error)) from None

    def _report_exit(self, ex: Execution) -> None:
        ended = self._process.exit_report()
        if ended is None:
            return
        code, out, err = ended
        self._origin.log(ex, "DEBUG", f"Process exited with: {out}" if out else "Process exited")
        if code:
            text = f"with error: {err}" if err else f"with code {code}"
            self._origin.log(ex, "ERROR", f"Process exited {text}")


def build(parsed: ParsedFields, context: BuildContext) -> SubprocessOutput:
    """Take the worker's process, which is not started yet."""
    process = context.worker_resource(
        "process", lambda: OutputProcess([parsed[NAME], *parsed[ARGS]], parsed.permissions)
    )
    return SubprocessOutput(process, ComponentRef(context.component))
