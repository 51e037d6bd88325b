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
from dataclasses import dataclass
from pathlib import Path

from tests.servers import installed, lasting_port, running

GUARDED = "guarded"
"""The role that needs its password, once somebody has made it."""

_PROGRAMS = "/usr/lib/postgresql/*/bin/"


@dataclass(frozen=True)
class PostgresCluster:
    """The data of a server, which is started and ended as often as a test likes."""

    directory: Path
    port: int
    user: str | None

    @property
    def dsn(self) -> str:
        """The URL of its database, as libpq has it."""
        return f"postgres://streamer@127.0.0.1:{self.port}/postgres?sslmode=disable"

    @contextmanager
    def server(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run the server until the block ends, or its process is ended before."""
        program = installed("postgresql", "postgres", f"{_PROGRAMS}postgres")
        ready = installed("postgresql", "pg_isready", f"{_PROGRAMS}pg_isready")
        command = [program, "-D", str(self.directory / "data"), "-p", str(self.port)]
        command += ["-k", str(self.directory), "-F", "-c", "listen_addresses=127.0.0.1"]
        command += ["-c", "wal_level=logical"]
        asked = [ready, "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        with running(
            command,
            self.directory / "log",
            lambda: subprocess.run(asked).returncode == 0,
            self.user,
            signal.SIGINT,  # at SIGTERM it would wait until all are gone who are connected
        ) as process:
            yield process


@contextmanager
def postgres_cluster() -> Iterator[PostgresCluster]:
    """Make an empty database, whose server is not started.

    PostgreSQL refuses to be run by root: there it is run by the user that Debian's package makes.
    """
    initdb = installed("postgresql", "initdb", f"{_PROGRAMS}initdb")
    user = "postgres" if os.geteuid() == 0 else None
    # Not where pytest keeps its directories, which are closed to other users.
    directory = Path(tempfile.mkdtemp(prefix="streamer-postgres-"))
    try:
        if user is not None:
            os.chown(directory, pwd.getpwnam(user).pw_uid, -1)
        data = str(directory / "data")
        made = ["-D", data, "-U", "streamer", "--auth=trust", "--encoding=UTF8", "--no-sync"]
        subprocess.run([initdb, *made], check=True, capture_output=True, user=user, cwd=directory)
        # One role must say its password, for whatever it asks.
        access = directory / "data" / "pg_hba.conf"
        guarded = f"host all,replication {GUARDED} 127.0.0.1/32 scram-sha-256\n"
        access.write_text(guarded + access.read_text())
        yield PostgresCluster(directory, lasting_port(), user)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def postgres_server() -> Iterator[str]:
    """Run one with an empty database; give its DSN, as libpq's URLs are written."""
    with postgres_cluster() as cluster, cluster.server():
        yield cluster.dsn
