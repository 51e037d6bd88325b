"""Reads as the outputs' page says: the code that it shows, and records through it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from streamer.connectors.kafka.output.output_docs import DESCRIPTION
from tests.servers.kafka.client import Record

IsNew = Callable[[int, dict[str, bytes]], bool]


def pages_reader() -> IsNew:
    """Return the function that the page shows, which has read nothing yet."""
    [code] = re.findall(r"```python\n(.*?)```", DESCRIPTION, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(code, scope)
    found: IsNew = scope["is_new"]
    return found


def first_times(records: Iterable[Record]) -> list[Record]:
    """Return the records that the page's reader takes, of those that a topic has."""
    is_new = pages_reader()
    found = []
    for record in records:
        assert record.partition is not None
        headers = {name: value or b"" for name, value in record.headers}
        if is_new(record.partition, headers):
            found.append(record)
    return found
