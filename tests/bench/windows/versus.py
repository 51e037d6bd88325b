"""The same windows in Bytewax and in hand-written PySpark, on the first events of the same files.

They get fewer events where they are slow, so that a run does not take hours: a rate is a rate. Of
five files, each a micro-batch in Spark, the first two are not measured; of Bytewax's, the first.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from tests.bench import report
from tests.bench.peers import HOUR_LATER, figures, lines_of, run_bytewax, run_pyspark
from tests.bench.speed import Speed
from tests.bench.windows.measure import Check, accept

LIGHTS, HOPPING, SESSIONS = 5_000_000, 1_000_000, 2_500_000
"""How many events the peers get at most."""

FILES = 5
LEAST = 2.0
SPARK = Path(__file__).with_name("peer_spark.py")
TIMES = "created_at", "at"


def first(paths: list[Path], events: int, directory: Path) -> list[Path]:
    """Write the first events of some files into five of the same number of events."""
    directory.mkdir(parents=True)
    lines = lines_of(paths)
    made = [directory / f"part-{number}.jsonl" for number in range(FILES)]
    for path in made:
        with path.open("wb") as out:
            out.writelines(islice(lines, events // FILES))
    return made


def versus(kind: str, ours: Speed, check: Check, paths: list[Path], work: Path, spark: str) -> None:
    """Run both over files, check their answers, print rates and ratios.

    Args:
        kind: tumbling, hopping or session.
        ours: how fast the product was.
        check: says what is wrong with an output for these files.
        paths: five files, as `first` makes them.
        work: a directory for what they write.
        spark: Spark's master.
    """
    size = sum(1 for _ in lines_of(paths))
    report.note(f"{kind}: peers on the first {size:,} events")
    theirs, out = run_pyspark(SPARK, [kind, spark], paths, sentinel(paths[-1]), work)
    accept(f"{kind}, PySpark", check, out)
    figures(f"{kind}, PySpark", theirs)
    report.figure(f"{kind}, streamer / PySpark", ours.rate / theirs.rate, "", least=LEAST)
    flow = "tests.bench.windows.peer_bytewax:flow"
    theirs, out = run_bytewax(flow, [kind], paths, work)
    accept(f"{kind}, Bytewax", check, out)
    figures(f"{kind}, Bytewax", theirs)
    report.figure(f"{kind}, streamer / Bytewax", ours.rate / theirs.rate, "", least=LEAST)


def sentinel(path: Path) -> bytes:
    """Return a line like a file's last, an hour later: it closes all windows before it."""
    *_, last = path.open("rb")
    event = json.loads(last)
    name = next(name for name in TIMES if name in event)
    later = datetime.fromisoformat(event[name]).timestamp() + HOUR_LATER
    event[name] = f"{datetime.fromtimestamp(later, UTC):%Y-%m-%dT%H:%M:%SZ}"
    return json.dumps(event).encode() + b"\n"
