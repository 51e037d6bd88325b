"""Directory of the results of a stream, by its config."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streamer.core.errors import StreamerError
from streamer.plan.checkpoint_dir import is_remote, local_directory

if TYPE_CHECKING:
    from streamer.config import Config

RESULTS_DIRECTORY: Final = "results"
"""The directory of results in a checkpoint."""


def find_results_directory(
    checkpoint: str, config: Config | None, shown: str, env: Mapping[str, str] = os.environ
) -> Path:
    """Return the directory in which a stream keeps its results.

    Args:
        checkpoint: the stream's checkpoint.
        config: the stream's config; None where only the checkpoint is known.
        shown: the name of the config, for errors.
        env: the environment's variables.

    Raises:
        StreamerError: the stream keeps none.
    """
    local = local_directory(checkpoint, env) if is_remote(checkpoint) else None
    directory = (local or Path(checkpoint.removeprefix("file://"))) / RESULTS_DIRECTORY
    if config is None or directory.exists():
        return directory
    if all(one.config.get("retention") is None for one in config.buffers or (config.buffer,)):
        raise StreamerError(
            f"{shown} keeps no results: its buffer, {config.buffer.name}, has no retention; "
            "give a window buffer one (retention: 7d), and start the stream"
        )
    return directory
