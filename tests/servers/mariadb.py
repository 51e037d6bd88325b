"""A MariaDB server."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.servers import installed, lasting_port, listens, running


@dataclass(frozen=True)
class MariadbData:
    """The data of a server, which is started and ended as often as a test likes."""

    directory: Path
    port: int
    user: str | None

    @property
    def dsn(self) -> str:
        """The DSN of its database, as Go's driver for MySQL has it."""
        return f"streamer:secret@tcp(127.0.0.1:{self.port})/streamer?multiStatements=true"

    @contextmanager
    def server(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run the server until the block ends, or its process is ended before."""
        program = installed("mariadb-server", "mariadbd", "/usr/sbin/mariadbd")
        directory = self.directory
        command = [program, "--no-defaults", f"--datadir={directory}/data", f"--port={self.port}"]
        command += ["--bind-address=127.0.0.1", f"--socket={directory}/socket"]
        command += [f"--init-file={directory}/first.sql", "--innodb-flush-log-at-trx-commit=0"]
        command += ["--innodb-log-file-size=4M", "--skip-name-resolve"]
        command += [f"--pid-file={directory}/pid", "--server-id=1", "--sync-binlog=0"]
        # What `mysql_cdc` reads.
        command += ["--log-bin=binlog", "--binlog-format=ROW", "--binlog-row-metadata=FULL"]
        with running(command, directory / "log", lambda: listens(self.port), self.user) as process:
            yield process


@contextmanager
def mariadb_data() -> Iterator[MariadbData]:
    """Make an empty database, whose server is not started."""
    install = installed("mariadb-server", "mariadb-install-db")
    user = "mysql" if os.geteuid() == 0 else None
    # Not where pytest keeps its directories, which are closed to other users.
    directory = Path(tempfile.mkdtemp(prefix="streamer-mariadb-"))
    try:
        if user is not None:
            os.chown(directory, pwd.getpwnam(user).pw_uid, -1)
        made = [install, "--no-defaults", f"--datadir={directory}/data"]
        made += ["--auth-root-authentication-method=normal"]
        made += ["--skip-test-db", "--innodb-log-file-size=4M"]
        subprocess.run(made, check=True, capture_output=True, user=user, cwd=directory)
        (directory / "first.sql").write_text(
            "CREATE DATABASE IF NOT EXISTS streamer;\n"
            "CREATE USER IF NOT EXISTS 'streamer'@'%' IDENTIFIED BY 'secret';\n"
            "GRANT ALL ON streamer.* TO 'streamer'@'%';\n"
            "GRANT RELOAD, REPLICATION SLAVE, BINLOG MONITOR, BINLOG ADMIN ON *.* "
            "TO 'streamer'@'%';\n"
        )
        yield MariadbData(directory, lasting_port(), user)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def mariadb_server() -> Iterator[str]:
    """Run one with an empty database; give its DSN, as Go's driver for MySQL has it."""
    with mariadb_data() as data, data.server():
        yield data.dsn
