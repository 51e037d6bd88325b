"""The bulk API: lines of actions and documents, and an answer with an item for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.search.fields import (
    ACTION,
    ID,
    INDEX,
    PIPELINE,
    RETRY_ON_CONFLICT,
    ROUTING,
    TYPE,
)
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.json.dump import dump_json
from streamer.core.json.parse import parse_json
from streamer.core.message import Batch, Message
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.output.rejection import Reason, Rejection
from streamer.sdk.spec import ParsedFields

PATH: Final = "/_bulk?filter_path=errors%2Citems.%2A.status%2Citems.%2A.error"
"""What else the answer would have, such as the ids again, nobody needs."""

_INTERPOLATED: Final = (ACTION, INDEX, ID, PIPELINE, ROUTING, TYPE)

# These say that of any document: who asks may not, an index that is full or read-only, a conflict
# with another change at the same time.
_REFUSED_FOR_ALL: Final = frozenset({401, 403, 407, 408, 425, 429})
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_NO_INDEX: Final = "index_not_found_exception"


class BulkAnswerError(StreamerError):
    """The answer is none of the bulk API."""


@dataclass(frozen=True, slots=True)
class BulkItem:
    """One action of a request.

    Attributes:
        index: the message's place in its batch.
        lines: the action, and the document where it has one; each ends with a line break.
        action: the name of the action, as the server knows it.
    """

    index: int
    lines: bytes
    action: str


def _keep_document(message: Message) -> bytes:
    """Return the document of a message on one line."""
    document = message.doc
    if not isinstance(document, dict):
        raise MessageError("the message is no JSON object, which a document has to be")
    raw = message.raw
    return raw if b"\n" not in raw and b"\r" not in raw else dump_json(document)


def _wrap_document(message: Message) -> bytes:
    return b'{"doc":' + _keep_document(message) + b"}"


def _wrap_upsert(message: Message) -> bytes:
    return b'{"doc":' + _keep_document(message) + b',"doc_as_upsert":true}'


def _select_update(message: Message) -> bytes:
    """Return those parts of an update that Connect sends; others could change its outcome."""
    document = message.doc
    if not isinstance(document, dict):
        raise MessageError("the message is no JSON object with doc, script or upsert")
    update = {
        name: document[name]
        for name in ("doc", "script", "upsert")
        if document.get(name) is not None
    }
    if not update:
        raise MessageError("the message has none of the fields doc, script and upsert")
    return dump_json(update)


MakeDocument = Callable[[Message], bytes]

INDEX_ACTION: Final = ("index", _keep_document)
CREATE_ACTION: Final = ("create", _keep_document)
DELETE_ACTION: Final = ("delete", None)
UPDATE_ACTION: Final = ("update", _select_update)
RAW_UPDATE_ACTION: Final = ("update", _keep_document)
WRAPPED_UPDATE_ACTION: Final = ("update", _wrap_document)
WRAPPED_UPSERT_ACTION: Final = ("update", _wrap_upsert)

Actions = Mapping[str, tuple[str, MakeDocument | None]]
"""By the name in a config: the action of the API, and what makes the document of a message."""


@dataclass(frozen=True)
class ItemMaker:
    """Makes actions of messages.

    Attributes:
        actions: those that there are.
        templates: the compiled fields, by name.
        retry_on_conflict: how often the server repeats an update.
    """

    actions: Actions
    templates: Mapping[str, Any]
    retry_on_conflict: int

    @classmethod
    def of_fields(cls, parsed: ParsedFields, actions: Actions) -> ItemMaker:
        """Compile the fields of an output."""
        templates = {
            name: compile_interpolation(parsed[name]) for name in _INTERPOLATED if parsed.get(name)
        }
        return cls(actions, templates, parsed.get(RETRY_ON_CONFLICT) or 0)

    @property
    def has_own_index(self) -> bool:
        """Whether the index depends on the message."""
        return self.templates[INDEX].static is None

    def make(self, batch: Batch, index: int, ex: Execution) -> BulkItem:
        """Make the action of a message.

        Raises:
            MessageError: none can be made of it.
        """
        values = {
            name: interpolate(name, text, batch, index, ex) for name, text in self.templates.items()
        }
        named = values.get(ACTION, "")
        if named not in self.actions:
            raise MessageError(f"action {named!r} is not one of {', '.join(self.actions)}")
        action, make_document = self.actions[named]
        if not values[INDEX]:
            raise MessageError("the name of the index is empty")
        if action in ("update", "delete") and not values.get(ID):
            raise MessageError(f"the id is empty, which the action {named} needs")
        head: dict[str, Any] = {"_index": values[INDEX]}
        given = {"_id": ID, "_type": TYPE, "routing": ROUTING}
        if action in ("index", "create"):
            given["pipeline"] = PIPELINE
        head |= {key: values[name] for key, name in given.items() if values.get(name)}
        if action == "update" and self.retry_on_conflict:
            head["retry_on_conflict"] = self.retry_on_conflict
        lines = dump_json({action: head}) + b"\n"
        if make_document is not None:
            lines += make_document(batch[index]) + b"\n"
        return BulkItem(index, lines, action)


def read_failures(body: bytes, items: Sequence[BulkItem], has_own_index: bool) -> dict[int, str]:
    """Return why some actions have failed, by the index of their message.

    Args:
        body: the answer.
        items: the actions, in the order of the request.
        has_own_index: whether a message says in which index it goes.

    Raises:
        BulkAnswerError: the answer does not tell of each of them.
    """
    try:
        results = parse_json(body)["items"]
        pairs = [next(iter(result.values())) for result in results]
        statuses = [int(result["status"]) for result in pairs]
    except (ValueError, TypeError, KeyError, AttributeError, StopIteration):
        raise BulkAnswerError(
            "the answer is none of the bulk API; expected the URL of Elasticsearch or OpenSearch"
        ) from None
    if len(statuses) != len(items):
        raise BulkAnswerError(
            f"the answer has {len(statuses)} items for {len(items)} actions; expected one for each"
        )
    failed = {}
    for item, status, result in zip(items, statuses, pairs, strict=True):
        if 200 <= status <= 299:
            continue
        error = result.get("error")
        if status == _NOT_FOUND and not error and item.action == "delete":
            continue  # it has been deleted before
        failed[item.index] = _failure_text(item, status, error, has_own_index)
    return failed


def _failure_text(item: BulkItem, status: int, error: Any, has_own_index: bool) -> str:
    kind = str(error.get("type") or "") if isinstance(error, dict) else ""
    text = f"{item.action} failed with status {status}: {describe_error(error)}"
    refused = 400 <= status <= 499 and status not in _REFUSED_FOR_ALL
    if status == _CONFLICT:
        # Another change came in between, unless the document was not to be there.
        refused = item.action == "create"
    if status == _NOT_FOUND and kind == _NO_INDEX:
        refused = has_own_index
    return Rejection(text, Reason.REFUSED) if refused else text


def describe_error(error: Any) -> str:
    """Return the words of an error of the server, with its cause."""
    parts: list[str] = []
    while isinstance(error, dict) and len(parts) < 4:
        part = ": ".join(str(error[key]) for key in ("type", "reason") if error.get(key))
        if part and part not in parts:
            parts.append(part)
        error = error.get("caused_by")
    if isinstance(error, str) and not parts:
        parts.append(error)
    return ", caused by ".join(parts)[:1_000] or "no reason is given"
