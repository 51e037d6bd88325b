"""`nats_kv`: reads what a key-value bucket of NATS has, and every change from then on.

It "watches for updates in a NATS key-value bucket". After a restart it goes on behind the newest
revision that is on the disk: of what changed meanwhile it reads the last value of each key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from streamer.connectors.nats.client_fields import (
    BUCKET,
    CLIENT_FIELDS,
    CONNECTION_FIELDS,
    PACKAGES,
    bucket_field,
    client_problems,
)
from streamer.connectors.nats.connection import Client
from streamer.connectors.nats.key_value import entry_metadata, find_bucket
from streamer.connectors.nats.session import NatsInput
from streamer.connectors.spool.blocks import pack_each
from streamer.connectors.spool.message_queue import MessageQueue
from streamer.connectors.spool.reconnecting_receiver import Session
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS_FIELD

KEY: Final = "key"
IGNORE_DELETES: Final = "ignore_deletes"
INCLUDE_HISTORY: Final = "include_history"
META_ONLY: Final = "meta_only"

SPEC: Final = Spec(
    Kind.INPUT,
    "nats_kv",
    "Reads a key-value bucket of NATS, and every change of it.",
    description=(
        "The first start reads the values that are there. Later ones go on behind the newest "
        "revision that was read. The metadata are `nats_kv_key`, `nats_kv_bucket`, "
        "`nats_kv_revision`, `nats_kv_delta`, `nats_kv_operation` and `nats_kv_created`."
    ),
    fields=(
        *CLIENT_FIELDS,
        bucket_field(),
        Field(
            KEY,
            "string",
            "The keys; `*` and `>` may be used.",
            default=">",
            access=Access.NONE,
            examples=("foo.bar.baz", "foo.*.baz", "foo.>"),
        ),
        AUTO_REPLAY_NACKS_FIELD,
        Field(
            IGNORE_DELETES,
            "bool",
            "True to leave out keys that are deleted.",
            default=False,
            advanced=True,
        ),
        Field(
            INCLUDE_HISTORY,
            "bool",
            "True to begin with all revisions that the bucket has, not with the last ones.",
            default=False,
            advanced=True,
        ),
        Field(
            META_ONLY,
            "bool",
            "True to read metadata alone.",
            default=False,
            advanced=True,
        ),
        *CONNECTION_FIELDS,
    ),
    check=client_problems,
    examples=(
        Example(
            "All settings",
            "input:\n  nats_kv:\n    urls: [nats://127.0.0.1:4222]\n    bucket: settings\n",
        ),
    ),
    categories=("Services",),
    delivery="each revision once; of several while the stream is away, the last one",
    requires=PACKAGES,
)


class _WatchSession:
    """Watches a bucket, and stores its changes."""

    def __init__(self, parsed: ParsedFields) -> None:
        self._parsed = parsed
        self._watching: asyncio.Task[None] | None = None

    async def subscribe(self, client: Client, queue: MessageQueue, session: Session) -> None:
        """Have changes put into the queue.

        Raises:
            NatsError: there is no such bucket.
        """
        parsed = self._parsed
        bucket = await find_bucket(client, parsed[BUCKET])
        watcher = await bucket.watch(
            parsed[KEY],
            ignore_deletes=parsed[IGNORE_DELETES],
            include_history=parsed[INCLUDE_HISTORY],
            meta_only=parsed[META_ONLY],
        )
        self._watching = asyncio.create_task(_pass_on(watcher, queue))

    async def store(self, client: Client, entries: Sequence[Any], session: Session) -> bool:
        """Write changes to the disk, those that are newer than what is there."""
        newest = session.store.mark or 0
        fresh = [entry for entry in entries if entry.revision > newest]
        if not fresh:
            return True
        records = [pack_each([bytes(one.value or b"")], entry_metadata(one)) for one in fresh]
        return session.write(records, max(entry.revision for entry in fresh))


async def _pass_on(watcher: Any, queue: MessageQueue) -> None:
    import nats.errors

    while True:
        try:
            entry = await watcher.updates(timeout=60)
        except (TimeoutError, nats.errors.TimeoutError):
            continue
        except (nats.errors.Error, OSError):
            queue.close()
            return
        # None says that all that was there has come.
        if entry is not None:
            await queue.put(entry)


def build(parsed: ParsedFields, context: BuildContext) -> NatsInput:
    """Take the fields; it is connected once it is opened."""
    watch = _WatchSession(parsed)
    labels = ComponentRef(context.component).fields
    return NatsInput(parsed, "nats_kv", labels, watch.subscribe, watch.store)
