"""What tests of folded windows have in common: streams that run folded and whole, and compared."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from streamer.core.durations import SECOND
from streamer.plan.window_plan import Aggregation
from streamer.sdk.input.replayable import Limit

from .stream import Run, write_lines

T = 1_700_000_000  # seconds; a multiple of 10
SPELT = {'"p": 3': '"p": 3.0', '"p": 4': '"p": 4e0', '"price": 5': '"price": 5.00'}


def line(document, otherwise, broken):
    """A document as a line, its numbers maybe spelt otherwise; or what is no document."""
    text = json.dumps(document)
    for plain, spelt in SPELT.items() if otherwise else ():
        text = text.replace(plain, spelt)
    return b'{"p": ' if broken else text.encode()


def outcome(directory, text, steps, folds):
    """Run micro-batches and return all that is printed, in order."""
    path = directory / "cars.jsonl"
    path.write_bytes(b"")
    run = Run(text)
    assert run.plan.aggregation.text is not None, run.plan.aggregation.obstacle
    if not folds:
        run.plan = replace(run.plan, aggregation=Aggregation(None))
    printed = []
    for second, documents, limit in steps:
        write_lines(path, documents)
        ended = False
        while not ended:
            ended = run.step((T + second) * SECOND, Limit(messages=limit)).ended
            printed += run.printed()
    run.step((T + 60) * SECOND)
    return printed + run.printed(), run.snapshot.messages, run.snapshot.dropped


def rounded(value, places):
    """Return what must be equal: all but the rounding of numbers, and maybe places in errors.

    What is folded holds numbers as Benthos reckons with them: those beyond 64 bits as floats.
    """
    text = json.dumps(value, default=repr)
    if not places:
        text = re.sub(r"(index|element) \d+", "place", text)

    def near(number):
        return f"{float(number):.9g}"

    def whole(number):
        return int(number) if abs(int(number)) < 1 << 63 else near(number)

    return json.loads(text, parse_float=near, parse_int=whole)
