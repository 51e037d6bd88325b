"""A MariaDB server."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers import free_port, installed, listens, running


@contextmanager
def mariadb_server() -> Iterator[str]:
    """Run one with an empty database; give its DSN, as Go's driver for MySQL has it."""
    install = installed("mariadb-server", "mariadb-install-db")
    server = installed("mariadb-server", "mariadbd", "/usr/sbin/mariadbd")
    user = "mysql" if os.geteuid() == 0 else None
    # Not where pytest keeps its directories, which are closed to other users.
    directory = Path(tempfile.mkdtemp(prefix="streamer-mariadb-"))
    try:
        if user is not None:
            os.chown(directory, pwd.getpwnam(user).pw_uid, -1)
        data, port = f"--datadir={directory}/data", free_port()
        made = [install, "--no-defaults", data, "--auth-root-authentication-method=normal"]
        made += ["--skip-test-db", "--innodb-log-file-size=4M"]
        subprocess.run(made, check=True, capture_output=True, user=user, cwd=directory)
        (directory / "first.sql").write_text(
            "CREATE DATABASE streamer;\n"
            "CREATE USER 'streamer'@'%' IDENTIFIED BY 'secret';\n"
            "GRANT ALL ON streamer.* TO 'streamer'@'%';\n"
        )
        command = [server, "--no-defaults", data, f"--port={port}", "--bind-address=127.0.0.1"]
        command += [f"--socket={directory}/socket", f"--init-file={directory}/first.sql"]
        command += ["--innodb-flush-log-at-trx-commit=0", "--innodb-log-file-size=4M"]
        command += ["--skip-name-resolve", f"--pid-file={directory}/pid"]
        with running(command, directory / "log", lambda: listens(port), user):
            yield f"streamer:secret@tcp(127.0.0.1:{port})/streamer?multiStatements=true"
    finally:
        shutil.rmtree(directory, ignore_errors=True)
