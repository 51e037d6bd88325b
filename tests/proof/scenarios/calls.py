"""Changes of a service's streams by its API, many at once: what it answers is what is there."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import httpx2

from tests.faults.service import leaves_nothing, service
from tests.faults.vitals import vitals
from tests.proof.runner import PATIENCE, Run
from tests.proof.verdict import ProofError

_SHORT, _LONG = 200, 1000
_NONE_IDLE = {"spark.python.factory.idleWorkerMaxPoolSize": "1"}
"""Spark keeps Python workers that have nothing to do for a minute. A short run has it keep one, and
sees at once what is given back; a long one waits."""
_PER_STREAM = 20
"""So many calls are of one stream."""

_CONFIG = """
input: {http_server: {path: /post}}
pipeline: {processors: [{mapping: 'root.by = "call-%d-"'}]}
output: {drop: {}}
"""
_DONE, _MADE, _CHANGED, _REMOVED = 200, "POST", "PUT", "DELETE"
_NO = {_MADE: (400, "already"), _CHANGED: (404, "not found"), _REMOVED: (404, "not found")}
"""What is answered when there is one, or none: status and a word."""


@dataclass(frozen=True)
class Call:
    """A call and its answer; the times in seconds, when it was sent and when it was answered."""

    number: int
    stream: str
    method: str
    sent: float
    answered: float
    status: int
    text: str


def at_once(run: Run) -> str:
    """Send all calls at once; hold what is there against the answers, then remove everything."""
    count = _LONG if run.long else _SHORT
    with service(run.directory / "service", conf={} if run.long else _NONE_IDLE) as running:
        running.wait_running()
        # What Spark keeps once it has run a stream is no leak.
        _must(running.ask(_MADE, "/streams/first", _CONFIG % 0))
        _must(running.ask(_REMOVED, "/streams/first"))
        before = vitals(running.process.pid)
        began = time.monotonic()
        calls = asyncio.run(_calls(str(running.client.base_url), count, run.rng))
        took = time.monotonic() - began
        for call in calls:
            check_answer(call)
        there = running.streams()
        for stream in {call.stream for call in calls}:
            text = running.ask("GET", f"/streams/{stream}").text if stream in there else None
            check_end(stream, text, [call for call in calls if call.stream == stream])
        for stream in there:
            _must(running.ask(_REMOVED, f"/streams/{stream}"))
        leaves_nothing(running, before)
        left = sorted(path.name for path in (run.directory / "service" / "c").iterdir())
        if left != [".service"]:
            raise ProofError(f"of streams that are gone {left} are left")
        wrong = [line for line in running.lines() if line.get("level") in ("error", "raw")]
        if wrong:
            text = " | ".join(str(line["msg"]) for line in wrong[:30])
            raise ProofError(f"{len(wrong)} lines of the log are no good: {text[:3000]}")
        if running.stop() != 0:
            raise ProofError("SIGTERM: exit code is not 0")
    done = Counter(call.method for call in calls if call.status == _DONE)
    words = f"{done[_MADE]} made, {done[_CHANGED]} changed, {done[_REMOVED]} removed"
    return f"{count:,} calls at once, {words}, {len(there)} left at the end, {took:.0f} s"


async def _calls(url: str, count: int, rng: random.Random) -> list[Call]:
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE * 4, limits=limits) as client:

        async def one(number: int, stream: str, method: str) -> Call:
            body = None if method == _REMOVED else _CONFIG % number
            sent = time.monotonic()
            answer = await client.request(method, f"/streams/{stream}", content=body)
            now = time.monotonic()
            return Call(number, stream, method, sent, now, answer.status_code, answer.text)

        methods = rng.choices((_MADE, _CHANGED, _REMOVED), (4, 3, 3), k=count)
        streams = [f"s{rng.randrange(count // _PER_STREAM)}" for _ in range(count)]
        return await asyncio.gather(*map(one, range(1, count + 1), streams, methods))


def _must(answer: httpx2.Response) -> None:
    if answer.status_code != _DONE:
        raise ProofError(f"{answer.request.method} {answer.url}: {answer.status_code}")


def check_answer(call: Call) -> None:
    status, word = _NO[call.method]
    if call.status != _DONE and (call.status != status or word not in call.text):
        raise ProofError(f"{call.method} /streams/{call.stream}: {call.status} {call.text[:200]}")


def check_end(stream: str, text: str | None, calls: Sequence[Call]) -> None:
    """Hold what is there of a stream, by the service's own words, against the answers.

    Calls of one stream have had some order. It is not known, but one that was answered before
    another one was sent came before that.
    """
    done = [call for call in calls if call.status == _DONE]
    count = Counter(call.method for call in done)
    if count[_MADE] - count[_REMOVED] != (text is not None):
        raise ProofError(
            f"{stream} was made {count[_MADE]} times and removed {count[_REMOVED]} times, "
            f"and is {'there' if text else 'not there'}"
        )
    if text is None:
        last = [call for call in done if call.method == _REMOVED]
        rivals = [call for call in done if call.method != _REMOVED]
    else:
        last = [call for call in done if f"call-{call.number}-" in text]
        rivals = [call for call in done if call not in last]
        if not last:
            raise ProofError(f"{stream} is what no call has made it: {text[:300]}")
    if done and not any(all(one.answered >= other.sent for other in rivals) for one in last):
        raise ProofError(f"{stream} is not what the last calls have made it")
