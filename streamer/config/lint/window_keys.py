"""Whether the key of a window follows from the message alone, on every machine and day."""

from __future__ import annotations

from streamer.bloblang import BloblangError, compile_mapping
from streamer.config.nodes import Mapping, Scalar
from streamer.config.read_context import ReadContext


def check_window_key(context: ReadContext, root: Mapping) -> None:
    """Add a warning about a `key_mapping` that leans on what is outside of the message.

    Args:
        context: gets the finding.
        root: the config's tree.
    """
    buffer = root.entries.get("buffer")
    kinds = buffer[1].entries.values() if buffer and isinstance(buffer[1], Mapping) else ()
    for _, body in kinds:
        entry = body.entries.get("key_mapping") if isinstance(body, Mapping) else None
        if entry is not None and isinstance(entry[1], Scalar) and _is_impure(entry[1].text):
            message = "the key depends on values outside the message, such as env or hostname"
            hint = "take it from the message, so that it is the same on every machine and day"
            context.findings.add_at(entry[1], "impure_key", message, hint)


def _is_impure(text: str) -> bool:
    try:
        return compile_mapping(text).uses.impure
    except BloblangError:
        return False
