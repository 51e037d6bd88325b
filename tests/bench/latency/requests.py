"""Requests that are answered by the pipeline, one at a time and many at once."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from tests.bench.latency import benthos
from tests.bench.latency.figures import Latency, of_seconds
from tests.bench.process_tree import Tree
from tests.bench.product import product

PARALLEL = 1, 32
SECONDS = 12.0
_WARM_UP_S = 10.0
_BODY = (
    b'{"traffic_light":"a5f1","created_at":"2026-01-01T00:00:01.250Z",'
    b'"registration_plate":"AB1C DEF","passengers":3}'
)
CONFIG = """
http: {{ enabled: false }}
input:
  http_server:
    address: "127.0.0.1:{port}"
    path: /post
pipeline:
  processors:
    - mapping: |
        root.at = this.created_at
        root.passengers = this.passengers
output:
  sync_response: {{}}
"""
_ANSWER = b'"passengers":3'


def of_product(work: Path, master: str) -> list[Latency]:
    """Measure the product."""
    port = free_port()
    config = CONFIG.format(port=port) + f'spark: {{master: "{master}"}}\n'
    with product(config, work) as run:
        run.wait_for_start(180)
        ask(port, 1, _WARM_UP_S)
        return _measure("streamer", port, run.tree)


def of_benthos(program: Path, work: Path) -> list[Latency]:
    """Measure Benthos."""
    port = free_port()
    with benthos.running(program, CONFIG.format(port=port), work) as peer:
        wait_for_port(port)
        ask(port, 1, 1.0)
        return _measure("Benthos", port, peer.tree)


def _measure(program: str, port: int, tree: Tree) -> list[Latency]:
    found = []
    for parallel in PARALLEL:
        first = time.time()
        seconds = ask(port, parallel, SECONDS)
        last = time.time()
        time.sleep(0.5)
        cores = (tree.cpu_at(last) - tree.cpu_at(first)) / (last - first)
        name = f"sync_response, {parallel} at once"
        found.append(of_seconds(program, "requests", name, parallel, seconds, cores))
    return found


def ask(port: int, parallel: int, seconds: float) -> list[float]:
    """Send requests for a while, each connection one after another; return what each took.

    Raises:
        RuntimeError: a request was not answered, or with something else.
    """
    return asyncio.run(_ask(port, parallel, seconds))


async def _ask(port: int, parallel: int, seconds: float) -> list[float]:
    head = f"POST /post HTTP/1.1\r\nHost: here\r\nContent-Length: {len(_BODY)}\r\n\r\n"
    request = head.encode() + _BODY
    until = time.monotonic() + seconds
    took: list[float] = []

    async def connection() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            while (began := time.monotonic()) < until:
                writer.write(request)
                status, headers = parse_head(await reader.readuntil(b"\r\n\r\n"))
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                if status != 200 or _ANSWER not in body:
                    raise RuntimeError(f"a request was answered with {status} {body!r}")
                took.append(time.monotonic() - began)
        finally:
            writer.close()

    await asyncio.gather(*(connection() for _ in range(parallel)))
    return took


def parse_head(data: bytes) -> tuple[int, Mapping[str, str]]:
    """Return the status of an answer and its headers, with names in lower case."""
    status, *lines = data.decode().strip().split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return int(status.split()[1]), {name.lower(): text.strip() for name, _, text in pairs}


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_for_port(port: int, seconds: float = 20.0) -> None:
    """Wait until somebody listens.

    Raises:
        RuntimeError: nobody does after so long.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError as e:
            if time.monotonic() > until:
                raise RuntimeError(f"nobody listens on port {port}: {e}") from e
            time.sleep(0.05)
