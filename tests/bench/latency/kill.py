"""kill -9 in the middle of requests: what was answered with 200 is in the file, exactly once."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import report
from tests.bench.latency.requests import free_port, parse_head
from tests.bench.product import product
from tests.processes import descendants

_CONNECTIONS = 8
_BEFORE_S = 8.0
_AFTER_S = 4.0
_ARRIVES_S = 60.0
_CONFIG = """
http: {{ enabled: false }}
input:
  http_server:
    address: "127.0.0.1:{port}"
    path: /post
pipeline:
  processors:
    - mapping: |
        root.n = this.n
output:
  file:
    path: "{out}"
spark: {{master: "{master}"}}
"""


@dataclass
class _Sender:
    """Sends numbered messages.

    Attributes:
        port: where to.
        numbers: of the messages.
        taken: those that were answered with 200.
    """

    port: int
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    taken: set[int] = field(default_factory=set)

    async def send(self, seconds: float) -> None:
        """Send for a while, or until the connections break."""
        until = time.monotonic() + seconds
        await asyncio.gather(*(self._connection(until) for _ in range(_CONNECTIONS)))

    async def _connection(self, until: float) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            try:
                while time.monotonic() < until:
                    await self._send_one(reader, writer)
            finally:
                writer.close()

    async def _send_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = next(self.numbers)
        body = b'{"n":%d}' % number
        head = f"POST /post HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        status, headers = parse_head(await reader.readuntil(b"\r\n\r\n"))
        await reader.readexactly(int(headers.get("content-length", "0")))
        if status == 200:
            self.taken.add(number)
        await asyncio.sleep(0.02)


def kill(work: Path, master: str) -> None:
    """Kill a stream with all its processes while it takes requests, and start it again.

    Raises:
        RuntimeError: a message was lost, or is in the file twice.
    """
    out, sender = work / "out.jsonl", _Sender(free_port())
    config = _CONFIG.format(port=sender.port, out=out, master=master)
    with product(config, work / "run") as first:
        first.wait_for_start(180)
        asyncio.run(_send_and_kill(sender, first.process.pid))
        first.process.wait()
    before = len(sender.taken)
    with product(config, work / "run") as second:
        second.wait_for_start(180)
        asyncio.run(sender.send(_AFTER_S))
        until = time.time() + _ARRIVES_S
        while sender.taken - _read(out).keys() and time.time() < until:
            time.sleep(0.1)
    counts = _read(out)
    lost = sender.taken - counts.keys()
    double = [number for number, count in counts.items() if count > 1]
    if lost or double:
        raise RuntimeError(f"kill -9: {len(lost)} of {len(sender.taken):,} messages lost, "
                           f"{len(double)} twice")  # fmt: skip
    report.note(
        f"kill -9 after {before:,} of {len(sender.taken):,} messages that were answered with 200: "
        "each is in the file, once"
    )


async def _send_and_kill(sender: _Sender, pid: int) -> None:
    sending = asyncio.ensure_future(sender.send(_BEFORE_S * 2))
    await asyncio.sleep(_BEFORE_S)
    for one in descendants(pid):
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    await sending


def _read(path: Path) -> Counter[int]:
    lines = path.read_bytes().splitlines() if path.exists() else []
    return Counter(int(line.removeprefix(b'{"n":').removesuffix(b"}")) for line in lines)
