"""The process that tries mappings for the editor and the server: one request a line, one answer.

A mapping may run for ever or fill the memory. Both end this process and nothing else; whoever asked
starts another one.
"""

from __future__ import annotations

import argparse
import signal
import sys
from typing import Any

import orjson

from streamer.bloblang import forbid_impure
from streamer.tools.playground.trial import run_trial


def _limit_resources(seconds: float, memory: int) -> None:
    """Bound the memory, where the system can, and let an alarm end a trial that nobody ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if memory and sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    # Only for when the parent has died: it would have ended this process earlier.
    _set_alarm(2 * seconds + 1)


def _set_alarm(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def main(arguments: list[str] | None = None) -> None:
    """Answer until stdin ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-impure", action="store_true")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--memory", type=int, required=True)
    options: Any = parser.parse_args(arguments)
    # The first trial of a process loads what all need.
    run_trial({"mapping": "root = this", "input": "{}"}, impure=False)
    _limit_resources(options.seconds, options.memory)
    out = sys.stdout.buffer
    with forbid_impure(options.no_impure):
        _set_alarm(0)
        out.write(b"ready\n")
        out.flush()
        for line in sys.stdin.buffer:
            _set_alarm(2 * options.seconds + 1)
            answer = run_trial(orjson.loads(line), not options.no_impure)
            out.write(orjson.dumps(answer) + b"\n")
            out.flush()
            _set_alarm(0)


if __name__ == "__main__":
    main()
