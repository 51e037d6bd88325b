"""A service with streams that configs are written for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamer.core.durations import SECOND
from streamer.engine.report.stream_metrics import Snapshot
from streamer.service.monitoring.stream_view import StreamState
from tests.engine.results.kept import Row, T, keep
from tests.service.api.asking import Asking, asking
from tests.service.fleet.pretending import Stage

ORDERS = """\
# Orders of the shop, counted a minute at a time.
input:
  generate:
    interval: 1s
    mapping: |
      root = {"id": counter(), "user": ["ada", "bob"].index(counter() % 2)}

buffer:
  tumbling_window:
    timestamp_mapping: root = now()
    size: 1m          # how long a window is
    allowed_lateness: 10s
    retention: 7d

pipeline:
  processors:
    - label: per_user
      group_by_value: { value: '${! json("user") }' }
    - mapping: |
        root = if batch_index() == 0 { {"orders": batch_size()} } else { deleted() }

output:
  drop: {}
"""
COUNTED = ORDERS.replace('"orders"', '"count"')
RESULTS = 70


def now(stream_id: str, polls: int) -> StreamState:
    """Three windows are open in `orders`, and none elsewhere."""
    has = stream_id == "orders"
    held = Snapshot(
        7, *((3, 1236) if has else (0, 0)), size=88_100 if has else 0, batch=max(polls, 0)
    )
    return StreamState(held, {})


@contextmanager
def authored(directory: Path) -> Iterator[Asking]:
    """A stream with two revisions and some results, one without, and one of a file."""
    directory.mkdir(exist_ok=True)
    path = directory / "filed.yaml"
    path.write_text("input: { file: { paths: [ in.txt ] } }\noutput: { drop: {} }  # nowhere\n")
    stage = Stage(fails={"does-not-start"}, now=now)
    with asking(directory, stage=stage, files={"filed": str(path)}) as server:
        assert server.ask("POST", "/streams/orders", ORDERS).status_code == 200
        assert server.ask("PUT", "/streams/orders", COUNTED).status_code == 200
        plain = "input: { generate: { mapping: root = 1 } }\noutput: { drop: {} }\n"
        assert server.ask("POST", "/streams/plain", plain).status_code == 200
        kept = Path(server.service.manager.registry.get("orders").directory) / "results"
        users = ("ada", "bob", "eve")
        rows = [
            Row(users[n % 3], T + n * 60 * SECOND, b'{"count":%d,"user":"<b>%d"}' % (n, n))
            for n in range(RESULTS)
        ]
        keep(kept, *rows)
        yield server
