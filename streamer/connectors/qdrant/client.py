"""A client of Qdrant over gRPC, and the fields of what uses it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from streamer.connectors.qdrant.messages import message_class
from streamer.connectors.tls import (
    CLIENT_CERTS,
    ENABLED,
    ROOT_CAS,
    ROOT_CAS_FILE,
    SKIP_CERT_VERIFY,
    TLS,
    TLS_FIELD,
    tls_problems,
)
from streamer.core.errors import StreamerError
from streamer.core.urls import address_problem, split_url
from streamer.sdk.spec import Access, Field, Package, ParsedFields

if TYPE_CHECKING:
    import grpc

GRPC_HOST: Final = "grpc_host"
API_TOKEN: Final = "api_token"
COLLECTION_NAME: Final = "collection_name"
VECTOR_MAPPING: Final = "vector_mapping"

PACKAGES: Final = (Package("grpc"),)

_TIMEOUT_S: Final = 30.0
_MAX_ANSWER_BYTES: Final = 64 << 20
_SHOWN_CHARACTERS: Final = 300
_REJECTED: Final = frozenset({"INVALID_ARGUMENT", "OUT_OF_RANGE", "ALREADY_EXISTS"})


def _host_problem(text: str) -> str | None:
    if "://" in text:
        return "is a URL; expected host and port, such as localhost:6334"
    return address_problem(text)


CLIENT_FIELDS: Final = (
    Field(
        GRPC_HOST,
        "string",
        "Host and port of Qdrant's gRPC.",
        access=Access.ADDRESS,
        check=_host_problem,
        examples=("localhost:6334", "xyz-example.eu-central.aws.cloud.qdrant.io:6334"),
    ),
    Field(API_TOKEN, "string", "The key of the API.", default="", secret=True),
    TLS_FIELD,
    Field(
        COLLECTION_NAME,
        "string",
        "The name of the collection.",
        interpolated=True,
        access=Access.REMOTE,
    ),
    Field(
        VECTOR_MAPPING,
        "string",
        "A mapping that gives a vector: a list of numbers, a list of such lists, an object with "
        "`indices` and `values`, or an object that has these by name.",
        mapping=True,
        examples=("root = this.vector", 'root = {"some_dense": [0.352, 0.532]}'),
    ),
)


def client_problems(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    """Return what is wrong with these fields together, for a spec's `check`."""
    yield from tls_problems(parsed)
    if parsed[TLS][ENABLED] and parsed[TLS][SKIP_CERT_VERIFY]:
        yield (
            f"{TLS}.{SKIP_CERT_VERIFY}",
            "is not available over gRPC; name the server's authority in root_cas_file",
        )


class QdrantError(StreamerError):
    """A call has failed.

    Attributes:
        code: the name of gRPC's status.
    """

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code

    @property
    def is_too_large(self) -> bool:
        """Whether the request is larger than the server takes."""
        return self.code in ("RESOURCE_EXHAUSTED", "OUT_OF_RANGE") and "larger than" in str(self)

    @property
    def is_rejected(self) -> bool:
        """Whether the request was refused for what it has."""
        return self.code in _REJECTED or self.is_too_large

    @property
    def is_unknown_collection(self) -> bool:
        """Whether there is no such collection."""
        return self.code == "NOT_FOUND"


class QdrantClient:
    """Calls Qdrant. Threads may share it."""

    def __init__(self, parsed: ParsedFields) -> None:
        """Take the fields; nothing is connected yet."""
        self._parsed = parsed
        self._lock = threading.Lock()
        self._channel: grpc.Channel | None = None

    def upsert(self, collection: str, points: Iterable[Any]) -> None:
        """Write points, and wait until they are written.

        Raises:
            QdrantError: they are not.
        """
        request = message_class("UpsertPoints")(collection_name=collection, wait=True)
        request.points.extend(points)
        self._call("/qdrant.Points/Upsert", request, "PointsOperationResponse")

    def query(self, request: Any) -> Any:
        """Return the points that a request, which is a `QueryPoints`, finds.

        Raises:
            QdrantError: the call has failed.
        """
        return self._call("/qdrant.Points/Query", request, "QueryResponse").result

    def probe(self) -> str:
        """Check that the server answers.

        Raises:
            QdrantError: it does not.
        """
        request = message_class("HealthCheckRequest")()
        reply = self._call("/qdrant.Qdrant/HealthCheck", request, "HealthCheckReply")
        return f"Qdrant {reply.version} answers"

    def _call(self, method: str, request: Any, answer: str) -> Any:
        import grpc

        token = self._parsed[API_TOKEN]
        try:
            call = self._connect().unary_unary(
                method,
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=message_class(answer).FromString,
            )
            return call(
                request, timeout=_TIMEOUT_S, metadata=(("api-key", token),) if token else ()
            )
        except grpc.RpcError as error:
            # Every error of a call that has one answer is such a call itself.
            code, details = error.code().name, error.details() or ""
            shown = " ".join(details.split())[:_SHOWN_CHARACTERS]
            raise QdrantError(f"{self._parsed[GRPC_HOST]}: {code}: {shown}", code) from None
        except OSError as error:
            raise QdrantError(f"{self._parsed[GRPC_HOST]}: {error}", "UNAVAILABLE") from None

    def _connect(self) -> grpc.Channel:
        import grpc

        with self._lock:
            if self._channel is None:
                address = self._parsed[GRPC_HOST]
                self._check_address(address)
                options = (
                    ("grpc.max_receive_message_length", _MAX_ANSWER_BYTES),
                    # A server that is there again is found soon, not after two minutes.
                    ("grpc.max_reconnect_backoff_ms", 5000),
                )
                tls = self._parsed[TLS]
                if tls[ENABLED]:
                    credentials = grpc.ssl_channel_credentials(*_read_certificates(tls))
                    self._channel = grpc.secure_channel(address, credentials, options)
                else:
                    self._channel = grpc.insecure_channel(address, options)
            return self._channel

    def _check_address(self, address: str) -> None:
        parts = split_url(f"grpc://{address}")
        infos = socket.getaddrinfo(parts.hostname, parts.port or 6334, type=socket.SOCK_STREAM)
        for info in infos:
            self._parsed.permissions.address(str(info[4][0]))


def _read_certificates(tls: ParsedFields) -> tuple[bytes | None, bytes | None, bytes | None]:
    """Return the authorities, and the key and the certificate of the client, in PEM."""
    permissions = tls.permissions
    try:
        if tls[ROOT_CAS] or tls[ROOT_CAS_FILE]:
            roots = tls[ROOT_CAS].encode() or permissions.read(tls[ROOT_CAS_FILE])
        else:
            # gRPC would trust a list of its own.
            known = ssl.create_default_context().get_ca_certs(binary_form=True)
            roots = "".join(map(ssl.DER_cert_to_PEM_cert, known)).encode()
        for cert in tls[CLIENT_CERTS]:
            key = cert["key"].encode() or permissions.read(cert["key_file"])
            return roots or None, key, cert["cert"].encode() or permissions.read(cert["cert_file"])
    except (OSError, ValueError) as error:
        raise StreamerError(f"the certificates of tls cannot be used: {error}") from None
    return roots or None, None, None
