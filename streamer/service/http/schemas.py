"""JSON schemas of what the API answers."""

from __future__ import annotations

from typing import Any, Final

from streamer.service.http.endpoint import Parameter, Schema


def obj(**properties: Schema) -> dict[str, Any]:
    """Return the schema of an object that has these properties at least."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def listed(items: Schema) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def by_id(values: Schema) -> dict[str, Any]:
    """Return the schema of an object whose keys are ids."""
    return {"type": "object", "additionalProperties": values}


STRING: Final[Schema] = {"type": "string"}
INTEGER: Final[Schema] = {"type": "integer"}
NUMBER: Final[Schema] = {"type": "number"}
BOOLEAN: Final[Schema] = {"type": "boolean"}
ANYTHING: Final[Schema] = {}
MAYBE_OBJECT: Final[Schema] = {"type": ["object", "null"]}
MAYBE_STRING: Final[Schema] = {"type": ["string", "null"]}
MAYBE_NUMBER: Final[Schema] = {"type": ["number", "null"]}

_BENTHOS: Final = {"active": BOOLEAN, "uptime": NUMBER, "uptime_str": STRING}
_VITALS: Final = {
    "sent": INTEGER,
    "errors": INTEGER,
    "event_time_lag": MAYBE_NUMBER,
    "backlog": MAYBE_NUMBER,
    "kafka_lag": MAYBE_NUMBER,
}
LISTED: Final = obj(
    **_BENTHOS,
    state=STRING,
    waits_for=STRING,
    reason=STRING,
    rejected=MAYBE_OBJECT,
    restarts=INTEGER,
    source=STRING,
    revision=INTEGER,
    messages=INTEGER,
    open_windows=INTEGER,
    **_VITALS,
)
ONE: Final = obj(
    **_BENTHOS,
    config=ANYTHING,
    state=STRING,
    rejected=MAYBE_OBJECT,
    revision=INTEGER,
    source=STRING,
)
CHANGED: Final = obj(revision=INTEGER, judgement=MAYBE_OBJECT)
WINDOWS: Final = obj(
    windows=listed(obj(start=STRING, end=STRING, messages=INTEGER, bytes=INTEGER, closes=STRING)),
    open=INTEGER,
    messages=INTEGER,
    bytes=INTEGER,
    now=STRING,
)
GRAPH: Final = obj(
    name=STRING,
    revision=INTEGER,
    stages=listed(obj(name=STRING, where=STRING, leaves=STRING, nodes=listed(ANYTHING))),
)
COMPONENTS: Final = obj(
    revision=INTEGER,
    components=listed(obj(kind=STRING, label=STRING, path=STRING, latency_ms=MAYBE_NUMBER)),
)
PROGRESS: Final = obj(
    state=STRING,
    waits_for=STRING,
    reason=STRING,
    micro_batch=INTEGER,
    messages=INTEGER,
    dropped=by_id(INTEGER),
    open_windows=INTEGER,
    held=INTEGER,
    next_close=MAYBE_STRING,
    rejected=MAYBE_OBJECT,
    restarts=INTEGER,
    active=BOOLEAN,
    uptime=NUMBER,
    source=STRING,
    revision=INTEGER,
    **_VITALS,
)
REVISION: Final = obj(
    number=INTEGER,
    time=STRING,
    author=STRING,
    source=STRING,
    chilled=BOOLEAN,
    judgement=MAYBE_OBJECT,
    current=BOOLEAN,
)
LINE: Final = obj(number=INTEGER, time=STRING, level=STRING, msg=STRING, fields=by_id(ANYTHING))
READY: Final = obj(
    statuses=listed(obj(label=STRING, path=STRING, connected=BOOLEAN)),
)

CHILLED: Final = Parameter(
    "chilled", "Whether a config runs in spite of findings that it can run with.", BOOLEAN
)
TIMEOUT: Final = Parameter(
    "timeout",
    "How long the micro-batch in hand may take, such as `10s`; if it takes longer, it is replayed.",
    STRING,
)
ON_RESET: Final = Parameter(
    "on_reset",
    "What becomes of open windows that the change cannot keep: let out first, or dropped.",
    {"type": "string", "enum": ["drain", "discard"]},
)
ROLLBACK: Final = Parameter(
    "rollback_on_failure",
    "Whether the former revision comes back when this one fails within its first minutes.",
    BOOLEAN,
)
