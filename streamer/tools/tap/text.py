"""Formats a tap as text and as plain values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from streamer.core.json.dump import dump_json
from streamer.core.json.parse import parse_json
from streamer.core.log_format import escape_controls
from streamer.core.message import Batch, Message, describe_failure
from streamer.tools.tap.stages import Stage
from streamer.tools.text_style import Style, keep_text


def format_stage(
    stage: Stage,
    limit: int,
    style: Style = keep_text,
    width: int = 0,
    has_metadata: bool = True,
) -> str:
    """Return a stage's lines.

    Args:
        stage: the stage.
        limit: how many messages are shown.
        style: colours.
        width: columns at which lines are cut; 0 to leave them whole.
        has_metadata: whether the messages' metadata is shown.
    """
    if not has_metadata:
        stage = _remove_metadata(stage)
    return "\n".join(_format_lines(stage, limit, style, width)) + "\n"


def _remove_metadata(stage: Stage) -> Stage:
    batches = [[message.with_metadata({}) for message in batch] for batch in stage.batches]
    return replace(stage, batches=batches)


def _format_lines(stage: Stage, limit: int, style: Style, width: int) -> Iterator[str]:
    label = f" [{stage.label}]" if stage.label else ""
    note = style(f" ({stage.note})", "note") if stage.note else ""
    yield f"{style(f'{stage.path}: {stage.name}{label}', 'stage')}, {_format_counts(stage)}{note}"
    many = any(len(batch) > 1 for batch in stage.batches)
    left = limit
    for number, batch in enumerate(stage.batches, 1):
        if left <= 0:
            break
        if many:
            yield style(f"  batch {number} of {_format_count(len(batch), 'message')}", "batch")
        for message in batch[:left]:
            yield from _format_message(message, style, width, "    " if many else "  ")
        left -= len(batch)
    left_out = sum(map(len, stage.batches)) - limit
    if left_out > 0:
        yield style(f"  … and {left_out:,} more", "note")
    for message in stage.dropped[:limit]:
        reason = message.meta.get("window_drop_reason", "")
        yield style(f"  dropped, {reason}:", "error")
        yield from _format_message(message, style, width, "    ")
    for level, text, _ in stage.logged:
        yield style(_shorten_text(f"  log {level}: {escape_controls(text)}", width), "note")


def _format_counts(stage: Stage) -> str:
    messages = sum(map(len, stage.batches))
    text = _format_count(messages, "message")
    if len(stage.batches) != messages:
        text += f" in {_format_count(len(stage.batches), 'batch', 'batches')}"
    return f"{text}, {len(stage.dropped):,} dropped" if stage.dropped else text


def _format_message(message: Message, style: Style, width: int, pad: str) -> Iterator[str]:
    text = " ".join(message.raw.decode(errors="replace").splitlines())
    yield _shorten_text(f"{pad}{escape_controls(text)}", width)
    if message.meta:
        entries = " ".join(
            f"@{name}={_format_value(value)}" for name, value in message.meta.items()
        )
        yield style(_shorten_text(f"{pad}  {escape_controls(entries)}", width), "meta")
    if message.error is not None:
        error = escape_controls(f"failed: {describe_failure(message.error)}")
        yield style(_shorten_text(f"{pad}  {error}", width), "error")


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else dump_json(value).decode(errors="replace")


def _format_count(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _shorten_text(text: str, width: int) -> str:
    return text if not width or len(text) <= width else f"{text[: width - 1]}…"


def to_json_document(stage: Stage, limit: int, has_metadata: bool = True) -> dict[str, Any]:
    """Return a stage as plain values; messages are written as unit tests write them."""
    if not has_metadata:
        stage = _remove_metadata(stage)
    document: dict[str, Any] = {
        "path": stage.path,
        "component": stage.name,
        **({"label": stage.label} if stage.label else {}),
        "messages": sum(map(len, stage.batches)),
        "batches": list(_batches_to_json(stage.batches, limit)),
    }
    if stage.dropped:
        document["dropped"] = [_message_to_json(message) for message in stage.dropped[:limit]]
    if stage.logged:
        document["logged"] = [{"level": level, "message": text} for level, text, _ in stage.logged]
    return document


def _batches_to_json(batches: list[Batch], limit: int) -> Iterator[list[dict[str, Any]]]:
    for batch in batches:
        if limit <= 0:
            return
        yield [_message_to_json(message) for message in batch[:limit]]
        limit -= len(batch)


def _message_to_json(message: Message) -> dict[str, Any]:
    try:
        content: dict[str, Any] = {"json_content": parse_json(message.raw)}
    except ValueError:
        content = {"content": message.raw.decode(errors="replace")}
    if message.meta:
        content["metadata"] = dict(message.meta)
    if message.error is not None:
        content["failed"] = str(message.error)
    return content
