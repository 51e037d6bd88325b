"""Storage accounts of Azure: the fields that describe one, and its credentials."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from streamer.core.errors import StreamerError
from streamer.core.permissions import NotPermittedError, Permissions
from streamer.core.urls import split_url
from streamer.sdk.spec import Access, Field, Package, ParsedFields

STORAGE_ACCOUNT: Final = "storage_account"
ACCESS_KEY: Final = "storage_access_key"
CONNECTION_STRING: Final = "storage_connection_string"
SAS_TOKEN: Final = "storage_sas_token"

PACKAGES: Final = (Package("azure.storage.blob"), Package("azure.identity"))

_EMULATOR: Final = "UseDevelopmentStorage=true"
_EMULATOR_PORT: Final = "AZURITE_BLOB_ENDPOINT_PORT"
# The account that every emulator has, by Azure's own documentation.
_EMULATOR_ACCOUNT: Final = "devstoreaccount1"
_EMULATOR_KEY: Final = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

ACCOUNT_FIELDS: Final = (
    Field(
        STORAGE_ACCOUNT,
        "string",
        "The name of the storage account. A connection string that names one stands before it.",
        default="",
    ),
    Field(
        ACCESS_KEY,
        "string",
        "The key of the account. A connection string stands before it.",
        default="",
        secret=True,
    ),
    Field(
        CONNECTION_STRING,
        "string",
        "A connection string, as Azure shows it. `UseDevelopmentStorage=true;` is that of an "
        f"emulator on this machine; `{_EMULATOR_PORT}` in the environment is its port.",
        default="",
        secret=True,
        access=Access.NONE,
        check=lambda text: (
            None
            if not text or "=" in text or "${" in text
            else "is no connection string; expected one such as "
            "AccountName=…;AccountKey=…;EndpointSuffix=core.windows.net"
        ),
    ),
    Field(
        SAS_TOKEN,
        "string",
        "A shared access signature. A connection string or a key stands before it.",
        default="",
        secret=True,
    ),
)
"""Credentials: one of connection string, key, signature, or those of the machine."""


def account_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with the fields together, for a spec's `check`."""
    text, account = parsed[CONNECTION_STRING], parsed[STORAGE_ACCOUNT]
    if not text and not account:
        yield "", f"needs {STORAGE_ACCOUNT} or {CONNECTION_STRING}"
    elif text and "${" not in text and not account:
        parts = _read_parts(text)
        if not (parts.keys() & {"accountname", "blobendpoint"}) and not _is_emulator(text):
            yield STORAGE_ACCOUNT, "is empty, and the connection string has no AccountName"


class Account(NamedTuple):
    """A storage account, and what proves the right to use it.

    Attributes:
        url: of one of its services.
        credential: as Azure's clients take it: a key, a signature, or a source of tokens.
    """

    url: str
    credential: Any


def read_account(parsed: ParsedFields, service: str = "blob") -> Account:
    """Return the account that the fields describe.

    Args:
        parsed: the fields.
        service: `blob`, or `dfs` for a data lake.

    Raises:
        StreamerError: they describe none, or it may not be reached.
    """
    from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential

    has_own = parsed[CONNECTION_STRING] or parsed[ACCESS_KEY] or parsed[SAS_TOKEN]
    if not has_own and not parsed.permissions.local:
        raise NotPermittedError(
            "credentials of this machine are out of reach for configs that come by API; set "
            f"{ACCESS_KEY} or {SAS_TOKEN}, or start the service with --allow-local"
        )
    parts = _read_parts(_expand_emulator(parsed[CONNECTION_STRING]))
    name = parts.get("accountname") or parsed[STORAGE_ACCOUNT]
    url = parts.get(f"{service}endpoint") or _make_url(parts, name, service)
    _check_address(url, parsed.permissions)
    given = parts if parts else {"accountkey": parsed[ACCESS_KEY]}
    signature = parts.get("sharedaccesssignature") if parts else parsed[SAS_TOKEN]
    if key := given.get("accountkey"):
        return Account(url, AzureNamedKeyCredential(name, key))
    if signature:
        return Account(url, AzureSasCredential(signature.lstrip("?")))
    if parts:
        raise StreamerError(f"{CONNECTION_STRING} has neither AccountKey nor SharedAccessSignature")
    from azure.identity import DefaultAzureCredential

    return Account(url, DefaultAzureCredential())


def _make_url(parts: dict[str, str], name: str, service: str) -> str:
    suffix = parts.get("endpointsuffix", "core.windows.net")
    return f"{parts.get('defaultendpointsprotocol', 'https')}://{name}.{service}.{suffix}"


def account_of(text: str) -> str:
    """Return the account that a connection string names; empty for none."""
    return _read_parts(_expand_emulator(text)).get("accountname", "")


def _read_parts(text: str) -> dict[str, str]:
    """Return the parts of a connection string, by their names in lower case."""
    pairs = (part.partition("=") for part in text.split(";"))
    return {name.strip().lower(): value.strip() for name, _, value in pairs if name.strip()}


def _is_emulator(text: str) -> bool:
    return _EMULATOR.lower() in text.lower()


def _expand_emulator(text: str) -> str:
    if not _is_emulator(text):
        return text
    place = f"http://127.0.0.1:{os.environ.get(_EMULATOR_PORT) or '10000'}/{_EMULATOR_ACCOUNT}"
    return f"AccountName={_EMULATOR_ACCOUNT};AccountKey={_EMULATOR_KEY};BlobEndpoint={place}"


def _check_address(url: str, permissions: Permissions) -> None:
    """Check that a config that may not reach the machine's own addresses does not name one."""
    if permissions.local:
        return
    import socket

    host = split_url(url).hostname
    try:
        places = socket.getaddrinfo(host, None)
    except OSError as error:
        raise StreamerError(f"{host} has no address: {error.strerror}") from None
    for *_, place in places:
        permissions.address(str(place[0]))
