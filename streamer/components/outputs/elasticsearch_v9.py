"""`elasticsearch_v9`: indexes documents in Elasticsearch.

It "publishes messages into an Elasticsearch index. If the index does not exist then it is created
with a dynamic mapping".
"""

from __future__ import annotations

from typing import Final

from streamer.connectors.search.bulk import (
    CREATE_ACTION,
    DELETE_ACTION,
    INDEX_ACTION,
    UPDATE_ACTION,
    Actions,
)
from streamer.connectors.search.fields import (
    API_KEY,
    DELIVERY_TEXT,
    RETRY_ON_CONFLICT_FIELD,
    action_field,
    id_field,
    search_fields,
    search_problems,
)
from streamer.connectors.search.output_base import SearchOutput
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

_ACTIONS: Final[Actions] = {
    "index": INDEX_ACTION,
    "create": CREATE_ACTION,
    "update": UPDATE_ACTION,
    "delete": DELETE_ACTION,
    "upsert": INDEX_ACTION,
}

SPEC: Final = Spec(
    Kind.OUTPUT,
    "elasticsearch_v9",
    "Indexes, changes and deletes documents of Elasticsearch.",
    description=(
        "For `update` the message has `doc`, `script` or `upsert`, or several of them, and nothing "
        "else of it is sent. `upsert` is another name of `index`, as in Redpanda Connect."
        f"\n\n{DELIVERY_TEXT}"
    ),
    fields=search_fields(
        RETRY_ON_CONFLICT_FIELD,
        Field(
            API_KEY,
            "string",
            "An API key, encoded as Elasticsearch gives it. It stands before `basic_auth`.",
            default="",
            secret=True,
            advanced=True,
        ),
        action=action_field(tuple(_ACTIONS)),
        identity=id_field(),
    ),
    check=search_problems,
    examples=(
        Example(
            "Update a document, or make it",
            "output:\n"
            "  processors:\n"
            "    - mapping: |\n"
            "        meta id = this.id\n"
            "        root.doc = this\n"
            "        root.upsert = this\n"
            "  elasticsearch_v9:\n"
            "    urls: [http://localhost:9200]\n"
            "    index: products\n"
            "    action: update\n"
            "    id: ${! @id }\n"
            "    batching: {count: 500}\n",
        ),
    ),
    begin={"index": "events", "action": "index"},
    categories=("Services",),
)


def build(parsed: ParsedFields, context: BuildContext) -> SearchOutput:
    """Compile the fields; nothing is connected yet."""
    return SearchOutput(parsed, context, _ACTIONS)
