"""`opensearch`: indexes documents in OpenSearch.

It "publishes messages into an Elasticsearch index. If the index does not exist then it is created
with a dynamic mapping".
"""

from __future__ import annotations

from typing import Final

from streamer.connectors.search.aws_signer import make_signer
from streamer.connectors.search.bulk import (
    DELETE_ACTION,
    INDEX_ACTION,
    RAW_UPDATE_ACTION,
    Actions,
)
from streamer.connectors.search.fields import (
    AWS_FIELD,
    AWS_PACKAGE,
    DELIVERY_TEXT,
    action_field,
    id_field,
    search_fields,
    search_problems,
)
from streamer.connectors.search.output_base import SearchOutput
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec

_ACTIONS: Final[Actions] = {
    "index": INDEX_ACTION,
    "update": RAW_UPDATE_ACTION,
    "delete": DELETE_ACTION,
}

SPEC: Final = Spec(
    Kind.OUTPUT,
    "opensearch",
    "Indexes, changes and deletes documents of OpenSearch.",
    description=(
        "For `update` the message is the body of an update: `doc`, `script`, `upsert` and what "
        "else OpenSearch knows."
        f"\n\n{DELIVERY_TEXT}"
    ),
    fields=search_fields(
        AWS_FIELD,
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
            "  opensearch:\n"
            "    urls: [http://localhost:9200]\n"
            "    index: products\n"
            "    action: update\n"
            "    id: ${! @id }\n"
            "    batching: {count: 500}\n",
        ),
    ),
    begin={"index": "events", "action": "index"},
    categories=("Services",),
    requires=(AWS_PACKAGE,),
)


def build(parsed: ParsedFields, context: BuildContext) -> SearchOutput:
    """Compile the fields; nothing is connected yet."""
    return SearchOutput(parsed, context, _ACTIONS, sign=make_signer(parsed, context))
