"""The spec of `elasticsearch_v8` and `elasticsearch_v9`, whose servers have one API.

They "publish messages into an Elasticsearch index. If the index does not exist then it is created
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
from streamer.sdk.spec import Example, Field, Kind, Spec

ACTIONS: Final[Actions] = {
    "index": INDEX_ACTION,
    "create": CREATE_ACTION,
    "update": UPDATE_ACTION,
    "delete": DELETE_ACTION,
    "upsert": INDEX_ACTION,
}


def make_spec(name: str) -> Spec:
    """Return the spec of the output of that name."""
    return Spec(
        Kind.OUTPUT,
        name,
        "Indexes, changes and deletes documents of Elasticsearch.",
        description=(
            "For `update` the message has `doc`, `script` or `upsert`, or several of them, and "
            "nothing else of it is sent. `upsert` is another name of `index`, as in Redpanda "
            "Connect."
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
            action=action_field(tuple(ACTIONS)),
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
                f"  {name}:\n"
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
