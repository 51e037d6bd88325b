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

from streamer.errors import StreamerError
from streamer.landing.cutting import pour
from streamer.landing.landed import Landed
from streamer.landing.lander import Lander, StoppedError, connected
from streamer.landing.store import Store
from streamer.message import Execution
from streamer.permissions import ALL, Permissions
from streamer.scanners.lines import LineScanner
from streamer.source.opening import Room
from streamer.spec import Access, BuildContext, Field, Kind, Parsed, Spec

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
        "The command runs on the driver, once; the input ends with it, unless `restart_on_exit` is "
        "set. What it prints to its standard error is logged. It has the program's environment and "
        "working directory. A command that was cut off by a crash is run again from its beginning "
        "at the next start, one that had ended is not."
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
            "How what it prints is cut into messages.",
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


class _Printed:
    """What a command prints, as a stream of bytes."""

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

    def opened(self, room: Room) -> Landed:
        """Run the command; return what has landed."""
        store = Store(room.directory, room.spool_limit)
        if store.was_closed and not self.restarts:
            store.close()
        else:
            room.start("subprocess", lambda: self._run(room, store))
        return Landed(room.directory, self.scanner, self.command[0], inside=not room.local)

    def probe(self) -> str:
        """Look whether there is such a command; see `Probing`."""
        found = shutil.which(self.command[0])
        if found is None:
            raise StreamerError(
                f"there is no command {self.command[0]!r}; install it, or name it with its path"
            )
        return found

    def _run(self, room: Room, store: Store) -> None:
        lander = Lander(room, store)
        now: list[subprocess.Popen[bytes]] = []
        ran = False

        def kill() -> None:
            for running in now:
                with suppress(OSError):
                    running.kill()

        room.on_stop(kill)

        def attempt(up: Callable[[], None]) -> None:
            nonlocal ran
            now[:] = [self._begun()]
            up()
            self._received(room, lander, now[0])
            ran = True
            if not self.restarts:
                raise StoppedError

        connected(room, "subprocess", attempt)
        if ran and not room.stopping:
            store.close()

    def _begun(self) -> subprocess.Popen[bytes]:
        return self.permissions.start(self.command, stdin=subprocess.DEVNULL)

    def _received(self, room: Room, lander: Lander, running: subprocess.Popen[bytes]) -> None:
        ex = Execution(time.time_ns, room.log, room.count)
        assert running.stdout is not None and running.stderr is not None
        errors = running.stderr
        thread = threading.Thread(target=_log_lines, args=(room, errors), daemon=True)
        thread.start()
        try:
            pour(_Printed(running.stdout), self.scanner, self.command[0], ex, lander.put)
        finally:
            running.kill()
            running.wait()
            thread.join()
            running.stdout.close()
            errors.close()


def _log_lines(room: Room, pipe: IO[bytes]) -> None:
    for line in pipe:
        text = line.decode(errors="replace").rstrip("\r\n")
        room.log("ERROR", f"Failed to read message: {text}", {})


def build(parsed: Parsed, context: BuildContext) -> SubprocessInput:
    """Take the fields; the command runs once the input is opened."""
    scanner = LineScanner(max_buffer_size=parsed[MAX_BUFFER])
    command = (parsed[NAME], *parsed[ARGS])
    return SubprocessInput(command, parsed[RESTART_ON_EXIT], scanner, parsed.permissions)
