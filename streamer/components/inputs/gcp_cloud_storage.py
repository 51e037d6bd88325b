"""`gcp_cloud_storage`: "downloads objects within a Google Cloud Storage bucket"."""

from __future__ import annotations

from typing import Final

from streamer.connectors.google.credentials import CREDENTIALS_FIELD, PACKAGES
from streamer.connectors.google.storage import EMULATOR
from streamer.connectors.google.storage_store import CloudStorageStore, deferred_storage
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

BUCKET: Final = "bucket"

SPEC: Final = Spec(
    Kind.INPUT,
    "gcp_cloud_storage",
    "Reads the objects of a bucket of Google Cloud Storage.",
    description=(
        f"{READING}\n\n{WATCHING}\n"
        "\n"
        "The metadata are `gcs_key`, `gcs_bucket`, `gcs_last_modified` (RFC 3339), "
        "`gcs_last_modified_unix` (seconds), `gcs_content_type`, `gcs_content_encoding` and those "
        "of the object itself. An object whose content encoding is gzip comes as it is stored, "
        "compressed: let the scanner `decompress` read it, or a processor. Connect decompresses "
        "it.\n"
        "\n"
        f"The environment's variable `{EMULATOR}` names an emulator; credentials are not sent "
        "there. "
        "This input uses the JSON API, and is tested with fake-gcs-server, not with Google's."
    ),
    fields=(
        Field(BUCKET, "string", "The bucket."),
        PREFIX_FIELD,
        CREDENTIALS_FIELD,
        DELETE_FIELD,
        *OBJECT_SCANNER_FIELDS,
        WATCHER_FIELD,
    ),
    examples=(
        Example(
            "Lines of packed objects",
            "input:\n"
            "  gcp_cloud_storage:\n"
            "    bucket: events\n"
            "    prefix: 2026/\n"
            "    scanner:\n"
            "      decompress:\n"
            "        algorithm: gzip\n"
            "        into:\n"
            "          lines: {}\n",
        ),
    ),
    categories=("Services", "GCP"),
    runs="worker",
    delivery="exactly once: read again from the same offsets",
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> ObjectSource:
    """Make the input; it is connected once it is read."""
    store = CloudStorageStore(parsed[BUCKET], deferred_storage(parsed, context))
    return make_object_source(parsed, context, store)
