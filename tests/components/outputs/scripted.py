"""Outputs that do as a test tells them, and a run that shows what is said in it."""

from __future__ import annotations

from typing import Any

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.component_stats import ComponentStats
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.output.protocols import Output, SendError
from streamer.sdk.output.sender import Sender
from streamer.sdk.spec import Kind, ParsedComponent

PLACE = ParsedComponent(Kind.OUTPUT, "scripted", path="output")
KEY = ("output", "", "root.output")


def batches(*texts: str) -> list[Batch]:
    """Return a batch for each text, with a message for each of its letters."""
    return [[Message(letter.encode()) for letter in text] for text in texts]


class Seen:
    """A run, and what is said in it; pauses take no time."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.counts: dict[str, int] = {}
        self.pauses: list[int] = []
        self.ex = Execution(
            lambda: 0,
            lambda level, text, fields: self.lines.append((level, text)),
            self._count,
            sleep=self.pauses.append,
        )

    def _count(self, name: str, by: int = 1, **labels: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + by

    @property
    def tally(self) -> ComponentStats:
        return self.ex.stats_of(KEY)


class Scripted(Output):
    """Takes messages, but the letters that it is told to refuse so often."""

    def __init__(self, refused: dict[str, int] | None = None, *, whole: bool = True) -> None:
        self.refused = dict(refused or {})
        self.whole = whole
        self.taken: list[str] = []
        self.tries: list[str] = []

    def send(self, batch: Batch, ex: Execution) -> None:
        letters = [message.raw.decode() for message in batch]
        self.tries.append("".join(letters))
        errors = {}
        for index, letter in enumerate(letters):
            if self.refused.get(letter, 0):
                self.refused[letter] -= 1
                errors[index] = f"no {letter}"
        if errors and self.whole:
            raise SendError("no " + "".join(letters))
        self.taken.append("".join(let for i, let in enumerate(letters) if i not in errors))
        if errors:
            raise SendError("some failed", errors)


def sender(output: Output, processors: Any = ()) -> Sender:
    return Sender(output, PLACE, processors)


def built(yaml: str, more: str = "") -> Sender:
    """Return the output of a config, as others see it; `more` are other parts of the config."""
    config = parse_config(f"output:\n  {yaml}\n{more}", env={})
    found: Sender = build_context(config.resources).build(config.output)
    return found
