"""The `subprocess` input: "Executes a command and consumes messages from it over stdout".

What the command prints is on disk, in the spool of the checkpoint, before it counts as received.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Final

from streamer.components.scanners.lines import LineScanner
from streamer.connectors.spool.scan_bytes import scan_into_spool
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.spool_writer import (
    SpoolWriter,
    StreamStoppedError,
    connect_with_retry,
)
from streamer.connectors.spool.store import SpoolStore
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.permissions import ALL, Permissions
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import Access, BuildContext, Field, Kind, ParsedFields, Spec

NAME: Final = "name"
ARGS: Final = "args"
CODEC: Final = "codec"
RESTART_ON_EXIT: Final = "restart_on_exit"
MAX_BUFFER: Final = "max_buffer"

SPEC: Final = Spec(
    Kind.INPUT,
    "subprocess",
    "Runs a command and makes a message of each line that it prints.",
    description=(
        "The command runs on the driver, once; the input ends with it, unless "
        "`restart_on_exit` is set. Its standard error is logged. It has the program's "
        "environment and working directory. A command that a crash interrupted runs again "
        "from its beginning at the next start; an ended command does not."
    ),
    status="beta",
    fields=(
        Field(
            NAME, "string", "The command.", access=Access.PROGRAM, examples=("cat", "sed", "awk")
        ),
        Field(ARGS, "string", "Its arguments.", access=Access.NONE, default=(), shape="array"),
        Field(
            CODEC,
            "string",
            "Division of its output into messages.",
            default="lines",
            options=("lines",),
        ),
        Field(
            RESTART_ON_EXIT,
            "bool",
            "Run the command again each time that it ends.",
            default=False,
        ),
        Field(
            MAX_BUFFER,
            "int",
            "The most bytes of a line; longer ones are left out.",
            default=65_536,
            advanced=True,
            check=lambda size: None if size > 0 else f"is {size}; expected a number above 0",
        ),
    ),
    categories=("Utility",),
    delivery="at most once until it is on the driver's disk, at least once from there on",
)


class _OutputStream:
    """The output of a command, as a stream of bytes."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe

    def read(self, size: int, /) -> bytes:
        """Return what there is; nothing at the end."""
        return self._pipe.read1(size)  # type: ignore[attr-defined, no-any-return]


@dataclass(frozen=True)
class SubprocessInput:
    """The input before it is opened.

    Attributes:
        command: the command and its arguments.
        restarts: whether it is run again each time that it ends.
        scanner: cuts what it prints.
        permissions: whether it may be run.
    """

    command: tuple[str, ...]
    restarts: bool
    scanner: LineScanner
    permissions: Permissions = ALL

    def open(self, context: InputContext) -> SpoolSource:
        """Run the command; return the source of what the spool holds."""
        store = SpoolStore.for_input(context)
        if store.was_ended and not self.restarts:
            store.close()
        else:
            context.start("subprocess", lambda: self._run(context, store))
        return SpoolSource(
            context.directory, self.scanner, self.command[0], inline=not context.is_local
        )

    def probe(self) -> str:
        """Check that there is such a command; see `SupportsProbe`."""
        program = shutil.which(self.command[0])
        if program is None:
            raise StreamerError(
                f"there is no command {self.command[0]!r}; install it, or name it with its path"
            )
        return program

    def _run(self, context: InputContext, store: SpoolStore) -> None:
        writer = SpoolWriter(context, store)
        now: list[subprocess.Popen[bytes]] = []
        ran = False

        def kill() -> None:
            for running in now:
                with suppress(OSError):
                    running.kill()

        context.on_stop(kill)

        def attempt(up: Callable[[], None]) -> None:
            nonlocal ran
            now[:] = [self._start_process()]
            up()
            self._receive(context, writer, now[0])
            ran = True
            if not self.restarts:
                raise StreamStoppedError

        connect_with_retry(context, "subprocess", attempt)
        if ran and not context.stopping:
            store.close()

    def _start_process(self) -> subprocess.Popen[bytes]:
        return self.permissions.start(self.command, stdin=subprocess.DEVNULL)

    def _receive(
        self, context: InputContext, writer: SpoolWriter, running: subprocess.Popen[bytes]
    ) -> None:
        ex = Execution(time.time_ns, context.log, context.count)
        assert running.stdout is not None and running.stderr is not None
        errors = running.stderr
        thread = threading.Thread(target=_log_lines, args=(context, errors), daemon=True)
        thread.start()
        try:
            scan_into_spool(
                _OutputStream(running.stdout), self.scanner, self.command[0], ex, writer.put
            )
        finally:
            running.kill()
            running.wait()
            thread.join()
            running.stdout.close()
            errors.close()


def _log_lines(context: InputContext, pipe: IO[bytes]) -> None:
    for line in pipe:
        text = line.decode(errors="replace").rstrip("\r\n")
        context.log("ERROR", f"Failed to read message: {text}", {})


def build(parsed: ParsedFields, context: BuildContext) -> SubprocessInput:
    """Take the fields; the command runs once the input is opened."""
    scanner = LineScanner(max_buffer_size=parsed[MAX_BUFFER])
    command = (parsed[NAME], *parsed[ARGS])
    return SubprocessInput(command, parsed[RESTART_ON_EXIT], scanner, parsed.permissions)
