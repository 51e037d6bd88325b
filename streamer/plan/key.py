"""The sharding key of messages: the expression by which the pipeline groups them first.

When the first processor after the buffer groups by an expression that looks at one message only,
the groups are all that the rest of the pipeline ever sees. So each group may live in a shard of
its own, and a window is released group by group.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from streamer.bloblang import Mapping, compile_interpolation, compile_mapping
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.mapping_query import query_bool
from streamer.sdk.spec import ParsedComponent


@dataclass(frozen=True, slots=True)
class ShardKey:
    """The expression that decides the shard of a message, and groups messages before they are kept.

    Attributes:
        expressions: as the config has them: one interpolation, or the checks of a `group_by`.
        kind: how they are read; a `mapping` gives the windows' own key.
        source: the path of the processor, or the field, that they were taken from.
    """

    expressions: tuple[str, ...]
    kind: Literal["interpolation", "checks", "mapping"]
    source: str

    @property
    def text(self) -> str:
        """The expressions in one line."""
        return " | ".join(self.expressions)

    @property
    def replaces_grouping(self) -> bool:
        """Whether a group needs no more grouping: a `group_by` still has its processors to run."""
        return self.kind == "interpolation"

    def compile(self) -> Any:
        """Compile the expressions, for `window.Packer`; compiling is cached by text."""
        if self.kind == "interpolation":
            return compile_interpolation(self.expressions[0])
        if self.kind == "mapping":
            return compile_mapping(self.expressions[0])
        return FirstCheck([compile_mapping(text) for text in self.expressions], self.text)


class FirstCheck:
    """The number of the first check that is true, as `group_by` looks for it; -1 for none."""

    doc_fn: Callable[[Any], Any] | None = None
    gives_text = False

    def __init__(self, checks: Sequence[Mapping], text: str) -> None:
        """Take the checks, and the text that stands for them."""
        self._checks = checks
        self.text = text

    def query(self, batch: Batch, index: int, ex: Execution) -> int:
        """Return the number; a check that fails is not true, and the processor says why."""
        for number, check in enumerate(self._checks):
            try:
                if query_bool(check, batch, index, ex):
                    return number
            except MessageError:
                continue
        return -1


def shard_key_of(processors: Sequence[ParsedComponent]) -> ShardKey | None:
    """Return the key that the first processor gives, or None when it gives none."""
    if not processors:
        return None
    first = processors[0]
    if first.name == "group_by_value":
        text = first.config["value"]
        key = ShardKey((text,), "interpolation", first.path)
        return key if _depends_on_one_message(compile_interpolation(text).uses, text) else None
    if first.name == "group_by":
        texts = tuple(group["check"] for group in first.config)
        if texts and all(
            _depends_on_one_message(compile_mapping(text).uses, text) for text in texts
        ):
            return ShardKey(texts, "checks", first.path)
    return None


def _depends_on_one_message(uses: Any, text: str) -> bool:
    """Return whether an expression gives the same before the window, for one message, as in it."""
    elsewhere = uses.batch or uses.now or uses.random or uses.impure or uses.error or uses.table
    return not elsewhere and not (uses.meta and _may_see_window(text))


def _may_see_window(text: str) -> bool:
    """Return whether an expression may read the window's own metadata, which is not there yet.

    Metadata that is named in so many words is looked at; any other access might be to anything.
    """
    named = re.findall(r"""(?:meta|metadata)\(\s*"([^"]*)"\s*\)|@([A-Za-z_]\w*)""", text)
    accesses = len(re.findall(r"(?:meta|metadata)\(|@", text))
    return accesses != len(named) or any("window_" in one + other for one, other in named)
