"""Configs to begin a new stream with: most have a window, all have tests and run as they are."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

STARTERS_DIRECTORY: Final = Path(__file__).resolve().parent / "starters"
_NAMES: Final = (
    *("tumbling_counts", "sessions", "join", "deduplicate", "throttle", "enrich", "plain"),
)
"""The starters, in the order in which they are offered."""


class Starter(NamedTuple):
    """A config to begin with.

    Attributes:
        name: its file, without the ending.
        title: one line of what it does: the config's first comment.
        text: the config.
    """

    name: str
    title: str
    text: str


@cache
def list_starters() -> tuple[Starter, ...]:
    """Return the starters, the most usual first."""
    texts = {
        name: (STARTERS_DIRECTORY / f"{name}.yaml").read_text(encoding="utf-8") for name in _NAMES
    }
    return tuple(
        Starter(name, text.partition("\n")[0].removeprefix("# "), text)
        for name, text in texts.items()
    )
