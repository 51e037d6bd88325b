"""Report of a failed test: lines of text, some of them expected or received values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from streamer.core.json.dump import dump_json
from streamer.core.message import Batch, Message, describe_failure

Tone = Literal["plain", "expected", "received"]

_MAX_TEXT_CHARS = 2_000
_MAX_MESSAGES = 5


class Line(NamedTuple):
    """One line; the tone decides about its colour on a terminal."""

    text: str
    tone: Tone = "plain"


Failure = tuple[Line, ...]
"""One thing that is wrong. The first line says what and where, the others show it."""


def make_failure(what: str, lines: Iterable[Line] = ()) -> Failure:
    """Return a failure; the text of it may have several lines."""
    return (*(Line(text) for text in what.splitlines()), *lines)


def add_place(place: str, reason: Failure) -> Failure:
    """Put a place in front of a failure."""
    return (Line(f"{place}: {reason[0].text}", reason[0].tone), *reason[1:])


def label_lines(label: str, text: str, tone: Tone) -> list[Line]:
    """Show a text after a label; its further lines stand below its first."""
    if len(text) > _MAX_TEXT_CHARS:
        text = f"{text[:_MAX_TEXT_CHARS]}… ({len(text):,} characters)"
    first, *rest = text.split("\n")
    return [Line(label + first, tone), *(Line(" " * len(label) + line, tone) for line in rest)]


def format_pair(expected: str, received: str, indent: str = "  ") -> list[Line]:
    """Show two texts, one below the other."""
    return [
        *label_lines(f"{indent}expected: ", expected, "expected"),
        *label_lines(f"{indent}received: ", received, "received"),
    ]


def format_received(text: str) -> list[Line]:
    """Show what came out."""
    return label_lines("  received: ", text, "received")


def format_message(message: Message) -> str:
    """Return a message as a text: its content, its metadata, and its mark when it has failed."""
    text = message.raw.decode(errors="replace") or "(empty)"
    if message.meta:
        text += f" metadata: {dump_json(dict(message.meta)).decode()}"
    if message.error is not None:
        text += f" failed: {describe_failure(message.error)}"
    return text


def format_batch(batch: Batch) -> list[Line]:
    """Show the messages of a batch."""
    lines = [
        line
        for message in batch[:_MAX_MESSAGES]
        for line in format_received(format_message(message))
    ]
    if len(batch) > _MAX_MESSAGES:
        lines.append(Line(f"  … and {len(batch) - _MAX_MESSAGES} more"))
    return lines


def to_json_text(value: Any) -> str:
    """Return a value as compact JSON."""
    return dump_json(value).decode()


def quote_text(text: str) -> str:
    """Return a text as JSON writes it, so that every character can be seen."""
    return json.dumps(text, ensure_ascii=False)
