"""Several hosts on one machine: network namespaces of Linux, joined by a bridge, each with a link
that can be cut.

The bridge is in a namespace of its own, so nothing of it is seen in the machine's own network, and
every run has the same addresses. Names carry the process that made them: what a run has left that
was killed goes when the next one begins.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers import installed

_NAMES = Path("/run/netns")
_NET = 0x40000000
"""CLONE_NEWNET of Linux."""
_MARK = "streamer"


@dataclass(frozen=True)
class Hosts:
    """Hosts that reach each other, and nobody else.

    Attributes:
        mark: what the names of their namespaces begin with.
        names: the hosts', in the order of their addresses.
    """

    mark: str
    names: tuple[str, ...]

    def address(self, name: str) -> str:
        """Return a host's IP address."""
        return f"10.77.0.{self.names.index(name) + 1}"

    def inside(self, name: str) -> list[str]:
        """Return what stands before a command that is to run on a host; it keeps its process id."""
        return ["nsenter", f"--net={_NAMES / self._namespace(name)}"]

    @contextmanager
    def entered(self, name: str) -> Iterator[None]:
        """Let this thread, and what it starts, be on a host until the block ends."""
        with Path("/proc/thread-self/ns/net").open() as before:
            with (_NAMES / self._namespace(name)).open() as there:
                _enter(there.fileno())
            try:
                yield
            finally:
                _enter(before.fileno())

    def cut(self, name: str) -> None:
        """Cut a host off: what it sends is lost without a word, and so is what is sent to it."""
        _ip("-n", f"{self.mark}-switch", "link", "set", self._plug(name), "nomaster")

    def mend(self, name: str) -> None:
        """Connect it again."""
        _ip("-n", f"{self.mark}-switch", "link", "set", self._plug(name), "master", "switch")

    def _namespace(self, name: str) -> str:
        return f"{self.mark}-{name}"

    def _plug(self, name: str) -> str:
        return f"plug-{self.names.index(name) + 1}"

    def _begin(self) -> None:
        switch = f"{self.mark}-switch"
        _ip("netns", "add", switch)
        _ip("-n", switch, "link", "add", "switch", "type", "bridge")
        _ip("-n", switch, "link", "set", "switch", "up")
        for name in self.names:
            within, plug = self._namespace(name), self._plug(name)
            _ip("netns", "add", within)
            ends = ["type", "veth", "peer", "name", "eth0", "netns", within]
            _ip("link", "add", plug, "netns", switch, *ends)
            _ip("-n", switch, "link", "set", plug, "master", "switch", "up")
            _ip("-n", within, "addr", "add", f"{self.address(name)}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", within, "link", "set", device, "up")


@contextmanager
def hosts(names: Sequence[str]) -> Iterator[Hosts]:
    """Make hosts that can be cut off; when the block ends, what still runs on them is killed.

    Where that is not allowed, the test is skipped: it takes a right that cannot be installed, and
    that some containers of continuous integration do not have.

    Args:
        names: the hosts'.
    """
    installed("iproute2", "ip")
    installed("util-linux", "nsenter")
    _sweep()
    made = Hosts(f"{_MARK}-{os.getpid()}-{secrets.token_hex(3)}", tuple(names))
    try:
        try:
            made._begin()
        except subprocess.CalledProcessError as e:
            said = f"no network namespaces can be made: {e.stderr.strip()}"
            pytest.skip(f"{said}; it takes root with CAP_SYS_ADMIN and CAP_NET_ADMIN")
        yield made
    finally:
        _remove(f"{made.mark}-*")


def _enter(namespace: int) -> None:
    # Python has it as `os.setns` from 3.12 on.
    if ctypes.CDLL(None, use_errno=True).setns(namespace, _NET):
        raise OSError(ctypes.get_errno(), "a network namespace cannot be entered")


def _sweep() -> None:
    """Remove what runs have left that were killed."""
    for path in _NAMES.glob(f"{_MARK}-*-switch"):
        mark, maker = path.name.removesuffix("-switch"), path.name.split("-")[1]
        if maker.isdecimal() and not Path("/proc", maker).exists():
            _remove(f"{mark}-*")


def _remove(pattern: str) -> None:
    # The switch goes last: by its name a later run finds what this one could not remove.
    found = sorted(_NAMES.glob(pattern), key=lambda path: path.name.endswith("-switch"))
    for path in found:
        until = time.monotonic() + 10
        while (pids := _ip("netns", "pids", path.name).split()) and time.monotonic() < until:
            for pid in pids:
                # SIGKILL, since some may have been stopped.
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.05)
        _ip("netns", "del", path.name)


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True)
    return done.stdout
