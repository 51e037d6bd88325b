"""A service is sent what is no config, what is made to exhaust it, and ids that lead elsewhere."""

from __future__ import annotations

import http.client
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from tests.config.bombs import bombs, mutilated
from tests.faults.service import Service, service
from tests.faults.vitals import vitals
from tests.proof.runner import Run
from tests.proof.sinks import whole_lines
from tests.proof.verdict import ProofError

_SHORT, _LONG = 500, 10_000
_AT_ONCE = 8
_EXAMPLES = Path(__file__).parents[3] / "configs"
_NEVER = b"\nno_field_of_a_config: 1\n"
"""Ends what is sent, so that nothing starts of it, however little was changed."""
_MOST = 300
"""MB by which the service may grow."""
_LONGEST = 30.0
"""Seconds that an answer may take, with others at the same time."""

_GOOD = """
input: {generate: {interval: 20ms, mapping: root = counter()}}
output: {file: {path: "%s", codec: lines}}
"""
_ELSEWHERE = (
    *("..", ".", "../../x", "..%2f..%2fx", "%2e%2e%2fx", "..%5cx", "%252e%252e%252fx"),
    *("%2fetc%2fx", "x%00", ".service", "x%20y", "x%0ay", "%c3%a9", "%ff", "a" * 129, "~", "$HOME"),
)


def refused(run: Run) -> str:
    """Send all of it, beside a stream that counts; hold that each is refused, and nothing else."""
    out = run.directory / "out.jsonl"
    with service(run.directory / "service") as running:
        running.wait_running()
        made = running.ask("POST", "/streams/good", _GOOD % out)
        if made.status_code != 200:
            raise ProofError(f"the stream that counts: {made.status_code} {made.text}")
        running.wait_for(lambda: _count(out) > 0, 120, "for the stream that counts")
        there, before, counted = _entries(run.directory), vitals(running.process.pid), _count(out)
        began, slowest = time.monotonic(), 0.0
        count = _LONG if run.long else _SHORT
        with ThreadPoolExecutor(_AT_ONCE) as senders:
            texts = _no_configs(run.rng, count)
            while some := list(islice(texts, 1_000)):
                answers = senders.map(lambda text: _refused(running, text), some)
                slowest = max(slowest, *answers)
        for name, made_bomb in bombs().items():
            took = _refused(running, made_bomb, name)
            slowest = max(slowest, took)
        asked = sum(1 for _ in _ids_refused(running))
        took, grown = time.monotonic() - began, vitals(running.process.pid).memory - before.memory
        running.wait_for(lambda: _count(out) > counted + 50, 60, "for the stream to count on")
        if list(running.streams()) != ["good"] or (new := _entries(run.directory) - there):
            raise ProofError(f"there are {list(running.streams())}, and {sorted(new)}")
        if grown > _MOST:
            raise ProofError(f"it grew by {grown:.0f} MB")
        if slowest > _LONGEST:
            raise ProofError(f"an answer took {slowest:.1f} s")
        if running.stop() != 0:
            raise ProofError("SIGTERM: exit code is not 0")
    numbers = [int(line) for line in whole_lines(out)]
    if numbers != list(range(1, len(numbers) + 1)):
        raise ProofError(f"the stream beside it did not count to {len(numbers)} one by one")
    return (
        f"{count:,} that are no configs, {len(bombs())} bombs and {asked} calls with ids that lead "
        f"elsewhere refused in {took:.0f} s, the slowest in {slowest:.1f} s, {grown:+.0f} MB; "
        f"the stream beside them counted to {len(numbers):,}"
    )


def _no_configs(rng: random.Random, count: int) -> Iterator[bytes]:
    """Make bytes at random, and examples with bytes of them changed."""
    examples = [path.read_bytes() for path in sorted(_EXAMPLES.glob("*.yaml"))]
    for number in range(count):
        text = mutilated(examples, rng)
        whole = number % 4 == 0
        yield (rng.randbytes(rng.randrange(1, 5_000)) if whole else text) + _NEVER


def _refused(running: Service, text: bytes, name: str = "") -> float:
    """Send a config that is none; return the seconds that the answer took."""
    began = time.monotonic()
    answer = running.ask("POST", "/streams/no", text)
    took = time.monotonic() - began
    what = name or repr(text[:60])
    if answer.status_code == 413 and name:
        return took
    if answer.status_code != 400:
        raise ProofError(f"{what} is answered by {answer.status_code} {answer.text[:300]}")
    if len(answer.content) > 1 << 20:
        raise ProofError(f"{what} is answered by {len(answer.content):,} bytes")
    return took


def _ids_refused(running: Service) -> Iterator[None]:
    """Call what has an id in its path with ids that are none."""
    url = running.client.base_url
    good = "input: {generate: {mapping: root = 1}}\noutput: {drop: {}}\n"
    for one in _ELSEWHERE:
        for path, body in ((f"/streams/{one}", good), (f"/resources/cache/{one}", "memory: {}")):
            for method in ("POST", "PUT", "GET", "DELETE"):
                # httpx2 would resolve the dots itself.
                client = http.client.HTTPConnection(url.host, url.port, timeout=60)
                client.request(method, path, body if method[0] == "P" else None)
                status = client.getresponse().status
                client.close()
                if not 400 <= status < 500:
                    raise ProofError(f"{method} {path} is answered by {status}")
                yield


def _count(out: Path) -> int:
    return out.read_bytes().count(b"\n") if out.exists() else 0


def _entries(directory: Path) -> set[Path]:
    """Return what is there: here, beside the service, and what the service has of streams."""
    near = [directory, directory / "service", directory / "service" / "c"]
    return {entry for place in near for entry in place.iterdir()}
