"""OpenSSH's server of SFTP, with host keys, users and passwords of its own.

It is in namespaces of processes and mounts: all of its sessions end with it, and the password is in
a file that nobody else sees.
"""

from __future__ import annotations

import getpass
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.servers import installed, lasting_port, listens, running, skip_without

PASSWORD = "sftp-secret-of-the-test"
PASSPHRASE = "passphrase-of-the-test"

_SETTINGS = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {keys}/host
PidFile none
AuthorizedKeysFile {keys}/authorized
StrictModes no
UsePAM no
UseDNS no
PermitRootLogin yes
KbdInteractiveAuthentication no
MaxStartups 100
Subsystem sftp internal-sftp -u 0022
LogLevel ERROR
"""


@dataclass(frozen=True)
class OpenSsh:
    """A running server.

    Attributes:
        address: host and port.
        keys: the directory of its keys and those of the user: `user`, and `locked`, which has a
            passphrase.
        root: a directory for the files of tests.
    """

    address: str
    keys: Path
    root: Path

    @property
    def host_key(self) -> str:
        """The public key of the server."""
        return (self.keys / "host.pub").read_text().strip()

    @property
    def fields(self) -> str:
        """The fields of a component that logs in by a key, in YAML's flow style."""
        return (
            f"address: '{self.address}', credentials: {{username: {getpass.getuser()}, "
            f"private_key_file: {self.keys}/user, host_public_key: '{self.host_key}'}}"
        )


@contextmanager
def openssh_server(directory: Path, port: int | None = None) -> Iterator[OpenSsh]:
    """Run one; give its address. It is killed at the end, with all of its sessions.

    Args:
        directory: for keys and files, which a later one finds again.
        port: where it listens; one of its own when None.
    """
    program = installed("openssh-server", "sshd", "/usr/sbin/sshd")
    if os.getuid() != 0:
        skip_without("root", "run the suite as root: sshd is started in namespaces")
    port = port or lasting_port()
    keys, root = directory / "keys", directory / "files"
    root.mkdir(exist_ok=True)
    if not keys.exists():
        _make_keys(keys)
    config = directory / "sshd_config"
    config.write_text(_SETTINGS.format(port=port, keys=keys))
    script = (
        "mount -t tmpfs tmpfs /run && mkdir -p /run/sshd && "
        f"mount --bind {shlex.quote(str(keys / 'shadow'))} /etc/shadow && "
        f"exec {program} -D -e -f {shlex.quote(str(config))}"
    )
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script]
    log = directory / "sshd.log"
    with running(command, log, lambda: listens(port), ends_at=signal.SIGKILL):
        yield OpenSsh(f"127.0.0.1:{port}", keys, root)


def _make_keys(keys: Path) -> None:
    keys.mkdir()
    for name, passphrase in (("host", ""), ("user", ""), ("locked", PASSPHRASE), ("other", "")):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(keys / name)]
        subprocess.run(command, check=True)
    public = [(keys / f"{name}.pub").read_text() for name in ("user", "locked")]
    (keys / "authorized").write_text("".join(public))
    hashed = subprocess.run(
        ["openssl", "passwd", "-6", "-stdin"],
        input=PASSWORD.encode(),
        check=True,
        capture_output=True,
    ).stdout.decode()
    (keys / "shadow").write_text(f"{getpass.getuser()}:{hashed.strip()}:19000:0:99999:7:::\n")
    (keys / "shadow").chmod(0o600)
