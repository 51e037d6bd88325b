"""`jq`: replaces each message by what a jq query emits.

"If the query does not emit any value then the message is filtered, if the query returns multiple
values then the resulting message will be an array containing all values." Benthos runs queries
with gojq; here they are run by jq itself, and the differences are those that gojq documents.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from streamer.bloblang.errors import ArgumentError, QueryError
from streamer.bloblang.limits import check_bytes, check_elements
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.dump import dump_json
from streamer.core.json.parse import parse_json
from streamer.core.message import Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.per_message import PerMessageProcessor, parse_document
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

QUERY: Final = "query"
RAW: Final = "raw"
OUTPUT_RAW: Final = "output_raw"


# As with gojq in Benthos, a query sees no environment and no modules.
_DISABLED_FUNCTIONS: Final = 'def env: {}; def modulemeta: error("modules are not available");'


@lru_cache(maxsize=64)
def _compile_query(text: str) -> Any:
    """Return a program whose input is a pair: what the query sees as `.`, and `$metadata`."""
    import jq

    # jq binds arguments when it compiles; metadata is another for each message. The query ends at
    # a line of its own, for it may end with a comment. What is emitted leaves as text, in which jq
    # keeps every digit of a number that it has not touched.
    return jq.compile(
        f"{_DISABLED_FUNCTIONS} .[1] as $metadata | {{}} as $ENV | .[0] | (\n{text}\n) | tojson"
    )


def _query_problem(text: str) -> str | None:
    import jq

    try:
        # By itself: what stands around it must not complete it, nor be in what is said of it.
        jq.compile(text, args={"metadata": {}})
        _compile_query(text)
    except ValueError as e:
        first = str(e).splitlines()[0].removeprefix("jq: ").removeprefix("error: ")
        return f"error parsing jq query: {first.partition(' at <')[0]}"
    return None


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "jq",
    "Transforms and filters messages with jq queries.",
    description=(
        "A query that emits nothing filters the message, and one that emits several values makes "
        "an array of them. Metadata is the object `$metadata`. Queries are run by jq itself, where "
        "Benthos has gojq."
    ),
    fields=(
        Field(
            QUERY,
            "string",
            "The query.",
            access=Access.QUERY,
            check=_query_problem,
            examples=('{Cities: .locations | map(select(.state == "WA").name) | sort}',),
        ),
        Field(
            RAW,
            "bool",
            "True if the query sees the payload as a text instead of as JSON.",
            default=False,
            advanced=True,
        ),
        Field(
            OUTPUT_RAW,
            "bool",
            "True if texts that the query emits are written as they are, without quotes, one after "
            "the other.",
            default=False,
            advanced=True,
        ),
    ),
    examples=(
        Example(
            "Names of one state, in a text",
            "pipeline:\n"
            "  processors:\n"
            "    - jq:\n"
            '        query: \'{Cities: .locations | map(select(.state == "WA").name) | sort '
            '| join(", ")}\'\n',
        ),
    ),
    categories=("Mapping",),
    limits="queries run by jq, not gojq; numbers that are computed are doubles",
)


class JqQuery:
    """Runs a query on one message."""

    def __init__(self, query: str, raw: bool, output_raw: bool) -> None:
        self._program = _compile_query(query)
        self._raw = raw
        self._output_raw = output_raw
        # Metadata is written as JSON for the query; most do without.
        self._uses_metadata = "$metadata" in query or "$__prog_args" in query

    def __call__(self, message: Message, ex: Execution) -> Message | None:
        """Return the message with what the query emits, or None when that is nothing."""
        emitted = self._emit(message)
        if not emitted:
            return None
        if self._output_raw:
            return message.with_bytes(b"".join(map(_encode_raw, emitted)))
        return message.with_doc(emitted if len(emitted) > 1 else emitted[0])

    def _emit(self, message: Message) -> list[Any]:
        if self._raw:
            given = dump_json(message.raw.decode(errors="replace"))
        else:
            given = dump_json(parse_document(message))
        metadata = dump_json(dict(message.meta)) if self._uses_metadata else b"{}"
        pair = b"[" + given + b"," + metadata + b"]"
        try:
            texts = _emitted_texts(self._program.input_text(pair.decode()))
        except (ValueError, QueryError, ArgumentError) as e:
            raise MessageError(str(e).removeprefix("jq: error: ")) from None
        return [parse_json(text.encode()) for text in texts]


def _emitted_texts(emitted: Iterable[str]) -> list[str]:
    """Return what a query emits, one after the other as it is asked for.

    Raises:
        ArgumentError: there are too many.
        QueryError: they are too long together.
        ValueError: jq says what is wrong.
    """
    texts: list[str] = []
    size = 0
    for text in emitted:
        texts.append(text)
        size += len(text)
        check_elements(len(texts), "the query emits an array")
        check_bytes(size, "the query emits values")
    return texts


def _encode_raw(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    out = dump_json(value)
    # Go's own encoder, which is used here and nowhere else, escapes what HTML would take amiss.
    for mark, escape in ((b"<", b"\\u003c"), (b">", b"\\u003e"), (b"&", b"\\u0026")):
        out = out.replace(mark, escape)
    return out


def build(parsed: ParsedFields, context: BuildContext) -> PerMessageProcessor:
    """Compile the query."""
    query = JqQuery(parsed[QUERY], parsed[RAW], parsed[OUTPUT_RAW])
    return PerMessageProcessor(query, ComponentRef(context.component))
