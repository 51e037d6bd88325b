"""What a tap shows, as text and as plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from streamer.logs.form import escape_controls
from streamer.message import Batch, Message
from streamer.tap.stages import Stage
from streamer.value import dump_json, parse_json

Style = Callable[[str, str], str]
"""Takes a text and what it is (`stage`, `note`, `batch`, `meta`, `error`)."""


def _plain(text: str, what: str) -> str:
    return text


def text_of(stage: Stage, most: int, style: Style = _plain, width: int = 0) -> str:
    """Return a stage's lines.

    Args:
        stage: the stage.
        most: how many messages are shown.
        style: colours.
        width: columns at which lines are cut; 0 to leave them whole.
    """
    return "\n".join(_lines(stage, most, style, width)) + "\n"


def _lines(stage: Stage, most: int, style: Style, width: int) -> Iterator[str]:
    label = f" [{stage.label}]" if stage.label else ""
    note = style(f" ({stage.note})", "note") if stage.note else ""
    yield f"{style(f'{stage.path}: {stage.name}{label}', 'stage')}, {_counts(stage)}{note}"
    many = any(len(batch) > 1 for batch in stage.batches)
    left = most
    for number, batch in enumerate(stage.batches, 1):
        if left <= 0:
            break
        if many:
            yield style(f"  batch {number} of {_number(len(batch), 'message')}", "batch")
        for message in batch[:left]:
            yield from _message(message, style, width, "    " if many else "  ")
        left -= len(batch)
    left_out = sum(map(len, stage.batches)) - most
    if left_out > 0:
        yield style(f"  … and {left_out:,} more", "note")
    for message in stage.dropped[:most]:
        reason = message.meta.get("window_drop_reason", "")
        yield style(f"  dropped, {reason}:", "error")
        yield from _message(message, style, width, "    ")
    for level, text, _ in stage.logged:
        yield style(_cut(f"  log {level}: {escape_controls(text)}", width), "note")


def _counts(stage: Stage) -> str:
    messages = sum(map(len, stage.batches))
    text = _number(messages, "message")
    if len(stage.batches) != messages:
        text += f" in {_number(len(stage.batches), 'batch', 'batches')}"
    return f"{text}, {len(stage.dropped):,} dropped" if stage.dropped else text


def _message(message: Message, style: Style, width: int, pad: str) -> Iterator[str]:
    text = " ".join(message.raw.decode(errors="replace").splitlines())
    yield _cut(f"{pad}{escape_controls(text)}", width)
    if message.meta:
        entries = " ".join(f"@{name}={_value(value)}" for name, value in message.meta.items())
        yield style(_cut(f"{pad}  {escape_controls(entries)}", width), "meta")
    if message.error is not None:
        error = escape_controls(f"failed: {message.error}")
        yield style(_cut(f"{pad}  {error}", width), "error")


def _value(value: Any) -> str:
    return value if isinstance(value, str) else dump_json(value).decode(errors="replace")


def _number(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _cut(text: str, width: int) -> str:
    return text if not width or len(text) <= width else f"{text[: width - 1]}…"


def plain(stage: Stage, most: int) -> dict[str, Any]:
    """Return a stage as plain values; messages are written as unit tests write them."""
    found: dict[str, Any] = {
        "path": stage.path,
        "component": stage.name,
        **({"label": stage.label} if stage.label else {}),
        "messages": sum(map(len, stage.batches)),
        "batches": list(_batches(stage.batches, most)),
    }
    if stage.dropped:
        found["dropped"] = [_plain_message(message) for message in stage.dropped[:most]]
    if stage.logged:
        found["logged"] = [{"level": level, "message": text} for level, text, _ in stage.logged]
    return found


def _batches(batches: list[Batch], most: int) -> Iterator[list[dict[str, Any]]]:
    for batch in batches:
        if most <= 0:
            return
        yield [_plain_message(message) for message in batch[:most]]
        most -= len(batch)


def _plain_message(message: Message) -> dict[str, Any]:
    try:
        content: dict[str, Any] = {"json_content": parse_json(message.raw)}
    except ValueError:
        content = {"content": message.raw.decode(errors="replace")}
    if message.meta:
        content["metadata"] = dict(message.meta)
    if message.error is not None:
        content["failed"] = str(message.error)
    return content
