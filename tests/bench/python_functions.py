"""A trivial function in Python beside a mapping with the same result, by annotation, without Spark.

Both take turns on the same batches, in CPU time of this process, and the results are compared.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any, Final

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.execution import Execution
from streamer.core.message import Message
from tests.bench import report

ROUNDS: Final = 5
BATCH: Final = 1_000
_MAPPING: Final = "root.n = this.n + 1"
CASES: Final = {
    "dict": "def process(m: dict):\n    return {'n': m['n'] + 1}",
    "Message": "def process(m: Message):\n    return m.with_doc({'n': m.doc['n'] + 1})",
    "list[dict]": "def process(b: list[dict]):\n    return [{'n': m['n'] + 1} for m in b]",
    "list[Message]": (
        "def process(b: list[Message]):\n    return [m.with_doc({'n': m.doc['n'] + 1}) for m in b]"
    ),
    "pyarrow.Table": (
        "import pyarrow as pa\nimport pyarrow.compute as pc\n"
        "def process(b: pa.Table):\n    return pa.table({'n': pc.add(b['n'], 1)})"
    ),
    "pandas.DataFrame": (
        "import pandas as pd\n"
        "def process(b: pd.DataFrame):\n    return pd.DataFrame({'n': b.n + 1})"
    ),
    "polars.DataFrame": (
        "import polars as pl\ndef process(b: pl.DataFrame):\n    return b.select(pl.col('n') + 1)"
    ),
}


def python_functions(work: Path, events: int) -> None:
    """Print messages and batches a second of each annotation, and its ratio to the mapping.

    Raises:
        RuntimeError: the results differ.
    """
    report.heading(f"python: functions beside the mapping {_MAPPING}, batches of {BATCH:,}")
    batches = max(events // ROUNDS // BATCH, 1)
    plain = _processor({"mapping": _MAPPING})
    for name, code in CASES.items():
        function = _processor({"python": {"code": code}})
        times: dict[int, list[float]] = {0: [], 1: []}
        for _ in range(ROUNDS):
            results = [
                _measure(one, batches, times[at]) for at, one in enumerate((plain, function))
            ]
            if results[0] != results[1]:
                raise RuntimeError(f"{name} gives other results than the mapping")
        mapped, called = (median(times[at]) for at in (0, 1))
        rate = batches / called
        print(
            f"{name:18} {rate * BATCH:>12,.0f} messages/s {rate:>8,.0f} batches/s"
            f"   {called / mapped:.1f} times the CPU of the mapping"
        )


def _processor(item: dict[str, Any]) -> Any:
    import yaml

    config = parse_config(yaml.safe_dump({"pipeline": {"processors": [item]}}))
    return build_context().build(config.processors[0])


def _measure(processor: Any, batches: int, times: list[float]) -> bytes:
    given = [
        [Message(b'{"n":%d,"light":"light-%d"}' % (n, n % 7)) for n in range(BATCH)]
        for _ in range(batches)
    ]
    ex = Execution(lambda: 0)
    result = b""
    began = time.process_time()
    for batch in given:
        [made] = processor.process(batch, ex)
        result = b"\n".join([message.raw for message in made])
    times.append(time.process_time() - began)
    return result
