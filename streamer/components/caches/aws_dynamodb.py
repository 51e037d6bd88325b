"""`aws_dynamodb`: it "stores key/value pairs as a single document in a DynamoDB table"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from streamer.connectors.aws.cache_requests import RETRIES_FIELD, CacheRequests
from streamer.connectors.aws.client import AwsClient, shared_client
from streamer.connectors.aws.fields import (
    PACKAGES,
    SESSION_FIELDS,
    TESTED,
    session_problems,
)
from streamer.core.durations import SECOND
from streamer.core.execution import Execution
from streamer.sdk.cache import KeyAlreadyExistsError, KeyNotFoundError
from streamer.sdk.spec import (
    Access,
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedFields,
    Spec,
    duration_field,
)

TABLE: Final = "table"
HASH_KEY: Final = "hash_key"
DATA_KEY: Final = "data_key"
CONSISTENT_READ: Final = "consistent_read"
DEFAULT_TTL: Final = "default_ttl"
TTL_KEY: Final = "ttl_key"

_EXISTS: Final = "ConditionalCheckFailedException"


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from session_problems(parsed)
    if parsed[DEFAULT_TTL] is not None and not parsed[TTL_KEY]:
        yield DEFAULT_TTL, "needs the field ttl_key"


SPEC: Final = Spec(
    Kind.CACHE,
    "aws_dynamodb",
    "Keeps values in a table of AWS DynamoDB, where all workers of all machines find them.",
    description=(
        "The table has a partition key, a text, and no sort key. DynamoDB deletes items whose "
        "lifetime has ended within days, where the table's TTL is enabled for `ttl_key`; until "
        "then they are found."
        f"\n\n{TESTED}"
    ),
    fields=(
        Field(TABLE, "string", "The table.", access=Access.REMOTE),
        Field(HASH_KEY, "string", "The column of keys: the partition key.", access=Access.NONE),
        Field(DATA_KEY, "string", "The column of values.", access=Access.NONE),
        Field(
            CONSISTENT_READ,
            "bool",
            "True to read what was written last, for twice the price.",
            default=False,
            advanced=True,
        ),
        duration_field(
            DEFAULT_TTL,
            "Default lifetime of a value; needs `ttl_key`.",
            optional=True,
            advanced=True,
        ),
        Field(
            TTL_KEY,
            "string",
            "The column for the end of the lifetime, s since 1970.",
            optional=True,
            advanced=True,
            access=Access.NONE,
        ),
        RETRIES_FIELD,
        *SESSION_FIELDS,
    ),
    check=_problems,
    examples=(
        Example(
            "Drop what was seen by any worker",
            "pipeline:\n"
            "  processors:\n"
            "    - dedupe:\n"
            "        cache: seen\n"
            "        key: ${! this.id }\n"
            "cache_resources:\n"
            "  - label: seen\n"
            "    aws_dynamodb:\n"
            "      table: seen\n"
            "      hash_key: id\n"
            "      data_key: value\n"
            "      region: eu-west-1\n",
        ),
    ),
    categories=("Services", "AWS"),
    requires=PACKAGES,
)


class DynamoDbCache:
    """Values in a table."""

    def __init__(self, parsed: ParsedFields, client: AwsClient) -> None:
        """Take the fields, and the client."""
        self._parsed = parsed
        self._table = parsed[TABLE]
        self._hash_key = parsed[HASH_KEY]
        self._data_key = parsed[DATA_KEY]
        self._requests = CacheRequests(parsed, client, {_EXISTS: KeyAlreadyExistsError})

    def get(self, key: str, ex: Execution) -> bytes:
        """Return the value of a key."""
        answer = self._requests.run(
            lambda client: client.get_item(
                TableName=self._table,
                Key=self._key(key),
                ConsistentRead=self._parsed[CONSISTENT_READ],
            ),
            ex,
        )
        value = answer.get("Item", {}).get(self._data_key, {}).get("B")
        if value is None:
            raise KeyNotFoundError
        return bytes(value)

    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value."""
        item = self._make_item(key, value, ttl, ex)
        self._requests.run(lambda client: client.put_item(TableName=self._table, Item=item), ex)

    def add(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value under a key that has none."""
        item = self._make_item(key, value, ttl, ex)
        self._requests.run(
            lambda client: client.put_item(
                TableName=self._table,
                Item=item,
                ConditionExpression="attribute_not_exists(#key)",
                ExpressionAttributeNames={"#key": self._hash_key},
            ),
            ex,
        )

    def delete(self, key: str, ex: Execution) -> None:
        """Forget a key."""
        self._requests.run(
            lambda client: client.delete_item(TableName=self._table, Key=self._key(key)), ex
        )

    def _key(self, key: str) -> dict[str, Any]:
        return {self._hash_key: {"S": key}}

    def _make_item(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> dict[str, Any]:
        item = {**self._key(key), self._data_key: {"B": value}}
        lasts = self._parsed[DEFAULT_TTL] if ttl is None else ttl
        if lasts is not None and self._parsed[TTL_KEY]:
            item[self._parsed[TTL_KEY]] = {"N": str((ex.now() + lasts) // SECOND)}
        return item


def build(parsed: ParsedFields, context: BuildContext) -> DynamoDbCache:
    """Take the fields; it is connected at the first use."""
    return DynamoDbCache(parsed, shared_client(parsed, context, "dynamodb", attempts=1))
