"""JSON schemas of what the API answers."""

from __future__ import annotations

from typing import Any, Final

from streamer.service.api.endpoint import Parameter, Schema


def object_schema(**properties: Schema) -> dict[str, Any]:
    """Return the schema of an object that has these properties at least."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def list_schema(items: Schema) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def map_schema(values: Schema) -> dict[str, Any]:
    """Return the schema of an object whose keys are ids."""
    return {"type": "object", "additionalProperties": values}


STRING: Final[Schema] = {"type": "string"}
INTEGER: Final[Schema] = {"type": "integer"}
NUMBER: Final[Schema] = {"type": "number"}
BOOLEAN: Final[Schema] = {"type": "boolean"}
ANYTHING: Final[Schema] = {}
MAYBE_OBJECT: Final[Schema] = {"type": ["object", "null"]}
MAYBE_INTEGER: Final[Schema] = {"type": ["integer", "null"]}
MAYBE_STRING: Final[Schema] = {"type": ["string", "null"]}
MAYBE_NUMBER: Final[Schema] = {"type": ["number", "null"]}

CONDITION: Final = object_schema(
    name=STRING,
    text=STRING,
    since=MAYBE_STRING,
    seconds=MAYBE_NUMBER,
    phase=STRING,
    error=STRING,
    label=STRING,
    path=STRING,
    sample=STRING,
    tries=MAYBE_NUMBER,
    next_try=MAYBE_STRING,
    messages=MAYBE_NUMBER,
)
TABLE_COMMITS: Final = object_schema(
    path=STRING,
    label=STRING,
    table=STRING,
    retries=INTEGER,
    conflicts=INTEGER,
    commits=list_schema(
        object_schema(
            version=STRING,
            at=STRING,
            operation=STRING,
            rows=MAYBE_INTEGER,
            files=INTEGER,
            bytes=INTEGER,
            micro_batch=MAYBE_INTEGER,
            own=BOOLEAN,
        )
    ),
)
_BENTHOS_FIELDS: Final = {"active": BOOLEAN, "uptime": NUMBER, "uptime_str": STRING}
EXPECTATIONS: Final = list_schema(
    object_schema(
        expectation=STRING,
        label=STRING,
        path=STRING,
        passed=INTEGER,
        failed=INTEGER,
        dropped=INTEGER,
    )
)
_SUMMARY_FIELDS: Final = {
    "in_rate": MAYBE_NUMBER,
    "out_rate": MAYBE_NUMBER,
    "error_rate": MAYBE_NUMBER,
    "counted_since": MAYBE_STRING,
    "received": MAYBE_INTEGER,
    "sent": MAYBE_INTEGER,
    "errors": MAYBE_INTEGER,
    "event_time_lag": MAYBE_NUMBER,
    "backlog": MAYBE_NUMBER,
    "kafka_lag": MAYBE_NUMBER,
    "kafka_lag_worst": MAYBE_OBJECT,
    "expectations": EXPECTATIONS,
    "tables": list_schema(TABLE_COMMITS),
}
STREAM_SUMMARY: Final = object_schema(
    **_BENTHOS_FIELDS,
    state=STRING,
    condition=CONDITION,
    refusal=MAYBE_OBJECT,
    waits_for=STRING,
    reason=STRING,
    rejected=MAYBE_OBJECT,
    restarts=INTEGER,
    source=STRING,
    revision=INTEGER,
    as_of=MAYBE_STRING,
    messages=MAYBE_INTEGER,
    open_windows=MAYBE_INTEGER,
    labels=map_schema(STRING),
    **_SUMMARY_FIELDS,
)
STREAM: Final = object_schema(
    **_BENTHOS_FIELDS,
    config=ANYTHING,
    state=STRING,
    condition=CONDITION,
    refusal=MAYBE_OBJECT,
    rejected=MAYBE_OBJECT,
    revision=INTEGER,
    source=STRING,
)
CHANGE_RESULT: Final = object_schema(revision=INTEGER, judgement=MAYBE_OBJECT)
WINDOWS: Final = object_schema(
    windows=list_schema(
        object_schema(
            start=MAYBE_STRING,
            end=MAYBE_STRING,
            messages=MAYBE_INTEGER,
            bytes=MAYBE_INTEGER,
            closes=MAYBE_STRING,
        )
    ),
    open=MAYBE_INTEGER,
    messages=MAYBE_INTEGER,
    bytes=MAYBE_INTEGER,
    checkpoint_as_of=MAYBE_STRING,
    now=STRING,
)
GRAPH: Final = object_schema(
    name=STRING,
    revision=INTEGER,
    stages=list_schema(
        object_schema(name=STRING, where=STRING, leaves=STRING, nodes=list_schema(ANYTHING))
    ),
    lines=map_schema(INTEGER),
)
COMPONENTS: Final = object_schema(
    revision=INTEGER,
    condition=CONDITION,
    components=list_schema(
        object_schema(
            kind=STRING, label=STRING, path=STRING, latency_ms=MAYBE_NUMBER, load=MAYBE_OBJECT
        )
    ),
)
PROGRESS: Final = object_schema(
    state=STRING,
    condition=CONDITION,
    refusal=MAYBE_OBJECT,
    waits_for=STRING,
    reason=STRING,
    micro_batch=INTEGER,
    as_of=MAYBE_STRING,
    messages=MAYBE_INTEGER,
    dropped=map_schema(INTEGER),
    open_windows=MAYBE_INTEGER,
    held=MAYBE_INTEGER,
    next_close=MAYBE_STRING,
    clock_waits_for=MAYBE_OBJECT,
    rejected=MAYBE_OBJECT,
    restarts=INTEGER,
    active=BOOLEAN,
    uptime=NUMBER,
    source=STRING,
    revision=INTEGER,
    **_SUMMARY_FIELDS,
)
REVISION: Final = object_schema(
    number=INTEGER,
    time=STRING,
    author=STRING,
    source=STRING,
    chilled=BOOLEAN,
    judgement=MAYBE_OBJECT,
    current=BOOLEAN,
)
LOG_LINE: Final = object_schema(
    number=INTEGER, time=STRING, level=STRING, msg=STRING, fields=map_schema(ANYTHING)
)
READY: Final = object_schema(
    condition=CONDITION,
    statuses=list_schema(object_schema(label=STRING, path=STRING, connected=BOOLEAN)),
)

CHILLED: Final = Parameter("chilled", "Whether a config runs in spite of minor findings.", BOOLEAN)
TIMEOUT: Final = Parameter(
    "timeout",
    "How long the current micro-batch may take, such as `10s`; a longer one is repeated later.",
    STRING,
)
ON_RESET: Final = Parameter(
    "on_reset",
    "The treatment of open windows that the change cannot keep: emitted first, or dropped.",
    {"type": "string", "enum": ["drain", "discard"]},
)
ROLLBACK: Final = Parameter(
    "rollback_on_failure",
    "Whether to return to the former revision if this one fails in its first minutes.",
    BOOLEAN,
)
