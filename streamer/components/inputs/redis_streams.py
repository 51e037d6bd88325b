"""`redis_streams`: reads streams of Redis as one of a group.

It "pulls messages from Redis (v5.0+) streams with the XREADGROUP command". An entry is written to
disk before it is acknowledged; those that were read and not acknowledged come again at the next
start, and the ones of them that were spooled are left out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from streamer.connectors.redis import CLIENT_FIELDS, PACKAGES, client_problems
from streamer.connectors.redis.client import Client
from streamer.connectors.redis.input_base import AUTO_REPLAY_NACKS, RedisInput, decode_text
from streamer.connectors.spool.blocks import Record, pack_each
from streamer.connectors.spool.reconnecting_receiver import ConnectionLostError, Session
from streamer.core.durations import SECOND
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec, duration_field

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
_MAX_WAIT_S: Final = 1.0

SPEC: Final = Spec(
    Kind.INPUT,
    "redis_streams",
    "Reads streams of Redis as one of a consumer group.",
    description=(
        "An entry is safe on the driver's disk before it is acknowledged, and is read once. "
        "Its fields other than `body_key` become metadata, and its id `redis_stream`; an "
        "entry without `body_key` is ignored. Each consumer of a group needs its own "
        "`client_id`."
    ),
    fields=(
        *CLIENT_FIELDS,
        Field(BODY_KEY, "string", "The key of the message in an entry.", default="body"),
        Field(STREAMS, "string", "The streams.", shape="array", examples=(["events"],)),
        AUTO_REPLAY_NACKS,
        Field(
            LIMIT,
            "int",
            "Maximum number of entries of each stream in one request.",
            default=10,
            check=lambda number: None if number >= 1 else f"is {number}; expected 1 or more",
        ),
        Field(CLIENT_ID, "string", "The name of this consumer in the group.", default=""),
        Field(CONSUMER_GROUP, "string", "The group.", default=""),
        Field(
            CREATE_STREAMS,
            "bool",
            "True to create missing streams.",
            default=True,
            advanced=True,
        ),
        Field(
            START_FROM_OLDEST,
            "bool",
            "True if a new group begins with the oldest entry; otherwise with the next one.",
            default=True,
            advanced=True,
        ),
        duration_field(
            COMMIT_PERIOD,
            "Maximum time until entries on disk are acknowledged.",
            default="1s",
            advanced=True,
        ),
        duration_field(
            TIMEOUT,
            "Time for which Redis waits for entries in one request.",
            default="1s",
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
    requires=PACKAGES,
)


class _StreamReader:
    """Reads and acknowledges in one session."""

    def __init__(self, parsed: ParsedFields, client: Client, session: Session) -> None:
        self._parsed = parsed
        self._client = client
        self._session = session
        # The newest entry of each stream that was spooled, also at earlier starts.
        self._spooled: dict[str, str] = dict(session.store.mark or {})
        # Where this consumer's own entries, which it has not acknowledged, are read from.
        self._backlog: dict[str, str] = dict.fromkeys(parsed[STREAMS], "0")
        self._unacknowledged: dict[str, list[bytes]] = {}
        self._acknowledged = time.monotonic()

    def run(self) -> None:
        period = (self._parsed[COMMIT_PERIOD] or 0) / SECOND
        try:
            while not self._session.context.stopping:
                for stream, entries in self._read():
                    if not self._spool(stream, entries):
                        return
                if time.monotonic() - self._acknowledged >= period:
                    self._acknowledge()
        finally:
            self._acknowledge()

    def _read(self) -> list[tuple[str, list[Any]]]:
        streams = self._parsed[STREAMS]
        seconds = min((self._parsed[TIMEOUT] or 0) / SECOND or _MAX_WAIT_S, _MAX_WAIT_S)
        reply = self._client.execute_command(
            "XREADGROUP",
            *("GROUP", self._parsed[CONSUMER_GROUP], self._parsed[CLIENT_ID]),
            *("COUNT", self._parsed[LIMIT], "BLOCK", max(int(seconds * 1000), 1)),
            *("STREAMS", *streams, *(self._backlog.get(one, ">") for one in streams)),
        )
        return [(decode_text(stream), entries) for stream, entries in reply or []]

    def _spool(self, stream: str, entries: Sequence[Any]) -> bool:
        """Spool entries of a stream; return False when the stream stops before they are safe."""
        in_backlog = stream in self._backlog
        if in_backlog and not entries:
            del self._backlog[stream]
            return True
        records: list[Record] = []
        newest = self._spooled.get(stream, "")
        for identity, fields in entries:
            name = decode_text(identity)
            record = self._make_record(name, fields)
            # What comes again was spooled when the mark says so.
            if record is not None and not (in_backlog and _id_number(name) <= _id_number(newest)):
                records.append(record)
        last = decode_text(entries[-1][0])
        if records:
            mark = {**self._spooled, stream: max(last, newest, key=_id_number)}
            if not self._session.write(records, mark):
                return False
            self._spooled = mark
        if in_backlog:
            self._backlog[stream] = last
        self._unacknowledged.setdefault(stream, []).extend(identity for identity, _ in entries)
        return True

    def _make_record(self, identity: str, fields: Sequence[bytes] | None) -> Record | None:
        if fields is None:
            return None  # the entry was deleted after it had been read
        pairs = dict(zip(map(decode_text, fields[::2]), fields[1::2], strict=True))
        body = pairs.pop(self._parsed[BODY_KEY], None)
        if body is None:
            return None
        meta = {ID_KEY: identity, **{key: decode_text(value) for key, value in pairs.items()}}
        return pack_each([body], meta)

    def _acknowledge(self) -> None:
        group = self._parsed[CONSUMER_GROUP]
        for stream, identities in self._unacknowledged.items():
            self._client.execute_command("XACK", stream, group, *identities)
        self._unacknowledged.clear()
        self._acknowledged = time.monotonic()


def _id_number(identity: str) -> tuple[int, int]:
    milliseconds, _, number = identity.partition("-")
    return int(milliseconds or -1), int(number or 0)


def _run_session(parsed: ParsedFields, client: Client, session: Session) -> None:
    import redis

    begin = "0" if parsed[START_FROM_OLDEST] else "$"
    made = ["MKSTREAM"] if parsed[CREATE_STREAMS] else []
    group = parsed[CONSUMER_GROUP]
    for stream in parsed[STREAMS]:
        try:
            client.execute_command("XGROUP CREATE", stream, group, begin, *made)
        except redis.ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise ConnectionLostError(
                    f"failed to create group {group} for stream {stream}: {error}"
                ) from None
    session.set_connected()
    _StreamReader(parsed, client, session).run()


def build(parsed: ParsedFields, context: BuildContext) -> RedisInput:
    """Take the fields; it is connected once it is opened."""
    labels = ComponentRef(context.component).fields
    return RedisInput(parsed, "redis_streams", labels, _MAX_WAIT_S, _run_session)
