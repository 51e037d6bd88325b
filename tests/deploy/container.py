"""Runs an image as an engine would: a read-only root, an unprivileged user, namespaces of its own.

The container has its own mounts, processes (tini is number 1) and network with nothing but a
loopback. What it can write is what an engine would give it: /tmp and the volume /data.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.deploy.image import Image

_PATIENCE = 240.0
USER = 10001

# Within new namespaces: mounts, then the image as the root, then no rights, then the entry point.
_START = """
set -eu
root=$1 data=$2 network=$3
shift 3
if [ "$network" = none ]; then ip link set lo up; fi
{places}
# Engines give a container a name, and an address for it.
echo container > /proc/sys/kernel/hostname
printf '127.0.0.1 localhost\n127.0.0.1 container\n' > "$data.hosts"
touch "$root/etc/hosts"
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/tmp"
mount --bind "$data" "$root/data"
mount --bind "$data.hosts" "$root/etc/hosts"
{mounts}
cd /
exec chroot "$root" setpriv --reuid {user} --regid {user} --clear-groups --no-new-privs \\
    --bounding-set=-all --inh-caps=-all -- env -i -C /data "$@"
"""


class Container:
    """A program in the image, from its start to its end; a context that ends it."""

    def __init__(
        self,
        image: Image,
        data: Path,
        *arguments: str,
        mounts: dict[str, Path] | None = None,
        command: Sequence[str] | None = None,
        environment: dict[str, str] | None = None,
        host_network: bool = False,
        stdin: int | None = subprocess.DEVNULL,
    ) -> None:
        """Start it.

        Args:
            image: the image.
            data: the directory that is its volume; it becomes the user's.
            arguments: what follows the image's name in `docker run`.
            mounts: files and directories of this machine, by their places in it; read-only.
            command: runs instead of the entry point.
            environment: besides the image's own.
            host_network: whether it has this machine's network instead of none.
            stdin: as for `subprocess.Popen`.
        """
        data.mkdir(exist_ok=True)
        os.chown(data, USER, USER)
        given = mounts or {}
        own = dict(entry.split("=", 1) for entry in image.config["Env"])
        self._environment = [f"{k}={v}" for k, v in {**own, **(environment or {})}.items()]
        program = [*(image.config["Entrypoint"] if command is None else command), *arguments]
        namespaces = ["--mount", "--pid", "--ipc", "--uts", *([] if host_network else ["--net"])]
        script = _START.format(
            user=USER,
            places="\n".join(_place(place, at) for at, place in given.items()),
            mounts="\n".join(_mounted(place, at) for at, place in given.items()),
        )
        self._output, self._log = (data.with_name(f"{data.name}.{end}") for end in ("out", "log"))
        with self._output.open("w") as out, self._log.open("w") as log:
            self.process = subprocess.Popen(
                [
                    *("unshare", *namespaces, "--fork", "--kill-child", "--propagation", "private"),
                    *("sh", "-c", script, "sh", str(image.root), str(data)),
                    *("host" if host_network else "none",),
                    *self._environment,
                    *program,
                ],
                stdin=stdin,
                stdout=out,
                stderr=log,
                text=True,
            )
        self._image = image

    def __enter__(self) -> Container:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            # With number 1 all others of its namespace end.
            os.kill(self._first(), signal.SIGKILL)
        self.process.communicate()

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return self._output.read_text()

    @property
    def log(self) -> str:
        """What it has logged so far."""
        return self._log.read_text()

    def ended(self, given: str | None = None) -> tuple[int, str, str]:
        """Wait for its end; return the exit code, its output and its log."""
        self.process.communicate(given, timeout=_PATIENCE)
        return self.process.returncode, self.output, self.log

    def stop(self) -> tuple[int, str, str]:
        """Send the image's stop signal, as `docker stop` does, and wait for the end."""
        os.kill(self._first(), signal.Signals[self._image.config.get("StopSignal", "SIGTERM")])
        return self.ended()

    def healthy(self) -> bool:
        """Run the image's health check once."""
        kind, *check = self._image.config["Healthcheck"]["Test"]
        assert kind == "CMD"
        return self.run(*check).returncode == 0

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command beside the program, as `docker exec` does."""
        enter = f"nsenter --target {self._first()} --mount --net --pid --root"
        rights = f"setpriv --reuid {USER} --regid {USER} --clear-groups env -i"
        return subprocess.run(
            [*shlex.split(f"{enter} {rights}"), *self._environment, *command],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )

    def wait(self, condition: Callable[[], object], what: str) -> None:
        """Wait until something holds while the program runs."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise AssertionError(f"it ended before {what}: {self.ended()}")
            if condition():
                return
            time.sleep(0.2)
        raise AssertionError(f"not within {_PATIENCE} s: {what}")

    def _first(self) -> int:
        """Return the process that is number 1 in the container, as this machine numbers it."""
        parent = self.process.pid
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until and self.process.poll() is None:
            try:
                first = int(Path(f"/proc/{parent}/task/{parent}/children").read_text().split()[0])
                # Until then it is still the shell that makes the mounts.
                if os.readlink(f"/proc/{first}/root") != "/":
                    return first
            except (OSError, IndexError):
                pass
            time.sleep(0.02)
        raise AssertionError(f"it did not start: {self.log}")


def _place(place: Path, at: str) -> str:
    """Return the command that makes the place of a mount in the image's copy, as an engine does."""
    folder = at if place.is_dir() else os.path.dirname(at)
    made = f'mkdir -p "$root"{shlex.quote(folder)}'
    return made if place.is_dir() else f'{made} && touch "$root"{shlex.quote(at)}'


def _mounted(place: Path, at: str) -> str:
    """Return the commands that mount a file or a directory, read-only."""
    target = f'"$root"{shlex.quote(at)}'
    return f"mount --bind {shlex.quote(str(place))} {target} && mount -o remount,bind,ro {target}"
