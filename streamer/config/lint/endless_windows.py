"""Whether a window without end has a mapping for which it need not keep every message."""

from __future__ import annotations

from typing import Final

from streamer.bloblang.analysis.pre_aggregation import PreAggregation, analyze_pre_aggregation
from streamer.config.nodes import Mapping, Node
from streamer.config.read_context import ReadContext
from streamer.sdk.spec import ParsedFields

_BUFFER: Final = "global_window"
_LATEST_FIELD: Final = "latest_by"
_MAPPINGS: Final = ("mapping", "bloblang")
_HINT: Final = (
    "let the first processor be a mapping that can be pre-aggregated, or keep only the latest "
    f"message of each id with {_LATEST_FIELD}"
)


def check_endless_window(context: ReadContext, root: Mapping, parsed: ParsedFields) -> None:
    """Add a finding where a window without end would have to keep its messages for ever.

    Args:
        context: gets the finding.
        root: the config's tree.
        parsed: its top level.
    """
    buffer = parsed["buffer"]
    if buffer is None or buffer.name != _BUFFER or buffer.config is None:
        return
    if (buffer.config[_LATEST_FIELD] or "").strip():
        return
    reason = _find_reason(parsed)
    if reason:
        message = f"{_BUFFER} keeps no messages, and cannot keep this pipeline's results: {reason}"
        node: Node = root.entries["buffer"][1] if "buffer" in root.entries else root
        if isinstance(node, Mapping) and _BUFFER in node.entries:
            node = node.entries[_BUFFER][0]
        context.findings.add_at(node, "bad_value", message, _HINT)


def _find_reason(parsed: ParsedFields) -> str:
    """Return why the pipeline cannot be pre-aggregated; empty if it can."""
    pipeline = parsed["pipeline"]
    processors = [] if pipeline is None else pipeline["processors"]
    if not processors:
        return "there is no mapping that makes one message of many"
    first = processors[0]
    if first is None or first.name not in _MAPPINGS:
        name = "the first processor" if first is None else f"the processor {first.name}"
        return f"{name} may look at every message"
    result = analyze_pre_aggregation(first.config)
    return "" if isinstance(result, PreAggregation) else str(result)
