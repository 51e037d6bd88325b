"""`qdrant`: finds the points of a Qdrant collection that are nearest to a vector of the message.

It will "query items within a Qdrant collection", over gRPC.
"""

from __future__ import annotations

from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.ai.errors import ModelError
from streamer.connectors.ai.vectors import FieldValue
from streamer.connectors.qdrant.client import (
    CLIENT_FIELDS,
    COLLECTION_NAME,
    PACKAGES,
    VECTOR_MAPPING,
    QdrantClient,
    QdrantError,
    client_problems,
)
from streamer.connectors.qdrant.messages import message_class
from streamer.connectors.qdrant.points import make_vectors
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.core.value import DELETED
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.processing.per_message import PerMessageProcessor
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

FILTER: Final = "filter"
PAYLOAD_FIELDS: Final = "payload_fields"
PAYLOAD_FILTER: Final = "payload_filter"
LIMIT: Final = "limit"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "qdrant",
    "Finds the points of a Qdrant collection that are nearest to a vector of the message.",
    description=(
        "The message is replaced by the list of points, the nearest first: objects with `id`, "
        "`score`, `version` and `payload`, in the JSON form of Protobuf. A message that has no "
        "answer within half a minute stays as it is and is marked as failed."
    ),
    fields=(
        *CLIENT_FIELDS,
        Field(
            FILTER,
            "string",
            "A mapping that gives a filter of Qdrant, in the JSON form of Protobuf.",
            optional=True,
            mapping=True,
            examples=('root.must = [{"field": {"key": "city", "match": {"text": "Bonn"}}}]',),
        ),
        Field(
            PAYLOAD_FIELDS,
            "string",
            "Fields of the payload that the result has, or has not.",
            default=(),
            shape="array",
            access=Access.REMOTE,
        ),
        Field(
            PAYLOAD_FILTER,
            "string",
            "Whether the result has the `payload_fields`, or all others.",
            default="include",
            options=("include", "exclude"),
        ),
        Field(
            LIMIT,
            "int",
            "Maximum number of points.",
            default=10,
            check=lambda count: None if count > 0 else "must be at least 1",
        ),
    ),
    check=client_problems,
    examples=(
        Example(
            "Texts that are like a question",
            "pipeline:\n"
            "  processors:\n"
            "    - branch:\n"
            "        processors:\n"
            "          - qdrant:\n"
            "              grpc_host: localhost:6334\n"
            "              collection_name: texts\n"
            "              vector_mapping: root = this.embedding\n"
            "              payload_fields: [text]\n"
            "              limit: 3\n"
            "        result_map: root.texts = this.map_each(p -> p.payload.text.stringValue)\n",
        ),
    ),
    begin={
        "grpc_host": "localhost:6334",
        "collection_name": "texts",
        "vector_mapping": "root = this.embedding",
    },
    categories=("AI",),
    limits="no skip_cert_verify",
    requires=PACKAGES,
)


class _Finder:
    """Finds points for a message."""

    def __init__(self, parsed: ParsedFields, client: QdrantClient) -> None:
        self._client = client
        self._collection = compile_interpolation(parsed[COLLECTION_NAME])
        self._vector = FieldValue(VECTOR_MAPPING, parsed[VECTOR_MAPPING])
        self._filter = None if parsed[FILTER] is None else FieldValue(FILTER, parsed[FILTER])
        self._limit: int = parsed[LIMIT]
        fields, includes = list(parsed[PAYLOAD_FIELDS]), parsed[PAYLOAD_FILTER] == "include"
        self._payload: dict[str, Any] = {"enable": not includes}
        if fields:
            self._payload = {"include" if includes else "exclude": {"fields": fields}}

    def __call__(self, message: Message, ex: Execution) -> Message:
        """Return the message with the points in its place."""
        from google.protobuf.json_format import MessageToDict, ParseDict, ParseError

        request = message_class("QueryPoints")(
            collection_name=interpolate(COLLECTION_NAME, self._collection, [message], 0, ex),
            limit=self._limit,
            with_payload=self._payload,
        )
        vectors = make_vectors(self._vector.of([message], 0, ex), VECTOR_MAPPING)
        if len(vectors) != 1:
            raise ModelError(f"expected only a single vector to search on, got: {len(vectors)}")
        [(name, vector)] = vectors.items()
        if name:
            request.using = name
        kind = vector.WhichOneof("variant")
        getattr(request.query.nearest, kind).CopyFrom(getattr(vector, kind))
        condition = None if self._filter is None else self._filter.of([message], 0, ex)
        if condition is not None and condition is not DELETED:
            try:
                ParseDict(condition, request.filter)
            except (ParseError, TypeError, AttributeError, ValueError) as error:
                raise ModelError(f"invalid filter: {error}") from None
        try:
            points = self._client.query(request)
        except QdrantError as error:
            raise ModelError(f"querying qdrant: {error}") from None
        return message.with_doc([MessageToDict(point) for point in points])


class _QueryProcessor(PerMessageProcessor):
    """Finds points for every message; see `SupportsProbe`."""

    def __init__(self, finder: _Finder, origin: ComponentRef, client: QdrantClient) -> None:
        super().__init__(finder, origin)
        self._client = client

    def probe(self) -> str:
        """Check that the server answers."""
        return self._client.probe()


def build(parsed: ParsedFields, context: BuildContext) -> PerMessageProcessor:
    """Compile the fields; it is connected at the first message."""
    client = context.worker_resource("qdrant", lambda: QdrantClient(parsed))
    return _QueryProcessor(_Finder(parsed, client), ComponentRef(context.component), client)
