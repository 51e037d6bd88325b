"""The default directory of a stream's checkpoint, and of its parts."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from streamer.core.locations import is_location

if TYPE_CHECKING:
    from streamer.config import Config


def choose_checkpoint(config: Config, named: str | None, env: Mapping[str, str]) -> str:
    """Return the checkpoint of a stream: the caller's, the config's, or the default of the config.

    Args:
        config: the config.
        named: the one that the caller names; None for none.
        env: the environment's variables.
    """
    return str(named or config.spark["checkpoint"] or default_checkpoint(config.path, env))


def default_checkpoint(config_path: str, env: Mapping[str, str]) -> Path:
    """Return the directory that belongs to a config: in the user's state directory, by its path."""
    if is_location(config_path):
        whole = config_path
    else:
        whole = os.path.abspath(config_path) if config_path else os.getcwd()
    mark = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return _state_directory(env) / f"{Path(config_path).stem or 'stdin'}-{mark}"


def is_remote(checkpoint: str) -> bool:
    """Return whether a checkpoint is on a file system that only Spark reaches."""
    return "://" in checkpoint.removeprefix("file://")


def local_directory(url: str, env: Mapping[str, str]) -> Path:
    """Return the directory for what this machine keeps of a checkpoint that is elsewhere."""
    url = url.rstrip("/")
    mark = hashlib.sha256(url.encode()).hexdigest()[:8]
    name = re.sub(r"[^\w.-]", "_", url.rpartition("/")[2])
    return _state_directory(env) / f"{name}-{mark}"


def _state_directory(env: Mapping[str, str]) -> Path:
    state = env.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return Path(state) / "streamer"
