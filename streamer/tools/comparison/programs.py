"""The programs of a comparison: how each is called, and which version it has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from streamer import __version__
from streamer.core.errors import StreamerError

_VERSION_S: Final = 60
_VERSION: Final = re.compile(r"(\d+\.\d+(?:\.\d+)?\S*)")
_FOREIGN_VARIABLES: Final = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV")
"""Variables by which another Python would find the modules of this one."""

_RPK: Final = "rpk"
_MODULE: Final = ("-P", "-m", "streamer")
"""Python's arguments: modules of the directory at hand are not meant."""


@dataclass(frozen=True)
class Program:
    """A program that runs configs.

    Attributes:
        name: for people, with its version.
        run: the command line up to the config's file.
        lint: that of its linter; empty without one.
        is_benthos: whether it is Benthos or Redpanda Connect.
        removed_variables: variables of the environment that it does not get.
    """

    name: str
    run: tuple[str, ...]
    lint: tuple[str, ...] = ()
    is_benthos: bool = False
    removed_variables: tuple[str, ...] = field(default=())

    def with_arguments(self, arguments: Sequence[str]) -> Program:
        """Return the program with further arguments before the config's file."""
        lint = (*self.lint, *arguments) if self.lint else ()
        return replace(self, run=(*self.run, *arguments), lint=lint)

    def make_environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that it runs with."""
        return {name: text for name, text in env.items() if name not in self.removed_variables}


def this_program() -> Program:
    """Return the program that is running."""
    return Program(f"streamer {__version__}", (sys.executable, *_MODULE, "run"))


def find_benthos(path: str) -> Program:
    """Return Benthos, or Redpanda Connect.

    Args:
        path: of its file, or its name on `PATH`: `benthos`, `redpanda-connect` or `rpk`.

    Raises:
        StreamerError: it is not there, or does not answer.
    """
    file = shutil.which(path)
    if file is None:
        raise StreamerError(
            f"--benthos {path}: there is no such program; expected the file of benthos, "
            "redpanda-connect or rpk, or its name on PATH"
        )
    base = (file, "connect") if Path(file).stem == _RPK else (file,)
    version = _read_version((*base, "--version"), os.environ, f"--benthos {path}")
    name = "Redpanda Connect" if "connect" in " ".join(base) else "Benthos"
    return Program(f"{name} {version}".strip(), (*base, "run"), (*base, "lint"), is_benthos=True)


def find_streamer(environment: Path, given: str) -> Program:
    """Return the streamer of an environment.

    Args:
        environment: the directory of a virtual environment, or the file of the command.
        given: what the user has named, for errors.

    Raises:
        StreamerError: there is none, or it does not answer.
    """
    command = environment if environment.is_file() else environment / "bin" / "streamer"
    python = environment / "bin" / "python"
    if not environment.is_file() and python.is_file():
        base: tuple[str, ...] = (str(python), *_MODULE)
    elif command.is_file():
        base = (str(command),)
    else:
        raise StreamerError(
            f"--streamer {given}: {command} is not there; expected a version such as 0.1.0, a "
            "wheel, or the directory of a virtual environment"
        )
    removed = _FOREIGN_VARIABLES
    env = {name: text for name, text in os.environ.items() if name not in removed}
    version = _read_version((*base, "--version"), env, f"--streamer {given}")
    return Program(f"streamer {version}", (*base, "run"), removed_variables=removed)


def _read_version(command: tuple[str, ...], env: Mapping[str, str], what: str) -> str:
    try:
        done = subprocess.run(
            command,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_S,
        )
    except OSError as e:
        raise StreamerError(f"{what} cannot be started: {(e.strerror or str(e)).lower()}") from None
    except subprocess.TimeoutExpired:
        raise StreamerError(f"{what} gives no version within {_VERSION_S} s") from None
    if done.returncode:
        end = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise StreamerError(f"{what} gives no version: {''.join(end)[:300]}")
    match = _VERSION.search(done.stdout)
    return match[1] if match else ""
