"""The fields of `sql_raw`, a statement or several of them, and the queries that they describe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.bloblang import compile_interpolation, compile_mapping
from streamer.connectors.sql.database_fields import ARGS_MAPPING, QUERY, args_field
from streamer.connectors.sql.processor_base import StatementTemplate
from streamer.core.errors import StreamerError
from streamer.sdk.spec import Access, Field, ParsedFields

QUERIES: Final = "queries"
UNSAFE_DYNAMIC_QUERY: Final = "unsafe_dynamic_query"
EXEC_ONLY: Final = "exec_only"
WHEN: Final = "when"

WHEN_FIELD: Final = Field(
    WHEN,
    "string",
    "A mapping that says by true or false whether a message is for this statement. With one in the "
    "list, only the first statement that takes a message, or that has no `when`, runs.",
    optional=True,
    mapping=True,
    examples=('root = @kafka_tombstone_message == "true"',),
)

UNSAFE_FIELD: Final = Field(
    UNSAFE_DYNAMIC_QUERY,
    "bool",
    "True if `${! … }` in statements is replaced for each message. Whatever is put there becomes a "
    "part of the statement: never a text that others may choose; use arguments.",
    default=False,
    advanced=True,
)


def query_field(*, optional: bool) -> Field:
    """Return the field of a statement."""
    return Field(
        QUERY,
        "string",
        "The statement, with the placeholders of the database: `$1`, `$2` for `postgres`, `?` for "
        "`mysql` and `sqlite`.",
        access=Access.REMOTE,
        optional=optional,
        examples=("INSERT INTO things (id, name) VALUES ($1, $2)",),
    )


def raw_fields(*more: Field, in_list: tuple[Field, ...] = ()) -> tuple[Field, ...]:
    """Return the fields of statements that are run for each message.

    Args:
        more: fields that each statement has besides.
        in_list: those that only statements of the list have.
    """
    arguments = args_field("placeholder of the statement", optional=True)
    return (
        query_field(optional=True),
        UNSAFE_FIELD,
        arguments,
        *more,
        Field(
            QUERIES,
            "object",
            "Further statements, which run after `query`, all of them in one transaction.",
            optional=True,
            shape="array",
            children=(query_field(optional=False), arguments, *more, *in_list),
        ),
    )


def raw_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with statements: there is none, or one cannot be interpolated."""
    if not parsed[QUERY] and not parsed[QUERIES]:
        yield "", "has no statement; set query or queries"
    yield from _unreachable_queries(parsed)
    if not parsed[UNSAFE_DYNAMIC_QUERY]:
        return
    for one in (parsed, *(parsed[QUERIES] or ())):
        try:
            compile_interpolation(one[QUERY] or "")
        except StreamerError as e:
            yield QUERY, str(e)


def _unreachable_queries(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    queries = parsed[QUERIES] or ()
    if not any(one.get(WHEN) for one in queries):
        return
    if parsed[QUERY]:
        yield QUERY, "takes all messages before queries with when; make it the last of queries"
    elif not all(one[WHEN] for one in queries[:-1]):
        yield QUERIES, "has a query without when before the last one, which takes all messages"


def read_queries(parsed: ParsedFields) -> list[StatementTemplate]:
    """Return the statements that are run for each message."""
    main = [parsed] if parsed[QUERY] else []
    return [
        StatementTemplate(
            compile_interpolation(one[QUERY]) if parsed[UNSAFE_DYNAMIC_QUERY] else one[QUERY],
            compile_mapping(one[ARGS_MAPPING]) if one[ARGS_MAPPING] else None,
            only_runs=one.get(EXEC_ONLY, True),
            condition=compile_mapping(one[WHEN]) if one.get(WHEN) else None,
        )
        for one in (*main, *(parsed[QUERIES] or ()))
    ]
