"""`streamer warm`: make the archive of classes with which Spark's JVM starts faster.

A stream of its own runs once, in a process of its own and in a directory that is removed. Its JVM
writes down which classes it has loaded. See `streamer.spark.session.class_archive`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import yaml

from streamer.core.errors import StreamerError

if TYPE_CHECKING:
    from streamer.spark.session.class_archive import ClassArchive

_RUN_TIMEOUT_S: Final = 900.0
_BACKGROUND_NICENESS: Final = 19
_CONFIG: Final[Mapping[str, Any]] = {
    "http": {"enabled": False},
    "logger": {"level": "ERROR"},
    "input": {
        "generate": {
            "count": 200,
            "interval": "",
            "mapping": 'root = {"key": count("n") % 3, "n": 1, "at": count("at")}',
        }
    },
    "buffer": {
        "tumbling_window": {
            "timestamp_mapping": "root = this.at.ts_unix()",
            "size": "10s",
        }
    },
    "pipeline": {
        "processors": [
            {"group_by_value": {"value": '${! json("key") }'}},
            {"mapping": 'root.n = json("n").from_all().sum()'},
        ]
    },
    "output": {"stdout": {}},
}
"""A stream with all that a start passes: source, both stages, state, a window, an output."""


def make_archive(archive: ClassArchive, environ: Mapping[str, str], is_shared: bool = False) -> int:
    """Make an archive of classes, unless somebody else does just now.

    Args:
        archive: what to make.
        environ: the variables of the process that is started.
        is_shared: whether others than this user are to use it.

    Returns:
        The archive's size in bytes; 0 when another process makes it.

    Raises:
        StreamerError: it could not be made; the text says why.
    """
    from streamer.spark.session.class_archive import check_free

    directory = archive.file.parent
    try:
        with archive.lock() as mine:
            if not mine:
                return 0
            check_free(directory)
            with tempfile.TemporaryDirectory(prefix="draft-", dir=directory) as work:
                began = time.monotonic()
                draft = Path(work) / archive.file.name
                _run_recorded_stream(Path(work), draft, environ)
                return archive.install(draft, time.monotonic() - began, is_shared)
    except StreamerError:
        archive.note_failure()
        raise
    except OSError as e:
        raise StreamerError(
            f"the archive of classes cannot be written to {directory}: {e.strerror or e}; make "
            "room there, or set XDG_CACHE_HOME to a directory that can be written"
        ) from e


def _run_recorded_stream(work: Path, draft: Path, environ: Mapping[str, str]) -> None:
    from streamer.spark.session.class_archive import CLASS_ARCHIVE_VARIABLE

    file = work / "config.yaml"
    file.write_text(yaml.safe_dump(_CONFIG))
    command = [sys.executable, "-m", "streamer.cli.main", "-c", str(file)]
    process = subprocess.Popen(
        [*command, "--checkpoint", str(work / "checkpoint")],
        env={**environ, CLASS_ARCHIVE_VARIABLE: f"make:{draft}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=work,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=_RUN_TIMEOUT_S)
    except BaseException as e:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(e, subprocess.TimeoutExpired):
            text = f"the run that makes it did not end within {_RUN_TIMEOUT_S:g} s"
            raise StreamerError(f"the archive of classes was not made: {text}") from e
        raise
    if process.returncode != 0 or not draft.is_file():
        last = output.decode(errors="replace").strip().splitlines()[-3:]
        text = "\n  ".join(last) or f"the run ended with {process.returncode}, and wrote none"
        raise StreamerError(f"the archive of classes was not made:\n  {text}")


def make_in_background(environ: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
    """Make the archive in the background, after a start that has found none.

    The process has the lowest priority, and goes on when this one ends.

    Args:
        environ: the variables of this process.

    Returns:
        The process; None when it cannot be started.
    """
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "streamer.cli.main", "warm", "--background"],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None


@click.command("warm", short_help="Make Spark start faster.")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the archive there, for all users of the machine.",
)
@click.option("--background", is_flag=True, hidden=True)
def warm_cli(directory: Path | None, background: bool) -> int:
    """Make the archive of classes with which Spark's JVM starts in half the time.

    It is made in the background too, when a stream has started without one. An image that is built
    runs this once, with --directory /opt/streamer/jvm, so that each start of a container finds it.
    """
    from streamer.spark.jvm.gateway import class_path
    from streamer.spark.jvm.java import find_java
    from streamer.spark.session.class_archive import ClassArchive

    if background:
        os.nice(_BACKGROUND_NICENESS)
    archive = ClassArchive.for_jvm(
        find_java(os.environ), class_path(os.environ), os.environ, directory
    )
    if archive.is_usable():
        click.echo(f"{archive.file} is there already")
        return 0
    began = time.monotonic()
    size = make_archive(archive, os.environ, is_shared=directory is not None)
    if not size:
        click.echo(f"another process makes {archive.file} just now")
        return 0
    click.echo(f"{archive.file}: {size / 1e6:.0f} MB, made in {time.monotonic() - began:.0f} s")
    return 0
