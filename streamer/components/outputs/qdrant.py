"""`qdrant`: "adds items to a Qdrant collection", over gRPC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

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
from streamer.connectors.qdrant.points import fill_payload, make_point_id, make_vectors
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.core.value import DELETED
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.output.protocols import MAX_IN_FLIGHT, Output, SendError, max_in_flight_field
from streamer.sdk.output.rejection import Reason, Rejection, is_rejection, make_invalid_rejection
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems, output_policy
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.checks import join_checks

ID: Final = "id"
PAYLOAD_MAPPING: Final = "payload_mapping"

_MAX_POINTS: Final = 256
"""Points of a request: the server takes 32 MB, and a vector may have thousands of numbers."""

SPEC: Final = Spec(
    Kind.OUTPUT,
    "qdrant",
    "Writes points to a collection of Qdrant.",
    description=(
        f"Up to {_MAX_POINTS} messages of a batch for one collection are one request, which "
        "returns when the points are written. A point with the id of another one replaces it. A "
        "message that is refused is rejected alone: a request that fails for what it has is "
        "divided. A message whose `vector_mapping` is `deleted()` is not sent.\n"
        "\n"
        "A collection that is not there blocks the stream, unless its name depends on the message: "
        "then the message is rejected."
    ),
    fields=(
        max_in_flight_field(),
        BATCHING_FIELD,
        *CLIENT_FIELDS,
        Field(
            ID,
            "string",
            "A mapping that gives the id of the point: a UUID, or a number from 0.",
            mapping=True,
            examples=('root = "dc88c126-679f-49f5-ab85-04b77e8c2791"', "root = this.id"),
        ),
        Field(
            PAYLOAD_MAPPING,
            "string",
            "A mapping that gives the payload of the point, an object.",
            default="root = {}",
            mapping=True,
            examples=('root = {"text": this.text}', "root = metadata()"),
        ),
    ),
    check=join_checks(client_problems, batching_problems),
    examples=(
        Example(
            "Embeddings of texts",
            "output:\n"
            "  qdrant:\n"
            "    grpc_host: localhost:6334\n"
            "    collection_name: texts\n"
            "    id: root = this.id\n"
            "    vector_mapping: root = this.embedding\n"
            "    payload_mapping: 'root = {\"text\": this.text}'\n"
            "    batching:\n"
            "      count: 256\n"
            "      period: 1s\n",
        ),
    ),
    begin={
        "grpc_host": "localhost:6334",
        "collection_name": "texts",
        "id": "root = this.id",
        "vector_mapping": "root = this.embedding",
    },
    categories=("AI",),
    delivery="at least once; a point that is written again changes nothing",
    limits="no skip_cert_verify",
    requires=PACKAGES,
)


class _Point(NamedTuple):
    """A point, and the place of its message in the batch."""

    place: int
    point: Any


class QdrantOutput(Output):
    """Sends points."""

    def __init__(self, parsed: ParsedFields, context: BuildContext) -> None:
        """Compile the fields; nothing is connected yet."""
        self.max_in_flight = parsed[MAX_IN_FLIGHT]
        self.policy = output_policy(parsed, context)
        self._client = context.worker_resource("qdrant", lambda: QdrantClient(parsed))
        self._collection = compile_interpolation(parsed[COLLECTION_NAME])
        self._id = FieldValue(ID, parsed[ID], is_document=False)
        self._vector = FieldValue(VECTOR_MAPPING, parsed[VECTOR_MAPPING])
        self._payload = FieldValue(PAYLOAD_MAPPING, parsed[PAYLOAD_MAPPING])

    def send(self, batch: Batch, ex: Execution) -> None:
        """Send the points of a batch; those that fail are named."""
        failed: dict[int, str] = {}
        collections: dict[str, list[_Point]] = {}
        for index in range(len(batch)):
            try:
                name = interpolate(COLLECTION_NAME, self._collection, batch, index, ex)
                point = self._make_point(batch, index, ex)
            except MessageError as error:
                failed[index] = make_invalid_rejection(str(error))
                continue
            if point is not None:
                collections.setdefault(name, []).append(_Point(index, point))
        outage = ""
        for name, points in collections.items():
            for start in range(0, len(points), _MAX_POINTS):
                part = points[start : start + _MAX_POINTS]
                texts = dict.fromkeys((one.place for one in part), outage)
                if not outage:
                    texts = self._send_some(name, part)
                failed |= texts
                outage = outage or next((t for t in texts.values() if not is_rejection(t)), "")
        if failed:
            raise SendError(outage or next(iter(failed.values())), failed)

    def _make_point(self, batch: Batch, index: int, ex: Execution) -> Any:
        """Return the point of a message; None for nothing."""
        point = message_class("PointStruct")(id=make_point_id(self._id.of(batch, index, ex)))
        vector = self._vector.of(batch, index, ex)
        if vector is DELETED:
            return None
        for name, one in make_vectors(vector, VECTOR_MAPPING).items():
            point.vectors.vectors.vectors[name].CopyFrom(one)
        payload = self._payload.of(batch, index, ex)
        if not isinstance(payload, dict):
            raise ModelError('payload_mapping gives no object; expected one such as {"a": 1}')
        fill_payload(point.payload, payload)
        return point

    def _send_some(self, collection: str, points: Sequence[_Point]) -> dict[int, str]:
        """Send points; return why some have failed, by index."""
        try:
            self._client.upsert(collection, (one.point for one in points))
        except QdrantError as error:
            places = [one.place for one in points]
            if error.is_unknown_collection and self._collection.static is None:
                return dict.fromkeys(places, Rejection(str(error), Reason.REFUSED))
            if not error.is_rejected:
                return dict.fromkeys(places, str(error))
            if len(points) == 1:
                reason = Reason.TOO_LARGE if error.is_too_large else Reason.REFUSED
                return {places[0]: Rejection(str(error), reason)}
            middle = len(points) // 2
            first = self._send_some(collection, points[:middle])
            return {**first, **self._send_some(collection, points[middle:])}
        return {}

    def probe(self) -> str:
        """Check that the server answers."""
        return self._client.probe()


def build(parsed: ParsedFields, context: BuildContext) -> QdrantOutput:
    """Compile the fields; it is connected when something is sent."""
    return QdrantOutput(parsed, context)
