"""A program that ends while its stream runs, in one of three ways; it prints lines of JSON."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import streamer
from tests.service.library.running_program import (
    numbers_stream,
    read_numbers,
    report,
    wait_for_messages,
)


def end_with_the_program(directory: Path) -> None:
    handle = numbers_stream(directory, "endless", 0).start()
    wait_for_messages(handle, 5)
    report("running", messages=handle.status.messages)


def wait_for_an_interrupt(directory: Path) -> None:
    stream = numbers_stream(directory, "endless", 0)

    def look() -> None:
        while not (handles := streamer_handles()):
            threading.Event().wait(0.1)
        wait_for_messages(handles[0], handles[0].status.messages + 5)
        report("running", messages=handles[0].status.messages)

    threading.Thread(target=look, daemon=True).start()
    try:
        stream.run()
    except KeyboardInterrupt:
        report("interrupted", handles=len(streamer_handles()))


def streamer_handles() -> list[streamer.StreamHandle]:
    from streamer.service.library.handle import _RUNNING

    return list(_RUNNING)


def drain_on_another_spark(directory: Path) -> None:
    bounded = numbers_stream(directory, "bounded", 5, master="local[1]").run(180)
    streamer.stop_spark()
    handle = numbers_stream(directory, "endless", 0).start()
    wait_for_messages(handle, 0)
    drained = handle.drain(180)
    report(
        "drained",
        states=[bounded.state, drained.state],
        messages=drained.messages,
        numbers=read_numbers(directory, "endless"),
    )


if __name__ == "__main__":
    {
        "exit": end_with_the_program,
        "interrupt": wait_for_an_interrupt,
        "drain": drain_on_another_spark,
    }[sys.argv[1]](Path(sys.argv[2]))
