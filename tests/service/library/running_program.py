"""A program that runs streams on one Spark: each step prints a line of JSON with its facts.

It is a process of its own, since the suite has a Spark session that the library must refuse.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import streamer


def report(step: str, **facts: Any) -> None:
    print(json.dumps({"step": step, **facts}, default=str), flush=True)


def numbers_stream(directory: Path, name: str, count: int, **more: Any) -> streamer.Stream:
    """Return a stream of numbers, whose windows list their numbers."""
    return streamer.load(
        {
            "input": {
                "generate": {
                    "count": count,
                    "interval": "" if count else "20ms",
                    "mapping": "root.n = counter()",
                }
            },
            "buffer": {
                "tumbling_window": {
                    "timestamp_mapping": "root = this.n",
                    "size": more.pop("size", "1h"),
                    "retention": "90000d",
                }
            },
            "pipeline": {
                "processors": [
                    {
                        "mapping": 'root.numbers = if batch_index() == 0 { json("n").from_all() }\n'
                        "root = if batch_index() > 0 { deleted() }"
                    },
                    *more.pop("processors", ()),
                ]
            },
            "output": {"file": {"path": str(directory / f"{name}.jsonl"), "codec": "lines"}},
            "spark": {"master": more.pop("master", "local[2]")},
        },
        name=name,
        checkpoint=directory / f"checkpoint-{name}",
        **more,
    )


def read_numbers(directory: Path, name: str) -> list[int]:
    path = directory / f"{name}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [number for line in lines for number in json.loads(line)["numbers"]]


def wait_for_messages(handle: streamer.StreamHandle, more_than: int) -> None:
    until = time.monotonic() + 300
    while handle.status.messages <= more_than:
        assert time.monotonic() < until and not handle.status.is_finished, handle.status
        time.sleep(0.05)


def is_locked_by_the_jvm(directory: Path, name: str) -> bool:
    with (directory / f"checkpoint-{name}" / "jvm.lock").open("r+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def stop_a_start(directory: Path) -> None:
    stream = numbers_stream(directory, "short", 10)
    began = stream.start()
    state = began.stop().state
    # The checkpoint is free again.
    with stream.start() as handle:
        report("stop_a_start", state=state, again=handle.wait(180).state)
    report("short", numbers=read_numbers(directory, "short"))


def run_two_streams(directory: Path) -> None:
    endless = numbers_stream(directory, "endless", 0)
    bounded = numbers_stream(directory, "bounded", 2_000, size="100s")
    with endless.start() as first, bounded.start() as second:
        first.wait_until_running(180)
        ended = second.wait(180)
        wait_for_messages(first, 20)
        errors = []
        for attempt in (
            endless.start,
            streamer.stop_spark,
            lambda: first.wait(0.01),
            lambda: numbers_stream(directory, "other", 1, master="local[1]").run(60),
        ):
            try:
                attempt()
            except streamer.StreamerError as e:
                errors.append(f"{type(e).__name__}: {e}")
        in_thread: list[Any] = []
        thread = threading.Thread(target=lambda: in_thread.append(first.status.state))
        thread.start()
        thread.join(10)
        table = first.windows()
        report(
            "two_streams",
            ended=ended.to_dict(),
            errors=errors,
            in_thread=in_thread,
            numbers=read_numbers(directory, "bounded"),
            results=bounded.results().num_rows,
            first=bounded.results(limit=1).to_pylist()[0]["numbers"],
            counted=bounded.select("SELECT count(*) AS n FROM results").to_pylist(),
            windows=[row.state for row in table],
            html=first._repr_html_(),
            locked=[is_locked_by_the_jvm(directory, name) for name in ("endless", "bounded")],
        )
    stopped = first.status
    before = read_numbers(directory, "endless")
    again = endless.start()
    wait_for_messages(again, stopped.messages)
    drained = again.drain(180)
    report(
        "drain",
        stopped=stopped.state,
        open=stopped.open_windows,
        before=before,
        drained=drained.state,
        left=drained.open_windows,
        messages=drained.messages,
        numbers=read_numbers(directory, "endless"),
    )
    # The next start goes on with the first message that was not read, in new windows.
    after = endless.start()
    wait_for_messages(after, 5)
    status = after.drain(180)
    report("drain_again", state=status.state, numbers=read_numbers(directory, "endless"))


def fail(directory: Path) -> None:
    crash = [{"crash": "it is over, and the password is ${CANARY}"}]
    stream = numbers_stream(directory, "failing", 30, processors=crash)
    handle = stream.start()
    try:
        handle.wait(180)
        raised = ""
    except streamer.StreamFailedError as e:
        raised = str(e)
    texts = [repr(handle), str(handle.status), handle._repr_html_(), repr(handle.log()), raised]
    report("fail", raised=raised, state=handle.status.state, texts=texts, stop=handle.stop().state)


async def run_in_a_loop(directory: Path) -> None:
    """Block as a notebook's cell does, and wait as a coroutine does."""
    stream = numbers_stream(directory, "loop", 25)
    with stream.start() as handle:
        status = await asyncio.to_thread(handle.wait, 180)
    blocking = numbers_stream(directory, "blocking", 5).run(180)
    report("loop", states=[status.state, blocking.state])


def main() -> None:
    directory = Path(sys.argv[1])
    stop_a_start(directory)
    run_two_streams(directory)
    fail(directory)
    asyncio.run(run_in_a_loop(directory))


if __name__ == "__main__":
    main()
