"""The product, which notes when a request passes its stations: `python -m … FILE -c config`.

It writes lines of JSON to the file: a station, and the Unix time.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamer.cli.main import main
from streamer.connectors.http_server.http_receiver import HttpReceiver
from streamer.connectors.spool.store import SpoolStore
from streamer.engine.driver.delivery import Delivery
from streamer.spark.query.query_run import QueryRun


def note_calls(target: type, name: str, before: str, after: str, note: Callable[..., None]) -> None:
    """Have a method's calls noted, with the number of the micro-batch where it has one."""
    method = getattr(target, name)

    def noted(*args: Any, **kwargs: Any) -> Any:
        number = next((one for one in reversed(args) if type(one) is int), None)
        if before:
            note(before, number)
        result = method(*args, **kwargs)
        if after:
            note(after, number)
        return result

    setattr(target, name, noted)


def note_stations(path: Path) -> None:
    """Have the stations of requests noted in a file."""
    file = path.open("a", buffering=1)

    def note(station: str, number: int | None) -> None:
        file.write(json.dumps({"station": station, "at": time.time(), "number": number}) + "\n")

    # `_store` is a coroutine: what is noted is its call.
    note_calls(HttpReceiver, "_store", "received", "", note)
    note_calls(SpoolStore, "append", "", "spooled", note)
    note_calls(QueryRun, "_deliver", "called", "", note)
    note_calls(Delivery, "deliver", "computed", "answered", note)


if __name__ == "__main__":
    note_stations(Path(sys.argv.pop(1)))
    sys.exit(main())
