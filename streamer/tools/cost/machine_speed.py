"""The speed of this machine, by a short piece of work whose time on another machine is known.

CPU seconds of Spark's JVM cannot be measured without starting it. Those of another machine are
multiplied by this factor instead.
"""

from __future__ import annotations

import time
import zlib
from typing import Final

import orjson

_REFERENCE_SECONDS: Final = 0.022
"""CPU seconds of `_work` on the machine of the constants in `cost_model`: a virtual machine with
two cores of an Intel Xeon, Python 3.11."""

_ROUNDS: Final = 5
_REPEATS: Final = 24
_DOCUMENTS: Final = [
    {"key": f"sensor-{n}", "at": 1767225600 + n, "value": n / 7, "tags": ["a", "b", str(n)]}
    for n in range(500)
]


def measure_slowness() -> float:
    """Return by what to multiply CPU seconds of the reference machine, for this one.

    The fastest of a few rounds counts: others may use the cores meanwhile.
    """
    return min(_measure_work() for _ in range(_ROUNDS)) / _REFERENCE_SECONDS


def _measure_work() -> float:
    began = time.process_time()
    _work()
    return time.process_time() - began


def _work() -> int:
    """Do what a stream does: JSON, dictionaries, compression, arithmetic."""
    total = 0
    for _ in range(_REPEATS):
        counts: dict[str, float] = {}
        for document in _DOCUMENTS:
            read = orjson.loads(orjson.dumps(document))
            counts[read["key"]] = counts.get(read["key"], 0.0) + read["value"]
            total += sum(len(tag) for tag in read["tags"])
        total += len(zlib.compress(repr(counts).encode(), 6))
    return total
