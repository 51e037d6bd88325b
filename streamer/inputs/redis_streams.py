"""`redis_streams`: reads streams of Redis as one of a group.

It "pulls messages from Redis (v5.0+) streams with the XREADGROUP command". An entry lands on disk
before it is acknowledged; those that were read and not acknowledged come again at the next start,
and the ones of them that have landed are left out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from streamer.durations import SECOND
from streamer.failure import Origin
from streamer.landing.blocks import Record, each
from streamer.landing.sessions import LostError, Session
from streamer.redisdb import CLIENT_FIELDS, client_problems
from streamer.redisdb.client import Client
from streamer.redisdb.receiving import AUTO_REPLAY_NACKS, RedisInput, text_of
from streamer.spec import BuildContext, Example, Field, Kind, Package, Parsed, Spec

BODY_KEY: Final = "body_key"
STREAMS: Final = "streams"
LIMIT: Final = "limit"
CLIENT_ID: Final = "client_id"
CONSUMER_GROUP: Final = "consumer_group"
CREATE_STREAMS: Final = "create_streams"
START_FROM_OLDEST: Final = "start_from_oldest"
COMMIT_PERIOD: Final = "commit_period"
TIMEOUT: Final = "timeout"

ID_KEY: Final = "redis_stream"

# A stop should not wait for Redis longer than this.
_LONGEST: Final = 1.0

SPEC: Final = Spec(
    Kind.INPUT,
    "redis_streams",
    "Reads streams of Redis as one of a consumer group.",
    description=(
        "An entry is safe on the driver's disk before it is acknowledged, and lands once. Its "
        "fields other than `body_key` become metadata, and its id `redis_stream`; an entry without "
        "`body_key` is left out. Give each consumer of a group a `client_id` of its own."
    ),
    fields=(
        *CLIENT_FIELDS,
        Field(BODY_KEY, "string", "The key of the message in an entry.", default="body"),
        Field(STREAMS, "string", "The streams.", shape="array", examples=(["events"],)),
        AUTO_REPLAY_NACKS,
        Field(
            LIMIT,
            "int",
            "How many entries of each stream are read at once.",
            default=10,
            check=lambda number: None if number >= 1 else f"is {number}; expected 1 or more",
        ),
        Field(CLIENT_ID, "string", "The name of this consumer in the group.", default=""),
        Field(CONSUMER_GROUP, "string", "The group.", default=""),
        Field(
            CREATE_STREAMS,
            "bool",
            "Whether streams that are not there are made.",
            default=True,
            advanced=True,
        ),
        Field(
            START_FROM_OLDEST,
            "bool",
            "Whether a new group begins with the oldest entry; otherwise with the next one.",
            default=True,
            advanced=True,
        ),
        Field(
            COMMIT_PERIOD,
            "string",
            "How long entries that have landed wait to be acknowledged, at most.",
            default="1s",
            duration=True,
            advanced=True,
        ),
        Field(
            TIMEOUT,
            "string",
            "How long Redis is asked to wait for entries before it is asked again.",
            default="1s",
            duration=True,
            advanced=True,
        ),
    ),
    check=client_problems,
    examples=(
        Example(
            "As one of a group",
            "input:\n"
            "  redis_streams:\n"
            "    url: redis://localhost:6379\n"
            "    streams: [events]\n"
            "    consumer_group: readers\n"
            "    client_id: first\n",
        ),
    ),
    categories=("Services",),
    delivery="at least once: acknowledged when messages are on the driver's disk",
    requires=(Package("redis"),),
)


class _Reader:
    """Reads and acknowledges in one session."""

    def __init__(self, parsed: Parsed, client: Client, session: Session) -> None:
        self._parsed = parsed
        self._client = client
        self._session = session
        # The newest entry of each stream that has landed, also at earlier starts.
        self._landed: dict[str, str] = dict(session.store.mark or {})
        # Where this consumer's own entries, which it has not acknowledged, are read from.
        self._backlog: dict[str, str] = dict.fromkeys(parsed[STREAMS], "0")
        self._due: dict[str, list[bytes]] = {}
        self._acknowledged = time.monotonic()

    def run(self) -> None:
        period = (self._parsed[COMMIT_PERIOD] or 0) / SECOND
        try:
            while not self._session.room.stopping:
                for stream, entries in self._read():
                    if not self._take(stream, entries):
                        return
                if time.monotonic() - self._acknowledged >= period:
                    self._acknowledge()
        finally:
            self._acknowledge()

    def _read(self) -> list[tuple[str, list[Any]]]:
        streams = self._parsed[STREAMS]
        seconds = min((self._parsed[TIMEOUT] or 0) / SECOND or _LONGEST, _LONGEST)
        found = self._client.execute_command(
            "XREADGROUP",
            *("GROUP", self._parsed[CONSUMER_GROUP], self._parsed[CLIENT_ID]),
            *("COUNT", self._parsed[LIMIT], "BLOCK", max(int(seconds * 1000), 1)),
            *("STREAMS", *streams, *(self._backlog.get(one, ">") for one in streams)),
        )
        return [(text_of(stream), entries) for stream, entries in found or []]

    def _take(self, stream: str, entries: Sequence[Any]) -> bool:
        """Land entries of a stream; tell whether they have, or there was nothing to land."""
        in_backlog = stream in self._backlog
        if in_backlog and not entries:
            del self._backlog[stream]
            return True
        records: list[Record] = []
        newest = self._landed.get(stream, "")
        for identity, fields in entries:
            name = text_of(identity)
            record = self._record(name, fields)
            # What comes again has landed when the mark says so.
            if record is not None and not (in_backlog and _number(name) <= _number(newest)):
                records.append(record)
        last = text_of(entries[-1][0])
        if records:
            mark = {**self._landed, stream: max(last, newest, key=_number)}
            if not self._session.land(records, mark):
                return False
            self._landed = mark
        if in_backlog:
            self._backlog[stream] = last
        self._due.setdefault(stream, []).extend(identity for identity, _ in entries)
        return True

    def _record(self, identity: str, fields: Sequence[bytes] | None) -> Record | None:
        if fields is None:
            return None  # the entry was deleted after it had been read
        pairs = dict(zip(map(text_of, fields[::2]), fields[1::2], strict=True))
        body = pairs.pop(self._parsed[BODY_KEY], None)
        if body is None:
            return None
        meta = {ID_KEY: identity, **{key: text_of(value) for key, value in pairs.items()}}
        return each([body], meta)

    def _acknowledge(self) -> None:
        group = self._parsed[CONSUMER_GROUP]
        for stream, identities in self._due.items():
            self._client.execute_command("XACK", stream, group, *identities)
        self._due.clear()
        self._acknowledged = time.monotonic()


def _number(identity: str) -> tuple[int, int]:
    milliseconds, _, number = identity.partition("-")
    return int(milliseconds or -1), int(number or 0)


def _session(parsed: Parsed, client: Client, session: Session) -> None:
    import redis

    begin = "0" if parsed[START_FROM_OLDEST] else "$"
    made = ["MKSTREAM"] if parsed[CREATE_STREAMS] else []
    group = parsed[CONSUMER_GROUP]
    for stream in parsed[STREAMS]:
        try:
            client.execute_command("XGROUP CREATE", stream, group, begin, *made)
        except redis.ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise LostError(
                    f"failed to create group {group} for stream {stream}: {error}"
                ) from None
    session.up()
    _Reader(parsed, client, session).run()


def build(parsed: Parsed, context: BuildContext) -> RedisInput:
    """Take the fields; it is connected once it is opened."""
    labels = Origin(context.component).fields
    return RedisInput(parsed, "redis_streams", labels, _LONGEST, _session)
