"""`pinecone`: "inserts items into a Pinecone index".

Source: Pinecone's reference of `POST /vectors/upsert`, `/vectors/update` and `/vectors/delete`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.ai.errors import ModelError
from streamer.connectors.ai.vectors import FieldValue, read_floats
from streamer.connectors.http_client.json_client import ApiError, JsonClient
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.core.value import DELETED
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.output.protocols import MAX_IN_FLIGHT, Output, SendError, max_in_flight_field
from streamer.sdk.output.rejection import Reason, Rejection, is_rejection, make_invalid_rejection
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems, output_policy
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.checks import join_checks

HOST: Final = "host"
API_KEY: Final = "api_key"
OPERATION: Final = "operation"
NAMESPACE: Final = "namespace"
ID: Final = "id"
VECTOR_MAPPING: Final = "vector_mapping"
METADATA_MAPPING: Final = "metadata_mapping"

UPSERT: Final = "upsert-vectors"
UPDATE: Final = "update-vector"
DELETE: Final = "delete-vectors"

_API_VERSION: Final = "2025-01"
_TIMEOUT_S: Final = 30.0
_MAX_ITEMS: Final = 100
"""Vectors of a request: 2 MB is the most, and a vector may have 3,072 numbers."""


def _host_problem(host: str) -> str | None:
    if host.startswith("https://"):
        return "must be a name and not a URL; leave out https://"
    return None if host else "is empty; expected a host such as my-index-1a2b.svc.pinecone.io"


def _check(parsed: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    if parsed[OPERATION] != DELETE and parsed[VECTOR_MAPPING] is None:
        yield VECTOR_MAPPING, f"is needed by the operation {parsed[OPERATION]}"


SPEC: Final = Spec(
    Kind.OUTPUT,
    "pinecone",
    "Writes vectors to an index of Pinecone, or deletes them.",
    description=(
        f"Up to {_MAX_ITEMS} messages of a batch are one request; updates are a request each. Of "
        "several messages of a batch with one id, the last one counts. A message that is refused "
        "is rejected alone: a request that fails for what it has is divided. A message whose "
        "`vector_mapping` is `deleted()` is not sent.\n"
        "\n"
        "After a crash, messages may be written again, which changes nothing. A pause that "
        "Pinecone wants (`Retry-After`) is for all requests of the worker. A `host` that begins "
        "with `http://` is one without TLS, such as Pinecone Local."
    ),
    fields=(
        max_in_flight_field(),
        BATCHING_FIELD,
        Field(
            HOST,
            "string",
            "The host of the index.",
            access=Access.ADDRESS,
            check=_host_problem,
            examples=("my-index-1a2b.svc.pinecone.io",),
        ),
        Field(API_KEY, "string", "The key of the API.", secret=True, examples=("${PINECONE_KEY}",)),
        Field(
            OPERATION,
            "string",
            "What is done.",
            default=UPSERT,
            options=(UPDATE, UPSERT, DELETE),
        ),
        Field(
            NAMESPACE,
            "string",
            "The namespace in the index; the default one without it.",
            default="",
            advanced=True,
            interpolated=True,
        ),
        Field(ID, "string", "The id of the vector.", interpolated=True, examples=("${! @id }",)),
        Field(
            VECTOR_MAPPING,
            "string",
            "A mapping that gives the vector, a list of numbers. Not needed to delete.",
            optional=True,
            mapping=True,
            examples=("root = this.embedding",),
        ),
        Field(
            METADATA_MAPPING,
            "string",
            "A mapping that gives the metadata of the vector, an object.",
            optional=True,
            mapping=True,
            examples=('root = {"text": this.text}', "root = metadata()"),
        ),
    ),
    check=join_checks(batching_problems, _check),
    examples=(
        Example(
            "Embeddings of texts",
            "output:\n"
            "  pinecone:\n"
            "    host: my-index-1a2b.svc.pinecone.io\n"
            "    api_key: ${PINECONE_KEY}\n"
            "    id: ${! this.id }\n"
            "    vector_mapping: root = this.embedding\n"
            "    metadata_mapping: 'root = {\"text\": this.text}'\n"
            "    batching:\n"
            "      count: 100\n"
            "      period: 1s\n",
        ),
    ),
    begin={
        "host": "my-index-1a2b.svc.pinecone.io",
        "api_key": "${PINECONE_KEY}",
        "id": "${! this.id }",
        "vector_mapping": "root = this.embedding",
    },
    categories=("AI",),
    delivery="at least once; a message that is written again changes nothing",
)


class _Items:
    """The vectors of one request or several, all of one namespace.

    Attributes:
        by_id: what is sent, by id; the last one of an id.
        places: the indices of the messages of an id.
    """

    def __init__(self) -> None:
        self.by_id: dict[str, dict[str, Any]] = {}
        self.places: dict[str, list[int]] = {}

    def add(self, item: dict[str, Any], index: int) -> None:
        """Add what a message gives."""
        self.by_id[item[ID]] = item
        self.places.setdefault(item[ID], []).append(index)


class PineconeOutput(Output):
    """Sends vectors."""

    def __init__(self, parsed: ParsedFields, context: BuildContext) -> None:
        """Compile the fields; nothing is connected yet."""
        self.max_in_flight = parsed[MAX_IN_FLIGHT]
        self.policy = output_policy(parsed, context)
        self._client = context.worker_resource("pinecone", lambda: _make_client(parsed))
        self._operation: str = parsed[OPERATION]
        self._namespace = compile_interpolation(parsed[NAMESPACE])
        self._id = compile_interpolation(parsed[ID])
        self._vector: FieldValue | None = None
        self._metadata: FieldValue | None = None
        if self._operation != DELETE:
            self._vector = FieldValue(VECTOR_MAPPING, parsed[VECTOR_MAPPING])
            if parsed[METADATA_MAPPING] is not None:
                self._metadata = FieldValue(METADATA_MAPPING, parsed[METADATA_MAPPING])

    def send(self, batch: Batch, ex: Execution) -> None:
        """Send the vectors of a batch; those that fail are named."""
        failed: dict[int, str] = {}
        namespaces: dict[str, _Items] = {}
        for index in range(len(batch)):
            try:
                item = self._make_item(batch, index, ex)
                namespace = interpolate(NAMESPACE, self._namespace, batch, index, ex)
            except MessageError as error:
                failed[index] = make_invalid_rejection(str(error))
                continue
            if item is not None:
                namespaces.setdefault(namespace, _Items()).add(item, index)
        outage = ""
        size = 1 if self._operation == UPDATE else _MAX_ITEMS
        for namespace, items in namespaces.items():
            ids = list(items.by_id)
            for start in range(0, len(ids), size):
                texts = dict.fromkeys(ids[start : start + size], outage)
                if not outage:
                    texts = self._send_some(ids[start : start + size], items, namespace, ex)
                for name, text in texts.items():
                    failed |= dict.fromkeys(items.places[name], text)
                    outage = outage or ("" if is_rejection(text) else text)
        if failed:
            raise SendError(outage or next(iter(failed.values())), failed)

    def _make_item(self, batch: Batch, index: int, ex: Execution) -> dict[str, Any] | None:
        """Return what is sent of a message; None for nothing."""
        item: dict[str, Any] = {ID: interpolate(ID, self._id, batch, index, ex)}
        if self._vector is None:
            return item
        vector = self._vector.of(batch, index, ex)
        if vector is DELETED:
            return None
        item["values"] = read_floats(vector, VECTOR_MAPPING)
        if self._metadata is not None:
            metadata = self._metadata.of(batch, index, ex)
            if metadata is not DELETED:
                if not isinstance(metadata, dict):
                    raise ModelError(
                        'metadata_mapping gives no object; expected one such as {"text": this.text}'
                    )
                item["setMetadata" if self._operation == UPDATE else "metadata"] = metadata
        return item

    def _send_some(
        self, ids: Sequence[str], items: _Items, namespace: str, ex: Execution
    ) -> dict[str, str]:
        """Send items; return why some have failed, by id."""
        named = {NAMESPACE: namespace} if namespace else {}
        try:
            if self._operation == DELETE:
                self._client.post("/vectors/delete", {"ids": list(ids), **named}, ex)
            elif self._operation == UPDATE:
                self._client.post("/vectors/update", {**items.by_id[ids[0]], **named}, ex)
            else:
                vectors = [items.by_id[one] for one in ids]
                self._client.post("/vectors/upsert", {"vectors": vectors, **named}, ex)
        except ApiError as error:
            if not error.is_rejected:
                return dict.fromkeys(ids, str(error))
            if len(ids) == 1:
                reason = Reason.TOO_LARGE if error.is_too_large else Reason.REFUSED
                return {ids[0]: Rejection(str(error), reason)}
            middle = len(ids) // 2
            first = self._send_some(ids[:middle], items, namespace, ex)
            return {**first, **self._send_some(ids[middle:], items, namespace, ex)}
        return {}

    def probe(self) -> str:
        """Check that the index answers, and takes the key."""
        return self._client.probe("/describe_index_stats")


def _make_client(parsed: ParsedFields) -> JsonClient:
    host: str = parsed[HOST]
    headers = {"Api-Key": parsed[API_KEY], "X-Pinecone-API-Version": _API_VERSION}
    return JsonClient(
        host if host.startswith("http://") else f"https://{host}",
        headers,
        timeout_s=_TIMEOUT_S,
        permissions=parsed.permissions,
        is_of_output=True,
    )


def build(parsed: ParsedFields, context: BuildContext) -> PineconeOutput:
    """Compile the fields; it is connected when something is sent."""
    return PineconeOutput(parsed, context)
