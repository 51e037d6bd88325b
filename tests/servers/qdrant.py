"""A stand-in for Qdrant, in this process: its own messages over gRPC, and a search by product."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

KEY = "the-key"
SIZE = 2
"""Numbers of a vector in a collection."""


@dataclass
class Qdrant:
    """A running server, its collections, and what it was sent."""

    address: str = ""
    collections: dict[str, dict[Any, Any]] = field(default_factory=lambda: {"texts": {}})
    upserts: list[Any] = field(default_factory=list)
    queries: list[Any] = field(default_factory=list)
    failures: list[tuple[Any, str]] = field(default_factory=list)
    """Statuses that are answered before anything else, in order."""


def _check(kept: Qdrant, context: Any, collection: str | None = None) -> None:
    """End a request that is to fail, has no key, or names a collection that is not there."""
    import grpc

    if kept.failures:
        context.abort(*kept.failures.pop(0))
    if ("api-key", KEY) not in [(one.key, one.value) for one in context.invocation_metadata()]:
        context.abort(grpc.StatusCode.UNAUTHENTICATED, "Invalid API key")
    if collection is not None and collection not in kept.collections:
        context.abort(grpc.StatusCode.NOT_FOUND, f"Collection `{collection}` doesn't exist!")


@contextmanager
def qdrant_server(port: int = 0, tls: Any = None) -> Iterator[Qdrant]:
    """Run one, on a port of its own if none is given."""
    import grpc
    from qdrant_client.grpc import (
        points_pb2,
        points_service_pb2_grpc,
        qdrant_pb2,
        qdrant_pb2_grpc,
    )

    kept = Qdrant()

    class Points(points_service_pb2_grpc.PointsServicer):  # type: ignore[misc]
        def Upsert(self, request: Any, context: Any) -> Any:
            kept.upserts.append(request)
            _check(kept, context, request.collection_name)
            for point in request.points:
                for vector in point.vectors.vectors.vectors.values():
                    if vector.HasField("dense") and len(vector.dense.data) != SIZE:
                        text = f"Wrong input: Vector dimension error: {len(vector.dense.data)}"
                        context.abort(grpc.StatusCode.INVALID_ARGUMENT, text)
            for point in request.points:
                number = point.id.uuid or point.id.num
                kept.collections[request.collection_name][number] = point
            return points_pb2.PointsOperationResponse(time=0.1)

        def Query(self, request: Any, context: Any) -> Any:
            kept.queries.append(request)
            _check(kept, context, request.collection_name)
            asked = request.query.nearest.dense.data
            found = []
            for point in kept.collections[request.collection_name].values():
                stored = point.vectors.vectors.vectors[request.using].dense.data
                one = points_pb2.ScoredPoint(id=point.id, version=3)
                one.score = sum(a * b for a, b in zip(asked, stored, strict=True))
                names = list(request.with_payload.include.fields)
                for name, value in point.payload.items():
                    if request.with_payload.enable or name in names:
                        one.payload[name].CopyFrom(value)
                found.append(one)
            found.sort(key=lambda one: -one.score)
            return points_pb2.QueryResponse(result=found[: request.limit])

    class Health(qdrant_pb2_grpc.QdrantServicer):  # type: ignore[misc]
        def HealthCheck(self, request: Any, context: Any) -> Any:
            _check(kept, context)
            return qdrant_pb2.HealthCheckReply(title="qdrant", version="1.15.0")

    server = grpc.server(ThreadPoolExecutor(4))
    points_service_pb2_grpc.add_PointsServicer_to_server(Points(), server)
    qdrant_pb2_grpc.add_QdrantServicer_to_server(Health(), server)
    where = f"127.0.0.1:{port}"
    bound = server.add_insecure_port(where) if tls is None else server.add_secure_port(where, tls)
    kept.address = f"127.0.0.1:{bound}"
    server.start()
    try:
        yield kept
    finally:
        server.stop(0).wait()
