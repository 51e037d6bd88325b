"""The window kernel: clocks, assigners, panes and closing rules; it knows nothing of Spark.

Stage 1 (`assign.packer.Packer`) turns messages into rows of packs, stage 2 (`shard.Shard`)
keeps them and releases windows. Times are integers, nanoseconds since the Unix epoch.

Its names are imported when they are first used: `lint` needs the rules of a window's settings, and
must not wait for numpy and pyarrow, which the packs are made with.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamer.window.assign.packer import Packer
    from streamer.window.contract import (
        ClosedWindow,
        Emission,
        MicroBatchInfo,
        OpenWindow,
        RowKind,
        ShuffleRow,
        Status,
        SystemClock,
    )
    from streamer.window.settings.grid import Grid
    from streamer.window.settings.system_window import SystemWindow, find_system_window_problems
    from streamer.window.shard import Shard, ShardStep
    from streamer.window.state_store import DictStore, StateStore

_HOMES = {
    "ClosedWindow": "contract",
    "DictStore": "state_store",
    "Emission": "contract",
    "Grid": "settings.grid",
    "RowKind": "contract",
    "OpenWindow": "contract",
    "Packer": "assign.packer",
    "MicroBatchInfo": "contract",
    "ShuffleRow": "contract",
    "Shard": "shard",
    "Status": "contract",
    "ShardStep": "shard",
    "StateStore": "state_store",
    "SystemClock": "contract",
    "SystemWindow": "settings.system_window",
    "find_system_window_problems": "settings.system_window",
}

__all__ = [
    "ClosedWindow",
    "DictStore",
    "Emission",
    "Grid",
    "RowKind",
    "OpenWindow",
    "Packer",
    "MicroBatchInfo",
    "ShuffleRow",
    "Shard",
    "Status",
    "ShardStep",
    "StateStore",
    "SystemClock",
    "SystemWindow",
    "find_system_window_problems",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
