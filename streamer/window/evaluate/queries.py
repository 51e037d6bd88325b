"""Compiled mappings as stage 1 uses them; mappings that merely name a field are recognised."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, Protocol

from streamer.core.execution import Execution
from streamer.core.message import Batch


class CompiledMapping(Protocol):
    """A compiled mapping (`streamer.bloblang.Mapping`): gives a value of a message."""

    @property
    def text(self) -> str:
        """The mapping as written."""

    @property
    def doc_fn(self) -> Callable[[Any], Any] | None:
        """The mapping as a function of the parsed document, when it needs nothing else."""

    @property
    def uses(self) -> Any:
        """Inputs of the mapping besides the document; `uses.now` is read."""

    def query(self, batch: Batch, index: int, ex: Execution) -> Any:
        """Evaluate for one message; raises MessageError."""


class CompiledKey(Protocol):
    """A compiled key: a mapping, or an interpolation (`streamer.bloblang.Interpolation`)."""

    @property
    def text(self) -> str:
        """The expression as written."""

    @property
    def gives_text(self) -> bool:
        """Whether a key is a text as it is, rather than a value that is written as JSON."""

    @property
    def doc_fn(self) -> Callable[[Any], Any] | None:
        """The expression as a function of the parsed document, when it needs nothing else."""

    def query(self, batch: Batch, index: int, ex: Execution) -> Any:
        """Evaluate for one message; raises MessageError."""


@dataclass(frozen=True, slots=True)
class BufferMappings:
    """The compiled mappings of a buffer.

    Attributes:
        timestamp: gives a message's event time; None where windows have none.
        key: gives the window's key, a mapping; or the group by which the pipeline goes on, an
            interpolation or a mapping; None without.
        filter: true keeps a message; None without.
        gap: gives the gap of a message's session, null for the usual one; None without.
        begin_when: true for a message that begins a window; None without.
        emit_when: true for a message that emits a window; None without.
    """

    timestamp: CompiledMapping | None
    key: CompiledKey | None = None
    filter: CompiledMapping | None = None
    gap: CompiledMapping | None = None
    begin_when: CompiledMapping | None = None
    emit_when: CompiledMapping | None = None

    @property
    def has_conditions(self) -> bool:
        """Whether a message may begin or emit a window by a condition."""
        return self.begin_when is not None or self.emit_when is not None


_NOW_MAPPING: Final = re.compile(r"\s*(?:root\s*=\s*)?now\(\)\s*")
_FIELD_MAPPING: Final = re.compile(
    r"\s*(?:root\s*=\s*)?this\.(?P<this>[A-Za-z_]\w*)\s*"
    r"|\$\{!\s*(?:this\.(?P<in_this>[A-Za-z_]\w*)|json\(\"(?P<in_json>[A-Za-z_]\w*)\"\))\s*\}"
)


def is_now_mapping(query: CompiledMapping) -> bool:
    """Whether the mapping is `root = now()`, the default: then no message needs to be looked at."""
    return _NOW_MAPPING.fullmatch(query.text) is not None


def field_name_of(query: CompiledMapping | CompiledKey) -> str | None:
    """Return the field of the document that the mapping merely names; None if it does more."""
    match = _FIELD_MAPPING.fullmatch(query.text)
    return match and (match["this"] or match["in_this"] or match["in_json"])


def field_getter_of(query: CompiledMapping | CompiledKey) -> Callable[[Any], Any] | None:
    """Return a function that reads the document's field which the mapping merely names.

    Where that field holds a string, it is the mapping's result, however the numbers of the document
    are parsed. The function raises KeyError or TypeError when there is no such field.

    Returns:
        None when the mapping does more than name a field.
    """
    name = field_name_of(query)
    return None if name is None else itemgetter(name)
