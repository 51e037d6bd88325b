"""`azure_blob_storage`: "downloads objects within an Azure Blob Storage container"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.azure.account import ACCOUNT_FIELDS, PACKAGES, account_problems
from streamer.connectors.azure.blob_store import BlobStore, deferred_account
from streamer.connectors.objects.fields import (
    DELETE_FIELD,
    OBJECT_SCANNER_FIELDS,
    PREFIX_FIELD,
    READING,
    WATCHER_FIELD,
    WATCHING,
    make_object_source,
)
from streamer.connectors.objects.object_source import ObjectSource
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

CONTAINER: Final = "container"


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from account_problems(parsed)
    if compile_interpolation(parsed[CONTAINER]).static is None:
        yield CONTAINER, "depends on a message; an input reads one container"


SPEC: Final = Spec(
    Kind.INPUT,
    "azure_blob_storage",
    "Reads the blobs of a container of Azure Blob Storage.",
    description=(
        f"{READING}\n\n{WATCHING}\n"
        "\n"
        "The metadata are `blob_storage_key`, `blob_storage_container`, "
        "`blob_storage_last_modified` (RFC 3339), `blob_storage_last_modified_unix` (seconds), "
        "`blob_storage_content_type`, `blob_storage_content_encoding` and those of the blob "
        "itself.\n"
        "\n"
        "Azure cannot list from a name on. After a restart, the names before the position are "
        "listed once more, a thousand by a request, and passed over. Connect's `targets_input` is "
        "not there: use `watcher`.\n"
        "\n"
        "Credentials are those of the output `azure_blob_storage`. It is tested with Azurite, "
        "Azure's own emulator, not with Azure itself."
    ),
    fields=(
        *ACCOUNT_FIELDS,
        Field(CONTAINER, "string", "The container.", interpolated=True),
        PREFIX_FIELD,
        DELETE_FIELD,
        *OBJECT_SCANNER_FIELDS,
        WATCHER_FIELD,
    ),
    check=_problems,
    examples=(
        Example(
            "New blobs as they come",
            "input:\n"
            "  azure_blob_storage:\n"
            "    storage_account: example\n"
            "    storage_access_key: ${AZURE_KEY}\n"
            "    container: uploads\n"
            "    scanner:\n"
            "      lines: {}\n"
            "    watcher:\n"
            "      enabled: true\n",
        ),
    ),
    begin={"storage_account": "example", "container": "messages"},
    categories=("Services", "Azure"),
    runs="worker",
    delivery="exactly once: read again from the same offsets",
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> ObjectSource:
    """Make the input; it is connected once it is read."""
    container = compile_interpolation(parsed[CONTAINER]).static or ""
    return make_object_source(
        parsed, context, BlobStore(container, deferred_account(parsed, context))
    )
