"""Runs a mapping the way a test reads best: text in, text out."""

from streamer.bloblang import compile_mapping
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.keyed_state import TransientState
from streamer.core.message import Message

NOW = 1_700_000_000_123_456_789


def execution() -> Execution:
    ex = Execution(now=lambda: NOW)
    ex.keyed_state = TransientState()
    return ex


def run(mapping, *given, index=0, meta=None, ex=None, onto=False):
    """Return the bytes of the result as text, `<deleted>`, or the error's text in `Error("…")`."""
    batch = [Message(text.encode(), meta or {}) for text in given or ("{}",)]
    compiled = compile_mapping(mapping)
    try:
        result = (compiled.mutate if onto else compiled.apply)(batch, index, ex or execution())
    except MessageError as e:
        return f'Error("{e}")'
    return "<deleted>" if result is None else result.raw.decode()
