"""`aws_dynamodb_cdc`: "reads change data capture (CDC) events from DynamoDB Streams".

A change goes to the disk together with its sequence number, from which the next start goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from streamer.connectors.aws.fields import PACKAGES, SESSION_FIELDS, TESTED, session_problems
from streamer.connectors.aws.table_scan import PAGE_SIZE, SEGMENTS, THROTTLE
from streamer.connectors.aws.table_session import (
    NO_SNAPSHOT,
    OLDEST,
    SNAPSHOT_DEDUPLICATE,
    SNAPSHOT_MODE,
    SNAPSHOT_ONLY,
    START_FROM,
    TableInput,
)
from streamer.connectors.aws.table_streams import (
    BATCH_SIZE,
    BY_TAG,
    DISCOVERY_INTERVAL,
    DISCOVERY_MODE,
    POLL_INTERVAL,
    TABLES,
    TAG_FILTER,
)
from streamer.connectors.aws.tag_filter import TagFilter
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import (
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedFields,
    Spec,
    duration_field,
)
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS_FIELD

_MAX_PAGE: Final = 1000
_MAX_SEGMENTS: Final = 10


def _page_problem(number: int) -> str | None:
    return None if 1 <= number <= _MAX_PAGE else f"is {number}; expected 1 to {_MAX_PAGE}"


def _segments_problem(number: int) -> str | None:
    return None if 1 <= number <= _MAX_SEGMENTS else f"is {number}; expected 1 to {_MAX_SEGMENTS}"


def _period_problem(period: int) -> str | None:
    return None if period > 0 else "expected more than 0s"


def _filter_problem(text: str) -> str | None:
    try:
        if text:
            TagFilter.parse(text)
    except ValueError as error:
        return f"has {error}"
    return None


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from session_problems(parsed)
    is_by_tag = parsed[DISCOVERY_MODE] == BY_TAG
    if is_by_tag and not parsed[TAG_FILTER]:
        yield TAG_FILTER, f"is needed where {DISCOVERY_MODE} is {BY_TAG}"
    if not is_by_tag and not parsed[TABLES]:
        yield TABLES, "is an empty list; expected names of tables"
    if parsed[SNAPSHOT_MODE] != NO_SNAPSHOT and (is_by_tag or len(parsed[TABLES]) > 1):
        yield SNAPSHOT_MODE, "needs one table in tables; use an input for each of several"


def _without_effect(name: str, kind: str, default: Any, why: str, **more: Any) -> Field:
    return Field(name, kind, f"Has no effect: {why}.", default=default, advanced=True, **more)


_OWN_POSITIONS: Final = "the checkpoint has the positions"

SPEC: Final = Spec(
    Kind.INPUT,
    "aws_dynamodb_cdc",
    "Reads changes of tables of AWS DynamoDB.",
    description=(
        "The driver reads the streams of tables, up to eight shards at once, and writes the "
        "changes to its disk together with their sequence numbers. The next start goes on behind "
        "these: each change is read once. A shard is read when the one that it was split from has "
        "been read, so the changes of an item keep their order. A table needs a stream; its view "
        "says which images a change has.\n"
        "\n"
        "A change is an object with `tableName`, `eventID`, `eventName` (`INSERT`, `MODIFY`, "
        "`REMOVE`), `eventVersion`, `eventSource`, `awsRegion` and `dynamodb`, which has `keys`, "
        "`newImage`, `oldImage`, `sequenceNumber`, `sizeBytes` and `streamViewType`. Numbers are "
        "texts, as DynamoDB has them; bytes are Base64.\n"
        "\n"
        "With a snapshot, the items of the table come first, with the name `READ` and a "
        "`newImage`. The changes since the snapshot began follow them. Both tell the same of items "
        "that changed meanwhile, and the last change of an item is right. A snapshot that was "
        "interrupted goes on page by page. DynamoDB keeps changes for 24 hours: a snapshot must "
        "take less. If changes are gone because the stream was away for longer, an error is "
        "logged, and the snapshot is read again.\n"
        "\n"
        "Positions are in the checkpoint; there is no table of checkpoints, and positions in one "
        "of Redpanda Connect are not taken over. Two programs that read a table each get all of "
        "it.\n"
        "\n"
        "The metadata are `dynamodb_table`, `dynamodb_event_name`, `dynamodb_shard_id`, "
        "`dynamodb_sequence_number` and `dynamodb_approximate_creation_time`; items of a snapshot "
        "have the first two, and `dynamodb_snapshot_segment`.\n"
        "\n"
        f"{TESTED} A table of moto has one shard, which never ends: shards that are split were "
        "tried with answers that a test makes."
    ),
    fields=(
        Field(
            TABLES,
            "string",
            "Names of tables.",
            default=(),
            shape="array",
            examples=(["orders"], ["orders", "customers"]),
        ),
        Field(
            DISCOVERY_MODE,
            "string",
            "`single` and `includelist` read the tables of `tables`, `tag` those whose tags match "
            "`table_tag_filter`.",
            default="single",
            options=("single", BY_TAG, "includelist"),
            advanced=True,
        ),
        Field(
            TAG_FILTER,
            "string",
            "Tags of the tables that are read: keys, each with values of which one must match. "
            "Tables without a stream are left out.",
            default="",
            advanced=True,
            check=_filter_problem,
            examples=("env:prod,test;team:data",),
        ),
        duration_field(
            DISCOVERY_INTERVAL,
            "Time after which tables are looked for again; 0s for never.",
            default="5m",
            advanced=True,
        ),
        Field(
            "checkpoint_table",
            "string",
            f"Has no effect: {_OWN_POSITIONS}.",
            default="redpanda_dynamodb_checkpoints",
        ),
        Field("checkpoint_namespace", "string", f"Has no effect: {_OWN_POSITIONS}.", default=""),
        _without_effect("global_table", "bool", False, _OWN_POSITIONS),
        _without_effect("global_table_replicas", "string", (), _OWN_POSITIONS, shape="array"),
        Field(
            BATCH_SIZE,
            "int",
            "Maximum changes of an answer, 1 to 1000.",
            default=1000,
            advanced=True,
            check=_page_problem,
        ),
        duration_field(
            POLL_INTERVAL,
            "Time after which a shard is asked again that had no changes.",
            default="1s",
            advanced=True,
            check=_period_problem,
        ),
        Field(
            START_FROM,
            "string",
            "Where a table begins for which there are no positions: at its oldest change, or at "
            "the time of the first start.",
            default=OLDEST,
            options=(OLDEST, "latest"),
        ),
        _without_effect(
            "checkpoint_limit", "int", 1000, "changes are on the disk before they are processed"
        ),
        _without_effect(
            "max_tracked_shards", "int", 10_000, "the positions of all shards are kept"
        ),
        AUTO_REPLAY_NACKS_FIELD,
        duration_field(
            "throttle_backoff",
            "Has no effect: nothing is read while the disk does not take more.",
            default="100ms",
            advanced=True,
        ),
        Field(
            SNAPSHOT_MODE,
            "string",
            "`none` for changes alone, `snapshot_and_cdc` for the items and then the changes, "
            "`snapshot_only` for the items, after which the stream ends.",
            default=NO_SNAPSHOT,
            options=(NO_SNAPSHOT, SNAPSHOT_ONLY, "snapshot_and_cdc"),
        ),
        Field(
            SEGMENTS,
            "int",
            "Parts of the table that are scanned at once, 1 to 10.",
            default=1,
            advanced=True,
            check=_segments_problem,
        ),
        Field(
            PAGE_SIZE,
            "int",
            "Maximum items of a request of the snapshot, 1 to 1000.",
            default=100,
            advanced=True,
            check=_page_problem,
        ),
        duration_field(
            THROTTLE,
            "Time between two requests of the snapshot, to spare the capacity of the table.",
            default="100ms",
            advanced=True,
            check=_period_problem,
        ),
        Field(
            SNAPSHOT_DEDUPLICATE,
            "bool",
            "True to leave out changes of before the snapshot; false to read those from "
            "`start_from` on too.",
            default=True,
            advanced=True,
        ),
        _without_effect(
            "snapshot_buffer_size",
            "int",
            100_000,
            "changes are left out by their times, and need no memory",
        ),
        *SESSION_FIELDS,
    ),
    check=_problems,
    examples=(
        Example(
            "The items of a table, and what changes",
            "input:\n  aws_dynamodb_cdc:\n    tables: [orders]\n"
            "    snapshot_mode: snapshot_and_cdc\n    region: eu-west-1\n",
        ),
        Example(
            "Tables by their tags",
            "input:\n  aws_dynamodb_cdc:\n    table_discovery_mode: tag\n"
            "    table_tag_filter: env:prod;team:data\n    region: eu-west-1\n",
        ),
    ),
    categories=("Services", "AWS"),
    begin={TABLES: ["orders"]},
    delivery="exactly once onto the driver's disk, by sequence numbers",
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> TableInput:
    """Take the fields; it is connected once it is opened."""
    return TableInput(parsed, ComponentRef(context.component).fields)
