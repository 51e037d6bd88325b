"""`jmespath`: replaces each message by what a JMESPath query makes of it.

It "executes a JMESPath query on JSON documents and replaces the message with the resulting
document". A query that finds nothing makes `null`.
"""

from __future__ import annotations

from typing import Any, Final

from streamer.errors import MessageError
from streamer.failure import Origin
from streamer.message import Execution, Message
from streamer.pipeline.per_message import Change, PerMessage, document
from streamer.spec import Access, BuildContext, Example, Field, Kind, Parsed, Spec

QUERY: Final = "query"


def _compiled(text: str) -> Any:
    import jmespath

    return jmespath.compile(text)


def _query_problem(text: str) -> str | None:
    import jmespath.exceptions

    try:
        _compiled(text)
    except jmespath.exceptions.JMESPathError as e:
        return f"failed to compile JMESPath query: {' '.join(str(e).split())}"
    return None


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "jmespath",
    "Replaces each message by the result of a JMESPath query on it.",
    description=(
        "The payload must be JSON. A query that finds nothing makes `null`. A `mapping` is faster."
    ),
    fields=(
        Field(
            QUERY,
            "string",
            "The query.",
            access=Access.QUERY,
            check=_query_problem,
            examples=("locations[?state == 'WA'].name | sort(@) | {Cities: join(', ', @)}",),
        ),
    ),
    examples=(
        Example(
            "Names of one state, in a text",
            "pipeline:\n"
            "  processors:\n"
            "    - jmespath:\n"
            "        query: \"locations[?state == 'WA'].name | {Cities: join(', ', @)}\"\n",
        ),
    ),
    categories=("Mapping",),
)


def _searching(query: Any) -> Change:
    import jmespath.exceptions

    def search(message: Message, ex: Execution) -> Message:
        value = document(message)
        try:
            found = query.search(value)
        except (jmespath.exceptions.JMESPathError, TypeError, ValueError, ArithmeticError) as e:
            raise MessageError(str(e)) from None
        return message.with_doc(found)

    return search


def build(parsed: Parsed, context: BuildContext) -> PerMessage:
    """Compile the query."""
    return PerMessage(_searching(_compiled(parsed[QUERY])), Origin(context.component))
