"""The stores that URLs name, with the credentials of each cloud's ordinary chain.

What a chain has in the environment is read here, and in the libraries of the clouds: an endpoint,
an account, a key. A config names none of it in a URL.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Generic, TypeVar

from streamer.core.durations import SECOND
from streamer.core.locations import AZURE, GCS, S3, Location
from streamer.sdk.spec import Kind, Package, ParsedComponent, ParsedFields

T = TypeVar("T")

_TIMEOUT: Final = 60 * SECOND
_S3_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_AZURE_ACCOUNT: Final = ("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME")
_AZURE_KEY: Final = ("AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY")
_AZURE_CONNECTION: Final = ("AZURE_STORAGE_CONNECTION_STRING",)
_AZURE_SIGNATURE: Final = ("AZURE_STORAGE_SAS_TOKEN",)

_PACKAGES: Final = {
    "boto3": ("s3://", "s3a://"),
    "google.auth": ("gs://",),
    "azure.storage.blob": ("abfs://", "abfss://", "az://"),
    "azure.identity": ("abfs://", "abfss://", "az://"),
    "hdfs_native": ("hdfs://",),
}


def location_packages(field: str) -> tuple[Package, ...]:
    """Return the packages that a component needs for URLs in a field, for its spec."""
    return tuple(
        Package(
            name,
            field=field,
            is_needed_by=partial(_begins_with, schemes),
            setting=f"`{field}` with `{schemes[0]}`",
        )
        for name, schemes in _PACKAGES.items()
    )


def _begins_with(schemes: tuple[str, ...], value: Any) -> bool:
    texts = [value] if isinstance(value, str) else value or ()
    return any(isinstance(one, str) and one.startswith(schemes) for one in texts)


class KeptClient(Generic[T]):
    """A client that is made at its first use in a process; pickled, it is only how it is made."""

    def __init__(self, make: Callable[[], T]) -> None:
        """Take what makes it; that can be pickled."""
        self._make = make
        self._client: T | None = None

    def __reduce__(self) -> Any:
        return KeptClient, (self._make,)

    def __call__(self) -> T:
        """Return the client."""
        if self._client is None:
            self._client = self._make()
        return self._client


Deferral = Callable[[str, Callable[[], Any]], Callable[[], Any]]
"""Takes a name and what makes a client; returns what gives it in any process."""


def defer_alone(name: str, make: Callable[[], T]) -> Callable[[], T]:
    """Return what gives a client of its own in each process."""
    return KeptClient(make)


def make_client(location: Location) -> Any:
    """Return the client of the store of a place, not connected yet: see the rooms of the clouds."""
    if location.store == S3:
        return _make_s3_client()
    if location.store == GCS:
        return _make_storage_client()
    if location.store == AZURE:
        return _make_account(location.account)
    from streamer.connectors.hdfs.client import HdfsClient

    return HdfsClient([location.bucket])


def _make_s3_client() -> Any:
    from streamer.connectors.aws import fields
    from streamer.connectors.aws.client import AwsClient
    from streamer.connectors.aws.s3_store import FORCE_PATH_STYLE, s3_options

    endpoint = _read_variable(_S3_ENDPOINTS)
    credentials: dict[str, Any] = dict.fromkeys(
        (
            *(fields.PROFILE, fields.ID, fields.SECRET, fields.TOKEN),
            *(fields.ROLE, fields.ROLE_EXTERNAL_ID),
        ),
        "",
    )
    credentials[fields.FROM_EC2_ROLE] = False
    parsed = ParsedFields(
        {
            fields.REGION: "",
            fields.ENDPOINT: endpoint,
            fields.TCP: ParsedFields({fields.CONNECT_TIMEOUT: None}),
            fields.CREDENTIALS: ParsedFields(credentials),
            FORCE_PATH_STYLE: bool(endpoint),
        }
    )
    return AwsClient(parsed, "s3", options=s3_options(parsed))


def _make_storage_client() -> Any:
    from streamer.connectors.google.credentials import CREDENTIALS_JSON
    from streamer.connectors.google.storage_store import make_storage_client

    parsed = ParsedFields({CREDENTIALS_JSON: ""})
    return make_storage_client(parsed, ParsedComponent(Kind.INPUT, "file", config=parsed))


def _make_account(account: str) -> Any:
    from streamer.connectors.azure import account as names
    from streamer.connectors.azure.blobs import BlobAccount

    own = _read_variable(_AZURE_ACCOUNT)
    connection = _read_variable(_AZURE_CONNECTION)
    given: Mapping[str, str] = {}
    # A key of one account is not shown to another one.
    if not account or account == (own or names.account_of(connection)):
        given = {
            names.ACCESS_KEY: _read_variable(_AZURE_KEY),
            names.CONNECTION_STRING: connection,
            names.SAS_TOKEN: _read_variable(_AZURE_SIGNATURE),
        }
    empty = dict.fromkeys((names.ACCESS_KEY, names.CONNECTION_STRING, names.SAS_TOKEN), "")
    return BlobAccount(ParsedFields({**empty, **given, names.STORAGE_ACCOUNT: account or own}))


def _read_variable(names: tuple[str, ...]) -> str:
    return next(filter(None, map(os.environ.get, names)), "")


def open_store(location: Location, defer: Deferral = defer_alone) -> Any:
    """Return the objects of the bucket of a place, an `ObjectStore` whose keys are those there.

    Args:
        location: a place in it.
        defer: gives the client in any process.
    """
    client = defer(location.root, partial(make_client, location))
    if location.store == S3:
        from streamer.connectors.aws.s3_store import S3Store

        return S3Store(location.bucket, client)
    if location.store == GCS:
        from streamer.connectors.google.storage_store import CloudStorageStore

        return CloudStorageStore(location.bucket, client)
    if location.store == AZURE:
        from streamer.connectors.azure.blob_store import BlobStore

        return BlobStore(location.bucket, client)
    from streamer.connectors.hdfs.tree_store import HdfsTreeStore

    return HdfsTreeStore(make_client(location))
