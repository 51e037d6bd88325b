"""`mapping`: makes a new message out of each message by a Bloblang mapping, or filters it.

"Executes a Bloblang mapping on messages, creating a new document that replaces (or filters) the
original message": while the mapping runs, the message and its batch are as they were. A mapping
that fails leaves the message unchanged; it is logged and marked, and goes on. A message that has
failed before is mapped like any other, and keeps its mark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamer.bloblang import Mapping, compile_mapping
from streamer.bloblang.analysis.line_filters import find_line_filter
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.bulk import parse_batch
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.mapping_query import empty_mapping_problem
from streamer.sdk.spec import BuildContext, Example, Field, Kind, Spec

if TYPE_CHECKING:
    from streamer.core.json.columns.column_reader import ColumnMode
    from streamer.sdk.processing.line_selection import LineSelector

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "mapping",
    "Makes a new document out of each message by a Bloblang mapping, or filters the message.",
    description=(
        "The mapping can query the original document and the other messages of the batch at "
        "every stage, because it does not change them. `root = deleted()` filters the "
        "message. If the mapping fails, the message stays unchanged, the error is logged and "
        "the message is marked as failed (see `catch` and `try`)."
    ),
    config=Field(
        "",
        "string",
        "The Bloblang mapping.",
        mapping=True,
        check=empty_mapping_problem,
        examples=("root.id = this.id\nroot.name = this.name.uppercase()",),
    ),
    examples=(
        Example(
            "Reduce a document",
            "pipeline:\n"
            "  processors:\n"
            "    - mapping: |\n"
            "        root.id = this.id\n"
            "        root.fans = this.fans.filter(fan -> fan.obsession > 0.5)\n",
        ),
    ),
    categories=("Mapping", "Parsing"),
)


class MappingProcessor:
    """Applies a mapping to every message of a batch."""

    def __init__(self, mapping: Mapping, origin: ComponentRef) -> None:
        self._mapping = mapping
        self._origin = origin
        self._documents = mapping.uses.document
        self._keeps_state = mapping.uses.keyed_state
        # What is asked of all messages is asked of each: then parsing them together pays off.
        self._all_documents = self._documents and (mapping.uses.batch or mapping.only_index is None)

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return one batch of what the mapping makes, or none when it filters every message."""
        if self._keeps_state and ex.keyed_state is not None:
            ex.keyed_state.scope = self._origin.state_scope
        only = self._mapping.only_index
        if only is not None:
            # All others are deleted whatever they hold: the usual end of a window's group.
            indices = range(only, only + 1) if 0 <= only < len(batch) else range(0)
        else:
            indices = range(len(batch))
        if self._all_documents and not batch[0].has_doc():
            parse_batch(batch)
        apply = self._mapping.apply
        made: Batch = []
        for index in indices:
            try:
                result = apply(batch, index, ex)
            except MessageError as error:
                result = self._origin.fail(batch[index], str(error), ex)
            if result is not None:
                made.append(result)
        return [made] if made else []

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Map messages that are batches by themselves."""
        if self._keeps_state and ex.keyed_state is not None:
            ex.keyed_state.scope = self._origin.state_scope
        if self._documents and messages and not messages[0].has_doc():
            parse_batch(messages)
        return self._mapping.apply_each(messages, ex, self._origin.fail)

    def make_line_selector(self, mode: ColumnMode) -> LineSelector | None:
        """Return what selects lines as the mapping does; None if it does more than drop some."""
        line_filter = find_line_filter(self._mapping)
        if line_filter is None:
            return None
        # Imported here: the command line need not wait for numpy.
        from streamer.sdk.processing.line_selection import LineSelector

        return LineSelector(line_filter.paths, line_filter.is_kept, mode)


def build(parsed: str, context: BuildContext) -> MappingProcessor:
    """Compile the mapping."""
    return MappingProcessor(compile_mapping(parsed), ComponentRef(context.component))
