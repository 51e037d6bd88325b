"""FerretDB: a server that speaks MongoDB's protocol, with SQLite below.

MongoDB's own server is neither in Debian nor in a package of Python. FerretDB is a module of Go,
of which `.ci/run` builds `deploy/dev/ferretdb`. It takes everybody without a password.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamer.spark.jars.jar_directories import user_jar_directory
from tests.servers import listens, missing, running, skip_without


@contextmanager
def ferretdb_server(directory: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run one whose data is in a directory, until the block ends or its process before.

    Args:
        directory: of the data.
        port: of loopback.
    """
    program = user_jar_directory(os.environ).with_name("ferretdb") / "ferretdb"
    if not program.exists():
        how = f"none in {program.parent}; go build -C deploy/dev/ferretdb -o {program}"
        if shutil.which("go") is None:
            pytest.skip(missing("ferretdb", how))
        skip_without("ferretdb", how)
    command = [str(program), f"127.0.0.1:{port}", str(directory)]
    with running(command, directory / "log", lambda: listens(port)) as process:
        yield process
