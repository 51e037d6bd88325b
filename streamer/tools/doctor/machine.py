"""Checks of the machine: Java, memory, cores, disk, a port, the clock."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from streamer.core.durations import SECOND, format_duration
from streamer.core.extras import install_command
from streamer.tools.doctor.diagnosis import Diagnosis, Severity

_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
_NEEDED_MEMORY: Final = 1536 * _MIB
"""A JVM with a heap of 1 GiB, and the Python of the driver."""
_COMFORTABLE_MEMORY: Final = 3 * _GIB
"""The same with two workers that keep windows."""
_NEEDED_DISK: Final = 100 * _MIB
_COMFORTABLE_DISK: Final = 2 * _GIB
_MIN_YEAR: Final = 2026
_CLOCK_SAMPLE_S: Final = 0.2
_MAX_STEP_NS: Final = SECOND // 20
_PROBE_TIMEOUT_S: Final = 1.0
_PORT_REMEDY: Final = "stop what listens there, or choose another: -s http.address=127.0.0.1:{}"


def check_java(env: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Find the Java that Spark would run on."""
    from streamer.spark.jvm.java import MIN_JAVA_VERSION, NoJavaError, find_java

    try:
        java = find_java(env)
    except NoJavaError as e:
        reason, _, remedy = str(e).partition(". ")
        remedy = remedy.rstrip(".").replace("Install", "install", 1)
        yield Diagnosis("java", Severity.ERROR, reason, remedy)
        return
    detail = f"Java {java.version} at {java.runtime}, from {java.source}"
    home = env.get("JAVA_HOME")
    if home and java.source != "JAVA_HOME":
        yield Diagnosis(
            "java",
            Severity.WARNING,
            f"{detail}; JAVA_HOME={home} has none of version {MIN_JAVA_VERSION} or newer",
            f"correct JAVA_HOME, or unset it; {install_command('java')} brings a Java",
        )
        return
    yield Diagnosis("java", Severity.OK, detail)


def check_memory(root: Path = Path("/")) -> Iterator[Diagnosis]:
    """Compare the memory that is free with what Spark and Python take.

    Args:
        root: where `proc` and `sys` are.
    """
    available, limited = _read_available_memory(root)
    if available is None:
        yield Diagnosis("memory", Severity.NONE, "not known on this system")
        return
    detail = f"{_format_size(available)} free{' of the container' if limited else ''}"
    remedy = "end other programs, raise the container's limit, or take a larger machine"
    if available < _NEEDED_MEMORY:
        needed = f"{detail}; Spark's JVM and Python take {_format_size(_NEEDED_MEMORY)}"
        yield Diagnosis("memory", Severity.ERROR, needed, remedy)
    elif available < _COMFORTABLE_MEMORY:
        yield Diagnosis("memory", Severity.WARNING, f"{detail}: enough for small windows", remedy)
    else:
        yield Diagnosis("memory", Severity.OK, detail)


def _read_available_memory(root: Path) -> tuple[int | None, bool]:
    """Return the bytes that are free, and whether a container's limit is what bounds them."""
    available: int | None = None
    with suppress(OSError, ValueError, StopIteration):
        lines = (root / "proc/meminfo").read_text().splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        available = int(line.split()[1]) * 1024
    with suppress(OSError, ValueError):
        group = root / "sys/fs/cgroup"
        limit = int((group / "memory.max").read_text())
        left = limit - int((group / "memory.current").read_text())
        if available is None or left < available:
            return max(left, 0), True
    return available, False


def check_cores(root: Path = Path("/")) -> Iterator[Diagnosis]:
    """Count the cores that this process may use.

    Args:
        root: where `sys` is.
    """
    from streamer.plan.plan import count_cores

    cores = count_cores("local[*]")
    with suppress(OSError, ValueError):
        quota, period = (root / "sys/fs/cgroup/cpu.max").read_text().split()
        share = int(quota) / int(period)
        if share < cores:
            detail = f"{cores}, of which the container may use {share:g}"
            remedy = "raise the container's limit, or say spark.master: local[N] for fewer tasks"
            yield Diagnosis("cores", Severity.WARNING, detail, remedy)
            return
    if cores == 1:
        yield Diagnosis("cores", Severity.WARNING, "1: micro-batches take longer", "use two")
        return
    yield Diagnosis("cores", Severity.OK, str(cores))


def check_disk(
    directory: Path, usage: Callable[[Path], tuple[int, int, int]] = shutil.disk_usage
) -> Iterator[Diagnosis]:
    """Check the disk that a directory is on, or would be.

    Args:
        directory: the directory; it need not be there.
        usage: gives total, used and free bytes.
    """
    existing = directory.absolute()
    while not existing.exists():
        existing = existing.parent
    free = usage(existing)[2]
    detail = f"{_format_size(free)} free at {existing}"
    remedy = "make room, or name another place with --checkpoint"
    if not os.access(existing, os.W_OK | os.X_OK):
        text = f"{existing} cannot be written"
        yield Diagnosis("disk", Severity.ERROR, text, f"change its owner, {remedy[11:]}")
    elif os.statvfs(existing).f_files and not os.statvfs(existing).f_favail:
        yield Diagnosis("disk", Severity.ERROR, f"no inode is free at {existing}", remedy)
    elif free < _NEEDED_DISK:
        yield Diagnosis("disk", Severity.ERROR, detail, remedy)
    elif free < _COMFORTABLE_DISK:
        yield Diagnosis("disk", Severity.WARNING, detail, remedy)
    else:
        yield Diagnosis("disk", Severity.OK, detail)


def check_port(address: str, is_named: bool) -> Iterator[Diagnosis]:
    """Check that nobody listens where the HTTP server would.

    Args:
        address: `HOST:PORT`.
        is_named: whether the config names it; a stream starts without a server otherwise.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]") or "0.0.0.0"  # noqa: S104 - it is looked at, and closed again
    try:
        with closing(socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, int(port)))
    except (OSError, ValueError) as e:
        reason = (getattr(e, "strerror", "") or str(e)).lower()
        if _is_streamer(host, port):
            reason = "another streamer listens there"
        severity = Severity.ERROR if is_named else Severity.WARNING
        detail = f"{address} cannot be listened to: {reason}"
        if not is_named:
            detail += "; a stream would run without an HTTP server"
        free = _PORT_REMEDY.format(int(port) + 1 if port.isdecimal() else "4196")
        yield Diagnosis("port", severity, detail, free)
        return
    yield Diagnosis("port", Severity.OK, f"{address} is free")


def _is_streamer(host: str, port: str) -> bool:
    with suppress(OSError, HTTPException, ValueError):
        connection = HTTPConnection(host, int(port), timeout=_PROBE_TIMEOUT_S)
        with closing(connection):
            connection.request("GET", "/ping")
            return connection.getresponse().read(16) == b"pong"
    return False


def check_clock(
    wall: Callable[[], int] = time.time_ns,
    steady: Callable[[], int] = time.monotonic_ns,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Diagnosis]:
    """Check that the clock is of this age, that nobody sets it just now, and that zones are known.

    Args:
        wall: the machine's clock, ns.
        steady: a clock that cannot be set, ns.
        sleep: waits for seconds.
    """
    before = wall() - steady()
    sleep(_CLOCK_SAMPLE_S)
    now = wall()
    step = now - steady() - before
    shown = datetime.fromtimestamp(now // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    remedy = "let NTP set it (systemd-timesyncd, chrony), slowly instead of by steps"
    if int(shown[:4]) < _MIN_YEAR:
        text = f"it says {shown}: windows of the system's clock would be wrong"
        yield Diagnosis("clock", Severity.ERROR, text, remedy)
    elif abs(step) > _MAX_STEP_NS:
        size = format_duration(abs(step) // (SECOND // 1000) * (SECOND // 1000))
        text = (
            f"it was set {'forward' if step > 0 else 'back'} by {size} within {_CLOCK_SAMPLE_S} s"
        )
        yield Diagnosis("clock", Severity.WARNING, text, remedy)
    else:
        yield Diagnosis("clock", Severity.OK, shown)


def check_time_zones(name: str = "Europe/Berlin") -> Iterator[Diagnosis]:
    """Check that time zones are known by their names."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError):
        yield Diagnosis(
            "time zones",
            Severity.ERROR,
            f"there is no {name}: windows of local days and mappings with zones fail",
            "pip install tzdata, or the system's package tzdata",
        )
        return
    yield Diagnosis("time zones", Severity.OK, "known")


def _format_size(count: int) -> str:
    return f"{count / _GIB:.1f} GiB" if count >= _GIB else f"{count // _MIB} MiB"
