"""What is said of a test that failed: lines of text, some of them what was expected or received."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from streamer.message import Batch, Message
from streamer.value import dump_json

Tone = Literal["plain", "expected", "received"]

_LONGEST = 2_000
_MOST_MESSAGES = 5


class Line(NamedTuple):
    """One line; the tone decides about its colour on a terminal."""

    text: str
    tone: Tone = "plain"


Failure = tuple[Line, ...]
"""One thing that is wrong. The first line says what and where, the others show it."""


def failure(what: str, lines: Iterable[Line] = ()) -> Failure:
    """Return a failure; the text of it may have several lines."""
    return (*(Line(text) for text in what.splitlines()), *lines)


def at(place: str, found: Failure) -> Failure:
    """Put a place in front of a failure."""
    return (Line(f"{place}: {found[0].text}", found[0].tone), *found[1:])


def labelled(label: str, text: str, tone: Tone) -> list[Line]:
    """Show a text after a label; its further lines stand below its first."""
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}… ({len(text):,} characters)"
    first, *rest = text.split("\n")
    return [Line(label + first, tone), *(Line(" " * len(label) + line, tone) for line in rest)]


def pair(expected: str, received: str, indent: str = "  ") -> list[Line]:
    """Show two texts, one below the other."""
    return [
        *labelled(f"{indent}expected: ", expected, "expected"),
        *labelled(f"{indent}received: ", received, "received"),
    ]


def received(text: str) -> list[Line]:
    """Show what came out."""
    return labelled("  received: ", text, "received")


def shown(message: Message) -> str:
    """Return a message as a text: its content, its metadata, and its mark when it has failed."""
    text = message.raw.decode(errors="replace") or "(empty)"
    if message.meta:
        text += f" metadata: {dump_json(dict(message.meta)).decode()}"
    if message.error is not None:
        text += f" failed: {message.error}"
    return text


def listed(batch: Batch) -> list[Line]:
    """Show the messages of a batch."""
    lines = [line for message in batch[:_MOST_MESSAGES] for line in received(shown(message))]
    if len(batch) > _MOST_MESSAGES:
        lines.append(Line(f"  … and {len(batch) - _MOST_MESSAGES} more"))
    return lines


def as_json(value: Any) -> str:
    """Return a value as compact JSON."""
    return dump_json(value).decode()


def quoted(text: str) -> str:
    """Return a text as JSON writes it, so that every character can be seen."""
    return json.dumps(text, ensure_ascii=False)
