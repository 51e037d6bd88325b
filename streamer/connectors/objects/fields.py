"""Fields of inputs that read the objects of a store, and the source that they describe."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from streamer.connectors.objects.listings import WatchSettings
from streamer.connectors.objects.object_source import ObjectSource
from streamer.connectors.objects.store import ObjectStore
from streamer.core.durations import SECOND
from streamer.sdk.spec import Access, BuildContext, Field, ParsedFields, duration_field
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS
from streamer.sdk.spec.scanner_fields import FIELD_SCANNER, SCANNER_FIELDS, build_scanner

PREFIX: Final = "prefix"
DELETE_OBJECTS: Final = "delete_objects"
WATCHER: Final = "watcher"
ENABLED: Final = "enabled"
MINIMUM_AGE: Final = "minimum_age"
POLL_INTERVAL: Final = "poll_interval"

READING: Final = (
    "Objects are listed in the order of their keys, and read by the workers: many small ones at "
    "once, and a large one by several, where its messages can be cut anywhere, as lines can. The "
    "checkpoint has the positions, and the objects of each micro-batch by name: a restart "
    "continues there, and reads each object once. The memory does not grow with the number of "
    "objects.\n"
    "\n"
    "An object that cannot be read by the scanner, or is gone when its turn comes, is logged as an "
    "error, and does not stop the others. One that is replaced while it is read in part is read "
    "again from its beginning, and a warning is logged."
)
"""The part of a page that says how objects are read."""

WATCHING: Final = (
    "Without `watcher`, the input lists the objects once and ends. With it, the input lists them "
    "again and again, and reads those that are new or were replaced, wherever their keys stand in "
    "the order. A listing of many objects takes many requests: a million take a thousand. The "
    "driver remembers what was read, in eight bytes for each object that is there, beside the "
    "checkpoint on its disk. Another machine that goes on with a remote checkpoint does not have "
    "that: it takes all objects for read that were modified before the last complete listing of "
    "the checkpoint, and may read those since then again."
)
"""The part of a page that says how new objects are noticed."""

PREFIX_FIELD: Final = Field(
    PREFIX,
    "string",
    "Only objects are read whose keys begin with this.",
    default="",
    access=Access.NONE,
)

DELETE_FIELD: Final = Field(
    DELETE_OBJECTS,
    "bool",
    "True to delete an object once all of its messages are processed and safe in the checkpoint.",
    default=False,
    advanced=True,
)

OBJECT_SCANNER_FIELDS: Final = tuple(
    replace(one, default={"to_the_end": {}}) if one.name == FIELD_SCANNER else one
    for one in SCANNER_FIELDS
    if one.name != AUTO_REPLAY_NACKS
)
"""The fields of scanners; as in Redpanda Connect, an object is one message by default."""

WATCHER_FIELD: Final = Field(
    WATCHER,
    "object",
    "Reads new objects as they come, without an end. Redpanda Connect does not have it for objects;"
    " the names are those of its input `sftp`.",
    advanced=True,
    children=(
        Field(ENABLED, "bool", "True to watch for new objects.", default=False),
        duration_field(
            MINIMUM_AGE, "How long an object must be unchanged before it is read.", default="1s"
        ),
        duration_field(
            POLL_INTERVAL, "Pause between the end of a listing and the next one.", default="10s"
        ),
    ),
)


def make_object_source(
    parsed: ParsedFields,
    context: BuildContext,
    store: ObjectStore,
    tags: dict[str, str] | None = None,
) -> ObjectSource:
    """Make the source that the fields of this module describe.

    Args:
        parsed: has them.
        context: builds the scanner.
        store: has the objects.
        tags: that an object gets when it was read.
    """
    watcher = parsed[WATCHER]
    watch = (
        WatchSettings(watcher[POLL_INTERVAL] or SECOND, watcher[MINIMUM_AGE] or 0)
        if watcher[ENABLED]
        else None
    )
    return ObjectSource(
        store,
        build_scanner(parsed, context),
        prefix=parsed[PREFIX],
        deletes=parsed[DELETE_OBJECTS],
        tags=tags,
        watch=watch,
    )
