"""The window kernel: clocks, assigners, panes and closing rules; it knows nothing of Spark.

Stage 1 (`packer.Packer`) turns messages into rows of packs, stage 2 (`shard.Shard`) keeps them and
releases windows. Times are integers, nanoseconds since the Unix epoch.
"""

from streamer.window.clock import Reading, SystemClock
from streamer.window.emission import Emission
from streamer.window.grid import Grid
from streamer.window.packer import Packer
from streamer.window.row import Kind, Row
from streamer.window.shard import Shard, Step
from streamer.window.status import Closed, OpenWindow, Status
from streamer.window.store import DictStore, Store
from streamer.window.system import SystemWindow, problems

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
