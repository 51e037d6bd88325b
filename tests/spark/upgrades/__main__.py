"""Make the checkpoints of a version: stop its program with open windows, and keep what it leaves.

    python -m tests.spark.upgrades PYTHON DIRECTORY [KIND ...]

PYTHON is the interpreter of a virtual environment in which that version is installed, DIRECTORY
gets an archive for each stream of `tests.spark.upgrades.streams`: its checkpoint and its output.
"""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from tests.spark.upgrades.streams import KINDS, LEAST, config_of, position

_WAIT_S = 300


def leave_open(python: str, streams: dict[str, str], directory: Path) -> None:
    """Run streams in one program until each has had enough messages, and stop it."""
    configs, checkpoints, out = (directory / name for name in ("configs", "checkpoints", "out"))
    for path in (configs, out):
        path.mkdir(parents=True)
    for name, text in streams.items():
        (configs / f"{name}.yaml").write_text(config_of(text, str(out / name)))
    service = directory / "service.yaml"
    service.write_text('http: { enabled: false }\nspark: { master: "local[2]" }\n')
    command = [python, "-m", "streamer.cli.main", "streams", "-o", service, configs]
    with (directory / "log").open("wb") as log:
        program = subprocess.Popen(
            [*command, "--checkpoints", checkpoints], cwd=directory, stderr=log
        )
    try:
        end = time.monotonic() + _WAIT_S
        while any(position(checkpoints / name) < LEAST for name in streams):
            if program.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"the streams did not get on:\n{(directory / 'log').read_text()}")
            time.sleep(0.5)
        program.send_signal(signal.SIGTERM)
        if program.wait(_WAIT_S):
            raise SystemExit(f"the program did not stop:\n{(directory / 'log').read_text()}")
    finally:
        program.kill()


def pack(directory: Path, name: str, archive: Path) -> None:
    """Archive the checkpoint of a stream and its output; the same files give the same bytes."""
    with (
        gzip.GzipFile(archive, "wb", 9, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        checkpoint = directory / "checkpoints" / name
        for path in sorted(checkpoint.rglob("*")):
            if path.is_file() and path.name != "lock":
                tar.add(path, Path("checkpoint") / path.relative_to(checkpoint))
        if (out := directory / "out" / name).exists():
            tar.add(out, "out")


def main(python: str, target: str, *kinds: str) -> None:
    """Make the archives of some kinds, or of all, one program for each kind."""
    Path(target).mkdir(parents=True, exist_ok=True)
    for kind, streams in KINDS.items():
        if kinds and kind not in kinds:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            leave_open(python, dict(streams), Path(temporary))
            for name in streams:
                pack(Path(temporary), name, Path(target) / f"{name}.tar.gz")
                print(kind, name, position(Path(temporary) / "checkpoints" / name), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
