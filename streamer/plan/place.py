"""Where a stream keeps its checkpoint when neither config nor command line says."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path


def default_checkpoint(config_path: str, env: Mapping[str, str]) -> Path:
    """Return the directory that belongs to a config: in the user's state directory, by its path."""
    state = env.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    whole = os.path.abspath(config_path) if config_path else os.getcwd()
    mark = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return Path(state) / "streamer" / f"{Path(config_path).stem or 'stdin'}-{mark}"
