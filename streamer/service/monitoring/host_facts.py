"""Facts of the machine and of the process: cores, memory, load, disk; None where unknown."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_MEMORY_INFO: Final = Path("/proc/meminfo")
_PROCESS_STATUS: Final = Path("/proc/self/status")
_MEMORY_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")
_KILOBYTES: Final = re.compile(r"^(\w+):\s+(\d+) kB$", re.M)


def describe_host(directory: Path) -> dict[str, Any]:
    """Return the facts for JSON; memory and disk are in bytes.

    Args:
        directory: on the disk whose room matters.
    """
    memory = _read_kilobytes(_MEMORY_INFO)
    free = total = None
    try:
        usage = shutil.disk_usage(directory)
        free, total = usage.free, usage.total
    except OSError:
        pass
    return {
        "name": socket.gethostname(),
        "platform": sys.platform,
        "pid": os.getpid(),
        "cores": _count_cores(),
        "load": [round(one, 2) for one in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "memory_total": memory.get("MemTotal"),
        "memory_available": memory.get("MemAvailable"),
        "memory_limit": _read_memory_limit(),
        "process_memory": _read_kilobytes(_PROCESS_STATUS).get("VmRSS"),
        "disk_free": free,
        "disk_total": total,
    }


def _count_cores() -> int | None:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _read_kilobytes(file: Path) -> Mapping[str, int]:
    """Return the entries of a file of the kernel that are kilobytes, in bytes."""
    try:
        text = file.read_text()
    except OSError:
        return {}
    return {match[1]: int(match[2]) * 1024 for match in _KILOBYTES.finditer(text)}


def _read_memory_limit() -> int | None:
    """Return the most memory that the container may have; None where there is no such bound."""
    try:
        return int(_MEMORY_LIMIT.read_text())
    except (OSError, ValueError):
        return None
