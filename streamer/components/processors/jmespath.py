"""`jmespath`: replaces each message by what a JMESPath query makes of it.

It "executes a JMESPath query on JSON documents and replaces the message with the resulting
document". A query without a result gives `null`.
"""

from __future__ import annotations

from typing import Any, Final

from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.per_message import Change, PerMessageProcessor, parse_document
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

QUERY: Final = "query"


def _compile_query(text: str) -> Any:
    import jmespath

    return jmespath.compile(text)


def _query_problem(text: str) -> str | None:
    import jmespath.exceptions

    try:
        _compile_query(text)
    except jmespath.exceptions.JMESPathError as e:
        return f"failed to compile JMESPath query: {' '.join(str(e).split())}"
    return None


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "jmespath",
    "Replaces each message by the result of a JMESPath query on it.",
    description=(
        "The payload must be JSON. A query without a result gives `null`. A `mapping` is faster."
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


def _make_search(query: Any) -> Change:
    import jmespath.exceptions

    def search(message: Message, ex: Execution) -> Message:
        value = parse_document(message)
        try:
            result = query.search(value)
        except (jmespath.exceptions.JMESPathError, TypeError, ValueError, ArithmeticError) as e:
            raise MessageError(str(e)) from None
        return message.with_doc(result)

    return search


def build(parsed: ParsedFields, context: BuildContext) -> PerMessageProcessor:
    """Compile the query."""
    return PerMessageProcessor(
        _make_search(_compile_query(parsed[QUERY])), ComponentRef(context.component)
    )
