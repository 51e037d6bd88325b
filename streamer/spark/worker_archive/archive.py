"""Write the archive of the workers' environment, or find the one that is there already.

```
bin/python3   the workers' own Python of the same minor version, with these packages
lib/          the packages
pack.json     versions, Python, platform, and a digest of all that there is
```
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import shlex
import sys
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from streamer.spark.worker_archive.environment_cache import MANIFEST
from streamer.spark.worker_archive.package_files import Packages, find_packages

LOCAL_SCHEME: Final = "local:"
"""What stands, as in Spark's own settings, before a path that is the same on every worker."""

ENVIRONMENT_DIRECTORY: Final = "environment"
"""What executors call the directory that they unpack the archive to."""

ARCHIVE_PYTHON: Final = f"./{ENVIRONMENT_DIRECTORY}/bin/python3"
"""The workers' Python, from where an executor runs that has unpacked the archive itself."""

WORKER_PYTHON: Final = "streamer-python3"
"""The same of one that finds it unpacked in its host's cache."""

_LAUNCHER_SCRIPT: Final = """#!/bin/sh
# Packages are in the archive, the interpreter is that of the machine: of version {version}, which
# the packages were built for.
here=$(cd "$(dirname "$0")/{up}" && pwd) || exit
for found in {names}; do
    # By its own path: what is on the PATH may be a script that looks for it, each time.
    is='import sys; print(sys.version_info[:2] == {tuple} and sys.executable or "")'
    python=$("$found" -S -c "$is" 2>/dev/null)
    if [ -n "$python" ]; then
        {become}
    fi
done
echo "streamer: no Python {version} on $(hostname): install it there (it is looked for as" \\
    "{names} on the PATH), or let workers use an image and set spark.environment: installed" >&2
exit 127
"""


def launcher_script(python: tuple[int, int]) -> str:
    """Return the script that is the workers' Python.

    Args:
        python: major and minor version.
    """
    return _format_script(python, "..", 'PYTHONPATH=$here/lib exec "$python" "$@"')


def worker_launcher_script(python: tuple[int, int], archive: str, key: str) -> str:
    """Return the script that is the workers' Python where the host's cache has the environment.

    `environment_cache.py` lies beside it.

    Args:
        python: major and minor version.
        archive: the environment's, as a worker sees it; a name is that of a file beside the script.
        key: the environment's; empty when only workers can read the archive.
    """
    beside = "" if archive.startswith("/") else '"$here"/'
    place = f"{beside}{shlex.quote(archive)}"
    become = f'exec "$python" -E -S "$here/environment_cache.py" {place} "{key}" "$@"'
    return _format_script(python, ".", become)


def _format_script(python: tuple[int, int], up: str, become: str) -> str:
    version = f"{python[0]}.{python[1]}"
    names = f"python{version} python3 python /usr/local/bin/python{version} /opt/python/bin/python3"
    return _LAUNCHER_SCRIPT.format(version=version, names=names, tuple=python, up=up, become=become)


def find_or_pack(
    cache: Path,
    report: Callable[[str], None] = lambda text: None,
    requirements: Iterable[str] = (),
) -> Path:
    """Return the archive for this very environment; make it when it is not in the cache.

    Args:
        cache: a directory, which is made when it is not there.
        report: called with what takes its time.
        requirements: further packages, as pip names them.

    Raises:
        StreamerError: a requirement is not installed.
        OSError: the cache cannot be written.
    """
    packages = find_packages(requirements)
    path = cache / f"{ENVIRONMENT_DIRECTORY}-{_archive_digest(packages)[:16]}.tar.gz"
    if not path.exists():
        report(f"packing {len(packages.versions)} packages for the workers, once for each version")
        cache.mkdir(parents=True, exist_ok=True)
        write_archive(path, packages)
    return path


def write_archive(path: Path, packages: Packages | None = None) -> Packages:
    """Write the archive; at its path there is none, or a whole one.

    Args:
        path: ends in `.tar.gz`.
        packages: what it holds; all that is needed when None.

    Raises:
        StreamerError: a requirement is not installed.
        OSError: it cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # Unpacked once by each worker: a smaller file would not make up for the time to write it.
        with tarfile.open(draft, "w:gz", compresslevel=1) as out:
            # Looked for once it is known that the archive can be written: it takes a second.
            packages = packages or find_packages()
            # First, since workers know by it whether they have unpacked the rest already.
            about = {**_describe_archive(packages), "digest": _archive_digest(packages)}
            _add_text(out, MANIFEST, json.dumps(about, indent=1), 0o644)
            _add_text(out, "bin/python3", launcher_script(sys.version_info[:2]), 0o755)
            for name, place in packages.files.items():
                out.add(place.resolve(), f"lib/{name}", filter=_clear_owner)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return packages


def _describe_archive(packages: Packages) -> dict[str, Any]:
    return {
        "python": ".".join(map(str, sys.version_info[:2])),
        "platform": f"{sys.platform}-{platform.machine()}",
        "packages": packages.versions,
    }


def _add_text(out: tarfile.TarFile, name: str, text: str, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(text.encode()), mode
    out.addfile(entry, io.BytesIO(text.encode()))


def _clear_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _archive_digest(packages: Packages) -> str:
    """Return what differs when the archive would: versions, and files of program and plugins."""
    digest = hashlib.sha256(json.dumps(_describe_archive(packages)).encode())
    digest.update(launcher_script(sys.version_info[:2]).encode())
    for name, place in packages.files.items():
        is_source = name.startswith("streamer/") or name in packages.plugin_files
        if is_source and "__pycache__" not in name:
            stat = place.stat()
            digest.update(f"{name}:{stat.st_size}:{stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()
