"""Messages over HTTP: requests of one message, and bodies of many lines, into a program."""

from __future__ import annotations

import asyncio
import socket
import time
from pathlib import Path

from tests.bench import report
from tests.bench.product import Product, product

CONNECTIONS = 64
LINE = b'{"light":"%06d","registration_plate":"JYBKGZL","passed_by_count":7,"at":1730000000}\n'
LINES = 2_000
"""Lines in a body."""

CONFIG = """
http: {{ enabled: false }}
input:
  broker:
    inputs:
      - label: single
        http_server: {{ address: "127.0.0.1:{single}" }}
      - label: lines
        http_server: {{ address: "127.0.0.1:{lines}", scanner: {{ lines: {{}} }} }}
output: {{ drop: {{}} }}
"""


def http_requests(work: Path, requests: int, messages: int) -> None:
    """Measure both on one program, one after the other.

    Raises:
        RuntimeError: a request was not answered with 200, or a message is missing.
    """
    report.heading(f"http_server: {CONNECTIONS} connections on this machine → drop")
    single, lines = free_port(), free_port()
    with product(CONFIG.format(single=single, lines=lines), work / "http_server") as run:
        run.wait_for_start(180)
        _part(run, "requests of one message", single, LINE % 1, requests, 1, 3_000)
        body = b"".join(LINE % number for number in range(LINES))
        bodies = -(-messages // LINES)
        _part(run, f"messages in bodies of {LINES:,} lines", lines, body, bodies, LINES, 150_000)


def _part(
    run: Product, name: str, port: int, body: bytes, requests: int, each: int, least: float
) -> None:
    before = run.delivered[-1].messages
    cpu = run.tree.cpu_at(time.time())
    began = time.monotonic()
    asyncio.run(_send(port, body, requests))
    sent = time.monotonic() - began
    total = requests * each
    run.wait_for_messages(before + total, 120)
    took = time.monotonic() - began
    report.figure(f"{name}, sent and safe", total / sent, "/s", least=least)
    report.figure("  until all are processed", total / took, "/s")
    report.figure(
        "  CPU of the program", (run.tree.cpu_at(time.time()) - cpu) / total * 1e6, "µs each"
    )


def free_port() -> int:
    """Return a port at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


async def _send(port: int, body: bytes, requests: int) -> None:
    head = f"POST /post HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    request = head + body
    left = iter(range(requests))

    async def connection() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            for _ in left:
                writer.write(request)
                answer = await reader.readuntil(b"\r\n\r\n")
                if not answer.startswith(b"HTTP/1.1 200"):
                    raise RuntimeError(f"a request was answered with {answer!r}")
        finally:
            writer.close()

    await asyncio.gather(*(connection() for _ in range(CONNECTIONS)))
