"""`elasticsearch`: indexes documents in Elasticsearch up to 7.

It "publishes messages into an Elasticsearch index. If the index does not exist then it is created
with a dynamic mapping".
"""

from __future__ import annotations

from typing import Final

from streamer.connectors.search.aws_signer import make_signer
from streamer.connectors.search.bulk import (
    CREATE_ACTION,
    DELETE_ACTION,
    INDEX_ACTION,
    WRAPPED_UPDATE_ACTION,
    WRAPPED_UPSERT_ACTION,
    Actions,
)
from streamer.connectors.search.fields import (
    AWS_FIELD,
    AWS_PACKAGE,
    DELIVERY_TEXT,
    GZIP,
    TIMEOUT,
    TYPE,
    action_field,
    id_field,
    search_fields,
    search_problems,
)
from streamer.connectors.search.output_base import SearchOutput
from streamer.sdk.backoff import backoff_fields, read_backoff
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec, duration_field


def _inert_field(name: str, reason: str) -> Field:
    return Field(name, "bool", f"Has no effect. {reason}", default=True, advanced=True)


_ACTIONS: Final[Actions] = {
    "create": CREATE_ACTION,
    "index": INDEX_ACTION,
    "update": WRAPPED_UPDATE_ACTION,
    "upsert": WRAPPED_UPSERT_ACTION,
    "delete": DELETE_ACTION,
}

SPEC: Final = Spec(
    Kind.OUTPUT,
    "elasticsearch",
    "Indexes, changes and deletes documents of Elasticsearch up to 7.",
    description=(
        "The output of earlier versions of Benthos; Redpanda Connect has `elasticsearch_v8` in its "
        "place. For `update` and `upsert` the message is the partial document itself."
        f"\n\n{DELIVERY_TEXT}"
    ),
    fields=search_fields(
        Field(
            TYPE,
            "string",
            "The mapping type, which Elasticsearch before 7 needs and later versions refuse.",
            default="",
            interpolated=True,
            advanced=True,
        ),
        _inert_field("sniff", "Servers are those of `urls`."),
        _inert_field("healthcheck", "A server that does not answer is passed over."),
        duration_field(TIMEOUT, "Maximum duration of a request.", default="5s", advanced=True),
        *backoff_fields(0, "1s", "5s", "30s"),
        AWS_FIELD,
        Field(GZIP, "bool", "True to compress requests.", default=False, advanced=True),
        action=action_field(tuple(_ACTIONS), default="index", advanced=True),
        identity=id_field(default="${! counter() }-${! timestamp_unix() }"),
    ),
    check=search_problems,
    examples=(
        Example(
            "Index documents",
            "output:\n"
            "  elasticsearch:\n"
            "    urls: [http://localhost:9200]\n"
            "    index: logs-${! this.day }\n"
            "    id: ${! this.id }\n"
            "    batching: {count: 500}\n",
        ),
    ),
    begin={"index": "events"},
    categories=("Services",),
    requires=(AWS_PACKAGE,),
)


def build(parsed: ParsedFields, context: BuildContext) -> SearchOutput:
    """Compile the fields; nothing is connected yet."""
    sign = make_signer(parsed, context)
    return SearchOutput(parsed, context, _ACTIONS, read_backoff(parsed), sign)
