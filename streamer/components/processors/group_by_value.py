"""`group_by_value`: splits a batch into groups of messages with the same value.

"Splits a batch of messages into N batches, where each resulting batch contains a group of
messages determined by a function interpolated string evaluated per message." Groups come in the
order of their first messages. A message whose value cannot be found is marked as failed, and
joins the group of the empty value.
"""

from __future__ import annotations

from typing import Final

from streamer.bloblang import Interpolation, compile_interpolation
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.bulk import documents_of
from streamer.core.message import Batch
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

VALUE: Final = "value"

# Parsed documents are kept for the processors that follow, unless the batch is so large (a window
# that is not sharded by this value) that they would take several times the memory of its bytes.
_MAX_KEPT_PARSED: Final = 20_000

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "group_by_value",
    "Splits a batch into groups of messages whose value, an interpolated string, is the same.",
    description=(
        "Use it after a buffer that makes batches, such as `system_window`. To get single "
        "messages again, follow it with `split`."
    ),
    fields=(
        Field(
            VALUE,
            "string",
            "Key of the groups.",
            interpolated=True,
            examples=('${! meta("kafka_key") }', '${! json("foo.bar") }-${! meta("baz") }'),
        ),
    ),
    examples=(
        Example(
            "Group the messages of a window",
            "buffer:\n"
            "  system_window:\n"
            "    size: 1h\n"
            "pipeline:\n"
            "  processors:\n"
            "    - group_by_value:\n"
            "        value: '${! json(\"traffic_light\") }'\n",
        ),
    ),
    categories=("Composition",),
)


class GroupByValueProcessor:
    """Splits batches by an interpolated string."""

    def __init__(self, value: Interpolation, origin: ComponentRef) -> None:
        self._value = value
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return a batch per value; the batch itself when there is only one value."""
        if not batch:
            return []
        if self._value.static is not None:
            return [batch]
        keys = self._fast_keys(batch)
        if keys is None:
            batch = list(batch)
            keys = self._keys(batch, ex)
        if keys.count(keys[0]) == len(keys):
            return [batch]
        groups: dict[str, Batch] = {}
        for key, message in zip(keys, batch, strict=True):
            group = groups.get(key)
            if group is None:
                groups[key] = [message]
            else:
                group.append(message)
        return list(groups.values())

    def _fast_keys(self, batch: Batch) -> list[str] | None:
        """Return every message's value, or None when one of them needs the careful way."""
        of_document = self._value.doc_fn
        if of_document is None:
            return None
        try:
            return [of_document(doc) for doc in documents_of(batch, len(batch) <= _MAX_KEPT_PARSED)]
        except Exception:
            return None

    def _keys(self, batch: Batch, ex: Execution) -> list[str]:
        """Return every message's value; marks, in the batch, those that have none."""
        keys: list[str] = []
        for index in range(len(batch)):
            try:
                keys.append(self._value.text_of(batch, index, ex))
            except MessageError as error:
                batch[index] = self._origin.fail(
                    batch[index],
                    f"group value interpolation error: {error}",
                    ex,
                    line=f"Group value interpolation error: {error}",
                )
                keys.append("")
        return keys


def build(parsed: ParsedFields, context: BuildContext) -> GroupByValueProcessor:
    """Compile the value."""
    return GroupByValueProcessor(
        compile_interpolation(parsed[VALUE]), ComponentRef(context.component)
    )
