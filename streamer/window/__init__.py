"""The window kernel: clocks, assigners, panes and closing rules; it knows nothing of Spark.

Stage 1 (`packer.Packer`) turns messages into rows of packs, stage 2 (`shard.Shard`) keeps them and
releases windows. Times are integers, nanoseconds since the Unix epoch.

Its names are imported when they are first used: `lint` needs the rules of a window's settings, and
must not wait for numpy and pyarrow, which the packs are made with.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamer.window.clock import Reading, SystemClock
    from streamer.window.emission import Emission
    from streamer.window.grid import Grid
    from streamer.window.packer import Packer
    from streamer.window.row import Kind, Row
    from streamer.window.shard import Shard, Step
    from streamer.window.status import Closed, OpenWindow, Status
    from streamer.window.store import DictStore, Store
    from streamer.window.system import SystemWindow, problems

_HOMES = {
    "Closed": "status",
    "DictStore": "store",
    "Emission": "emission",
    "Grid": "grid",
    "Kind": "row",
    "OpenWindow": "status",
    "Packer": "packer",
    "Reading": "clock",
    "Row": "row",
    "Shard": "shard",
    "Status": "status",
    "Step": "shard",
    "Store": "store",
    "SystemClock": "clock",
    "SystemWindow": "system",
    "problems": "system",
}

__all__ = [
    "Closed",
    "DictStore",
    "Emission",
    "Grid",
    "Kind",
    "OpenWindow",
    "Packer",
    "Reading",
    "Row",
    "Shard",
    "Status",
    "Step",
    "Store",
    "SystemClock",
    "SystemWindow",
    "problems",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
