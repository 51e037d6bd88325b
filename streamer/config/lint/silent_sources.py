"""Whether windows wait for ever once a key, a partition or an input falls silent."""

from __future__ import annotations

from typing import Final

from streamer.config.nodes import Mapping, Scalar
from streamer.config.read_context import ReadContext
from streamer.core.durations import parse_duration

_SCOPES: Final = ("partition", "input")


def check_silent_sources(context: ReadContext, root: Mapping) -> None:
    """Add a warning about windows whose clock stands still for ever by one that is silent.

    Args:
        context: gets the finding.
        root: the config's tree.
    """
    for body in _list_buffers(root):
        scope = _read_text(body, "clock_scope")
        if _read_text(body, "idle_timeout") or _read_text(body, "clock") == "system":
            continue
        keyed = "key_mapping" in body.entries
        if scope == "key" and keyed and _read_text(body, "emit") != "forward":
            message = (
                "each key has a clock of its own, and there is no idle_timeout: the last windows "
                "of a key that falls silent never close"
            )
            hint = "set idle_timeout to the longest silence of a key that is still active"
            context.findings.add_at(body.entries["clock_scope"][1], "endless_wait", message, hint)
        timeout = _read_text(body, "source_idle_timeout")
        if scope in _SCOPES and timeout and _is_zero(timeout):
            message = (
                f"the clock waits for each {scope}, for ever (source_idle_timeout {timeout}), and "
                f"there is no idle_timeout: one {scope} that falls silent keeps all windows open"
            )
            hint = "set source_idle_timeout, or idle_timeout, to the longest silence to wait for"
            place = body.entries["source_idle_timeout"][1]
            context.findings.add_at(place, "endless_wait", message, hint)


def _list_buffers(root: Mapping) -> list[Mapping]:
    """Return the fields of the buffer of a config."""
    buffer = root.entries.get("buffer")
    kinds = buffer[1].entries.values() if buffer and isinstance(buffer[1], Mapping) else ()
    return [body for _, body in kinds if isinstance(body, Mapping)]


def _read_text(body: Mapping, name: str) -> str:
    entry = body.entries.get(name)
    return entry[1].text if entry is not None and isinstance(entry[1], Scalar) else ""


def _is_zero(text: str) -> bool:
    try:
        return parse_duration(text) == 0
    except ValueError:
        return False
