"""`cohere_embeddings`: replaces messages by their embeddings, by Cohere.

It "sends text strings to the Cohere API, which generates vector embeddings". Source: Cohere's
reference of `POST /v2/embed`, which takes up to 96 texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from streamer.connectors.ai.cohere import PROBE_PATH, client_fields, make_client
from streamer.connectors.ai.embeddings import EMBEDDING_TIMEOUT_S, EmbeddingProcessor
from streamer.connectors.ai.errors import ModelError
from streamer.connectors.ai.key_client import MODEL
from streamer.connectors.ai.prompt_fields import TEXT_MAPPING, TEXT_MAPPING_FIELD
from streamer.connectors.ai.texts import FieldBytes
from streamer.core.execution import Execution
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

INPUT_TYPE: Final = "input_type"
DIMENSIONS: Final = "dimensions"

_MAX_TEXTS: Final = 96
_SIZES: Final = (256, 512, 1024, 1536)

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "cohere_embeddings",
    "Replaces each message by its embedding, by Cohere.",
    description=(
        "The embedding is a list of numbers. To add it to the message instead, use a `branch`. "
        f"Up to {_MAX_TEXTS} messages of a batch are sent in one request, so let the input give "
        "batches. A request that the server refuses is divided, so that one bad text fails "
        "alone.\n"
        "\n"
        "A server that is busy is asked four times, after the pause that its `Retry-After` wants, "
        "up to a minute. Messages that have no embedding then stay as they are and are marked as "
        "failed."
    ),
    fields=(
        *client_fields("embed-english-v3.0", "embed-multilingual-v3.0", "embed-v4.0"),
        TEXT_MAPPING_FIELD,
        Field(
            INPUT_TYPE,
            "string",
            "The use of the embedding: texts that are searched, what is searched for, and others.",
            default="search_document",
            options=("classification", "clustering", "search_document", "search_query"),
        ),
        Field(
            DIMENSIONS,
            "int",
            "Numbers of an embedding, for models since `embed-v4.0`: 256, 512, 1024 or 1536.",
            optional=True,
            check=lambda size: (
                None if size in _SIZES else f"is {size}; expected 256, 512, 1024 or 1536"
            ),
        ),
    ),
    examples=(
        Example(
            "Embeddings beside their texts",
            "pipeline:\n"
            "  processors:\n"
            "    - branch:\n"
            "        processors:\n"
            "          - cohere_embeddings:\n"
            "              api_key: ${COHERE_API_KEY}\n"
            "              model: embed-v4.0\n"
            "              text_mapping: root = this.text\n"
            "        result_map: root.embedding = this\n",
        ),
    ),
    begin={"api_key": "${COHERE_API_KEY}", "model": "embed-v4.0"},
    categories=("AI",),
    delivery="calls are repeated when a micro-batch is replayed",
)


def build(parsed: ParsedFields, context: BuildContext) -> EmbeddingProcessor:
    """Make the client; nothing is connected yet."""
    client = context.worker_resource("cohere", lambda: make_client(parsed, EMBEDDING_TIMEOUT_S))
    body: dict[str, Any] = {
        "model": parsed[MODEL],
        "input_type": parsed[INPUT_TYPE],
        "embedding_types": ["float"],
    }
    if parsed[DIMENSIONS] is not None:
        body["output_dimension"] = parsed[DIMENSIONS]

    def embed(texts: Sequence[str], ex: Execution) -> list[Any]:
        document = client.post("/v2/embed", {**body, "texts": list(texts)}, ex)
        try:
            vectors = document["embeddings"]["float"]
        except (KeyError, TypeError, IndexError):
            vectors = None
        if not isinstance(vectors, list):
            raise ModelError("the answer has no embeddings; expected the URL of Cohere's API")
        return vectors

    return EmbeddingProcessor(
        FieldBytes(TEXT_MAPPING, parsed[TEXT_MAPPING]).text_of,
        embed,
        _MAX_TEXTS,
        ComponentRef(context.component),
        lambda: client.probe(PROBE_PATH),
    )
