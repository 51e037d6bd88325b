"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from streamer.spark.jvm.java import find_java


def java_home() -> Path:
    """The Java that the product would take."""
    return Path(find_java(os.environ).home)


def describe() -> str:
    """One line: cores, processor, memory, load, versions."""
    cpu = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    total = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())
    memory = f"{int(total.group(1)) / 2**20:.0f} GiB" if total else "memory unknown"
    said = subprocess.run([java_home() / "bin/java", "-version"], capture_output=True, text=True)
    java = re.search(r'version "([^"]+)"', said.stderr)
    facts = [
        f"{len(os.sched_getaffinity(0))} cores",
        cpu.group(1) if cpu else platform.machine(),
        memory,
        f"load {os.getloadavg()[0]:.1f}",
        f"Linux {platform.release()}",
        f"Python {platform.python_version()}",
        f"Java {java.group(1) if java else 'unknown'}",
        *(f"{name} {_version(name)}" for name in ("pyspark", "pyarrow", "bytewax")),
    ]
    return ", ".join(facts)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(none)"
