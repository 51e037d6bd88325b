"""`unnest`: a message for each item of an array, with the fields of its parent.

SQL's UNNEST, and EXPLODE of Spark and ksqlDB.
"""

from __future__ import annotations

from typing import Any, Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.limits import check_messages
from streamer.bloblang.runtime.paths import find_or_null, split_path
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.per_message import parse_document
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

PATH: Final = "path"
INTO: Final = "into"
INDEX: Final = "index"
KEEP_EMPTY: Final = "keep_empty"
INDEX_METADATA: Final = "unnest_index"
COUNT_METADATA: Final = "unnest_count"


def _check_path(path: str) -> str | None:
    return None if path else "is empty; expected the path of an array, such as order.items"


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "unnest",
    "Makes a message of each item of an array, with the other fields of the message.",
    description=(
        "SQL's UNNEST, and EXPLODE of Spark and ksqlDB. The messages stand where the message "
        "stood, in the order of the array, with its metadata, and with the metadata "
        f"`{INDEX_METADATA}` (from 0) and `{COUNT_METADATA}`. The array itself is left out. "
        "A message without items (the array is empty, null or not there) is dropped, unless "
        "`keep_empty` is set. One that is not a JSON object, or has something else at the path, "
        "stays "
        "as it is, and is marked as failed; so is one with more items than the section `limits` "
        "allows.\n\n"
        "Before a window, put it among the input's processors: then windows count items."
    ),
    fields=(
        Field(
            PATH,
            "string",
            "The dot path of the array.",
            access=Access.NONE,
            check=_check_path,
            examples=("items", "order.items"),
        ),
        Field(
            INTO,
            "string",
            "The field that gets the item. When empty, the fields of the item, which is an object "
            "then, are put beside those of the message; of one name the item's wins.",
            default="item",
            examples=("item", ""),
        ),
        Field(
            INDEX,
            "string",
            "A field that gets the place of the item in the array, from 0; none when empty.",
            default="",
            examples=("line",),
        ),
        Field(
            KEEP_EMPTY,
            "bool",
            "True if a message without items goes on as one message, whose item is null (LEFT "
            "JOIN UNNEST, EXPLODE_OUTER).",
            default=False,
        ),
    ),
    examples=(
        Example(
            "A message for each line of an order",
            "pipeline:\n"
            "  processors:\n"
            "    - unnest:\n"
            "        path: items\n"
            "        into: ''\n"
            "        index: line\n",
            'An order 7 with the items `[{"sku":"a"},{"sku":"b"}]` becomes '
            '`{"line":0,"order":7,"sku":"a"}` and `{"line":1,"order":7,"sku":"b"}`.',
        ),
    ),
    categories=("Mapping", "Utility"),
)


class UnnestProcessor:
    """Puts a message for each item in the place of one."""

    def __init__(self, parsed: ParsedFields, origin: ComponentRef) -> None:
        """Take the fields, and who speaks."""
        self._path = split_path(parsed[PATH])
        self._into: str = parsed[INTO]
        self._index: str = parsed[INDEX]
        self._keeps_empty: bool = parsed[KEEP_EMPTY]
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return one batch of what the messages become."""
        made: Batch = []
        for message in batch:
            try:
                made += self._unnest(message)
            except (MessageError, QueryError) as error:
                made.append(self._origin.fail(message, str(error), ex))
        return [made] if made else []

    def _unnest(self, message: Message) -> list[Message]:
        document = parse_document(message)
        if not isinstance(document, dict):
            raise MessageError(f"expected a JSON object, got {_name_type(document)}")
        items = find_or_null(document, self._path)
        if items is None or items == []:
            return self._keep_empty(message, document)
        if not isinstance(items, list):
            path = ".".join(self._path)
            raise MessageError(f"expected an array at {path}, got {_name_type(items)}")
        check_messages(len(items))
        parent = _without(document, self._path)
        count = len(items)
        return [
            message.with_doc(self._put(parent, item, index)).with_added_metadata(
                **{INDEX_METADATA: index, COUNT_METADATA: count}
            )
            for index, item in enumerate(items)
        ]

    def _keep_empty(self, message: Message, document: dict[str, Any]) -> list[Message]:
        if not self._keeps_empty:
            return []
        parent = _without(document, self._path)
        if self._into:
            parent[self._into] = None
        if self._index:
            parent[self._index] = None
        return [message.with_doc(parent).with_added_metadata(**{COUNT_METADATA: 0})]

    def _put(self, parent: dict[str, Any], item: Any, index: int) -> dict[str, Any]:
        if self._into:
            made = {**parent, self._into: item}
        elif isinstance(item, dict):
            made = {**parent, **item}
        else:
            what = f"item {index} is {_name_type(item)}"
            raise MessageError(f"{what}; expected an object, or a field to put it `into`")
        if self._index:
            made[self._index] = index
        return made


def _without(document: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """Return a copy of a document without what a path leads to; what is shared is not changed."""
    first, *rest = path
    copy = dict(document)
    inner = copy.get(first)
    if not rest:
        copy.pop(first, None)
    elif isinstance(inner, dict):
        copy[first] = _without(inner, tuple(rest))
    return copy


def _name_type(value: Any) -> str:
    names = {bool: "a boolean", dict: "an object", list: "an array", str: "a text"}
    return "null" if value is None else names.get(type(value), "a number")


def build(parsed: ParsedFields, context: BuildContext) -> UnnestProcessor:
    """Take the fields."""
    return UnnestProcessor(parsed, ComponentRef(context.component))
