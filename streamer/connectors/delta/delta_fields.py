"""Fields that say where a Delta table is."""

from __future__ import annotations

from typing import Final

from streamer.sdk.spec import Access, Field

PATH: Final = "path"
STORAGE_OPTIONS: Final = "storage_options"

PATH_FIELD: Final = Field(
    PATH,
    "string",
    "The directory of the table, or its URL: `s3://`, `gs://` or `abfs://`.",
    access=Access.FILE,
    check=lambda text: None if text else "is empty; expected a directory or a URL",
    examples=("./table", "s3://lake/lights"),
)

STORAGE_OPTIONS_FIELD: Final = Field(
    STORAGE_OPTIONS,
    "string",
    "Options of the store, by the names of the library object_store: `aws_region`, "
    "`aws_endpoint`, `aws_access_key_id`, and so on. What is missing comes from the "
    "environment, or from the role of the machine.",
    default={},
    shape="map",
    advanced=True,
    credentials=True,
    access=Access.NONE,
    examples=({"aws_region": "eu-central-1"},),
)
