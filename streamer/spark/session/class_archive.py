"""An archive of the classes that Spark loads at a start, so that the JVM need not load them anew.

A start loads 17,000 classes: Java reads, parses and links each, 2 s of a start on two cores. Java
can write them to a file as they lie in memory and map that file at the next start: an AOT cache
(`-XX:AOTCache`) from Java 25 on, a class data sharing archive (`-XX:SharedArchiveFile`) before.

One archive is kept for each combination of Java, PySpark and Spark's jars, in the user's cache
directory, never in a checkpoint. It is made by `streamer warm`, or in the background when a start
has found none. It serves streams with jars of their own too: these come later on the class path.
Java checks it itself, against the jars' sizes and times and its own version, and runs without one
that does not fit.

    ~/.cache/streamer/jvm/
        25-4f0c….aot      the archive, 180 MB
        25-4f0c….json     what it was made of, its size, how long it took
        25-4f0c….lock     held while it is made
        25-4f0c….failed   the last try has failed: nobody tries again for a day

An image, or whoever has many users, keeps one in `/opt/streamer/jvm`, where all look after their
own directory.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyspark

from streamer.core.errors import StreamerError
from streamer.spark.cluster import worker_setup
from streamer.spark.jvm.java import Java

CLASS_ARCHIVE_VARIABLE: Final = "STREAMER_CLASS_ARCHIVE"
"""`off` lets a start neither use nor make an archive; `make:FILE` lets it write one to a file."""

_MAKE_PREFIX: Final = "make:"

_AOT_VERSION: Final = 25
"""The first version of Java that makes an AOT cache in one run of a program."""

_MAX_ARCHIVES: Final = 3
"""How many are kept; of others the one that was used longest ago goes first."""

_QUIET_OPTIONS: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""Java warns at each start of an archive that does not fit; the start goes on all the same."""

_FIXED_ADDRESS_OPTIONS: Final = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")
"""Map the archive where it was made for. Elsewhere all its pointers are written anew at each start:
0.16 s, and 100 MB of memory that are this process's own."""


SHARED_DIRECTORY: Final = Path("/opt/streamer/jvm")
"""The machine's directory of archives, which need not be there."""

_MIN_FREE_BYTES: Final = 1 << 30
"""What is to be free where an archive is made: it, and what Java writes on its way to it."""

_RETRY_S: Final = 24 * 3600.0
"""How long nobody tries again by himself after an archive could not be made."""


def cache_directory(environ: Mapping[str, str]) -> Path:
    """Return where archives are kept for this user."""
    return worker_setup.cache_directory(environ) / "jvm"


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive for one Java, PySpark and set of jars, whether it is there or not.

    Attributes:
        file: the archive.
        is_aot: whether it is an AOT cache; else a dynamic class data sharing archive.
    """

    file: Path
    is_aot: bool

    @classmethod
    def for_jvm(
        cls,
        java: Java,
        class_path: Iterable[str],
        environ: Mapping[str, str],
        directory: Path | None = None,
    ) -> ClassArchive:
        """Return the archive for a JVM: the user's, or else the machine's if that is usable.

        Args:
            java: the Java.
            class_path: its jars, in order. An archive fits whatever heap and compilers the JVM has.
            environ: the variables of this process: `XDG_CACHE_HOME`, `HOME`.
            directory: where it is or is to be; None to look for it.
        """
        is_aot = java.version >= _AOT_VERSION
        parts = [str(java.executable), _file_stamp(java.library), pyspark.__version__]
        parts += [f"{jar} {_file_stamp(Path(jar))}" for jar in class_path]
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
        name = f"{java.version}-{digest}.{'aot' if is_aot else 'jsa'}"
        if directory is not None:
            return cls(directory / name, is_aot)
        own, shared = (
            cls(cache_directory(environ) / name, is_aot),
            cls(SHARED_DIRECTORY / name, is_aot),
        )
        return shared if shared.is_usable() and not own.is_usable() else own

    @property
    def record(self) -> Path:
        """The file that says what the archive was made of."""
        return self.file.with_suffix(".json")

    def is_usable(self) -> bool:
        """Whether the archive is there, whole, and nobody else can have changed it."""
        try:
            file_stat = self.file.lstat()
            directory = self.file.parent.lstat()
            size = json.loads(self.record.read_text())["bytes"]
        except (OSError, ValueError, KeyError, TypeError):
            return False
        own = {os.getuid(), 0}
        writable = stat.S_IWGRP | stat.S_IWOTH
        return (
            stat.S_ISREG(file_stat.st_mode)
            and file_stat.st_size == size
            # What it holds is run: it is code.
            and file_stat.st_uid in own
            and directory.st_uid in own
            and not (file_stat.st_mode | directory.st_mode) & writable
        )

    def use_options(self) -> list[str]:
        """Return the JVM's options that use the archive; none where there is no usable one."""
        if not self.is_usable():
            return []
        with contextlib.suppress(OSError):
            # When it was used last: the one that nobody uses goes first.
            os.utime(self.record)
        option = "-XX:AOTCache" if self.is_aot else "-XX:SharedArchiveFile"
        return [f"{option}={self.file}", *_FIXED_ADDRESS_OPTIONS, *_QUIET_OPTIONS]

    def make_options(self, file: Path) -> list[str]:
        """Return the JVM's options that write an archive to a file when the JVM ends."""
        option = "-XX:AOTCacheOutput" if self.is_aot else "-XX:ArchiveClassesAtExit"
        return [f"{option}={file}", *_QUIET_OPTIONS]

    def discard(self) -> None:
        """Remove the archive; what uses it goes on."""
        for path in (self.file, self.record):
            with contextlib.suppress(OSError):
                path.unlink()

    @contextlib.contextmanager
    def lock(self) -> Iterator[bool]:
        """Hold the right to make the archive; give whether nobody else has it.

        Raises:
            OSError: the cache directory cannot be written.
        """
        self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self.file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
            else:
                yield True
        finally:
            os.close(descriptor)

    def install(self, draft: Path, seconds: float, is_shared: bool = False) -> int:
        """Put a file that Java has written in the archive's place, and return its size in bytes.

        Args:
            draft: the file, in the same directory.
            seconds: how long it took to make.
            is_shared: whether others than this user are to use it.

        Raises:
            OSError: the disk is full, or the directory cannot be written.
        """
        size = draft.stat().st_size
        draft.chmod(0o444 if is_shared else 0o400)
        if is_shared:
            self.file.parent.chmod(0o755)
        about: dict[str, Any] = {
            "bytes": size,
            "seconds": round(seconds, 1),
            "pyspark": pyspark.__version__,
            "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        record = self.record.with_suffix(f".json.{os.getpid()}")
        record.write_text(json.dumps(about))
        # A start between the two sees a size that does not fit, and goes without.
        draft.replace(self.file)
        record.chmod(0o644)
        record.replace(self.record)
        with contextlib.suppress(FileNotFoundError):
            self.file.with_suffix(".failed").unlink()
        self._remove_others()
        return size

    def note_failure(self) -> None:
        """Let nobody try to make it by himself for a day."""
        with contextlib.suppress(OSError):
            self.file.with_suffix(".failed").touch(mode=0o600)

    def should_be_made(self) -> bool:
        """Whether the archive is missing, and can probably be made."""
        if self.is_usable():
            return False
        try:
            if time.time() - self.file.with_suffix(".failed").stat().st_mtime < _RETRY_S:
                return False
        except OSError:
            pass
        existing = next(path for path in self.file.parents if path.exists())
        usable = existing.is_dir() and os.access(existing, os.W_OK)
        return usable and free_bytes(existing) >= _MIN_FREE_BYTES

    def _remove_others(self) -> None:
        def last_use(file: Path) -> float:
            try:
                return file.with_suffix(".json").stat().st_mtime
            except OSError:
                return 0.0

        files = [*self.file.parent.glob("*.aot"), *self.file.parent.glob("*.jsa")]
        others = sorted((file for file in files if file != self.file), key=last_use, reverse=True)
        for file in others[_MAX_ARCHIVES - 1 :]:
            ClassArchive(file, file.suffix == ".aot").discard()
            with contextlib.suppress(OSError):
                file.with_suffix(".lock").unlink()


def free_bytes(directory: Path) -> int:
    """Return how much this user can still write there.

    Raises:
        OSError: there is no such directory.
    """
    stats = os.statvfs(directory)
    return stats.f_bavail * stats.f_frsize


def check_free(directory: Path) -> None:
    """Check that an archive can be made in a directory.

    Raises:
        StreamerError: too little is free.
    """
    free = free_bytes(directory)
    if free < _MIN_FREE_BYTES:
        raise StreamerError(
            f"{directory} has {free >> 20} MB free, and making the archive of classes takes "
            f"{_MIN_FREE_BYTES >> 20} MB; make room there, or set XDG_CACHE_HOME to another "
            "directory"
        )


def _file_stamp(path: Path) -> str:
    try:
        stats = path.stat()
    except OSError:
        return "missing"
    # In an image files have whole seconds.
    return f"{stats.st_size} {int(stats.st_mtime)}"


def draft_path(environ: Mapping[str, str]) -> Path | None:
    """Return the file into which this run is to write an archive; None for the usual run."""
    text = environ.get(CLASS_ARCHIVE_VARIABLE, "")
    return Path(text.removeprefix(_MAKE_PREFIX)) if text.startswith(_MAKE_PREFIX) else None


def is_enabled(environ: Mapping[str, str]) -> bool:
    """Whether starts use and make archives: unless `STREAMER_CLASS_ARCHIVE` is `off`."""
    return environ.get(CLASS_ARCHIVE_VARIABLE, "").strip().lower() not in (
        "off",
        "0",
        "false",
        "no",
    )
