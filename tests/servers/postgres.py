"""A PostgreSQL server."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers import free_port, installed, running

_PROGRAMS = "/usr/lib/postgresql/*/bin/"


@contextmanager
def postgres_server() -> Iterator[str]:
    """Run one with an empty database; give its DSN, as libpq's URLs are written.

    PostgreSQL refuses to be run by root: there it is run by the user that Debian's package makes.
    """
    initdb = installed("postgresql", "initdb", f"{_PROGRAMS}initdb")
    server = installed("postgresql", "postgres", f"{_PROGRAMS}postgres")
    ready = installed("postgresql", "pg_isready", f"{_PROGRAMS}pg_isready")
    user = "postgres" if os.geteuid() == 0 else None
    # Not where pytest keeps its directories, which are closed to other users.
    directory = Path(tempfile.mkdtemp(prefix="streamer-postgres-"))
    try:
        if user is not None:
            os.chown(directory, pwd.getpwnam(user).pw_uid, -1)
        data, port = str(directory / "data"), str(free_port())
        made = ["-D", data, "-U", "streamer", "--auth=trust", "--encoding=UTF8", "--no-sync"]
        subprocess.run([initdb, *made], check=True, capture_output=True, user=user, cwd=directory)
        command = [server, "-D", data, "-p", port, "-k", str(directory), "-F"]
        command += ["-c", "listen_addresses=127.0.0.1"]
        asked = [ready, "-q", "-h", "127.0.0.1", "-p", port]
        with running(
            command,
            directory / "log",
            lambda: subprocess.run(asked).returncode == 0,
            user,
            signal.SIGINT,  # at SIGTERM it would wait until all are gone who are connected
        ):
            yield f"postgres://streamer@127.0.0.1:{port}/postgres?sslmode=disable"
    finally:
        shutil.rmtree(directory, ignore_errors=True)
