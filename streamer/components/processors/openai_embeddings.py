"""`openai_embeddings`: replaces messages by their embeddings, by OpenAI or a server like it.

It "sends text strings to the OpenAI API, which generates vector embeddings". Source: OpenAI's
reference of `POST /embeddings`, which takes up to 2,048 texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from streamer.connectors.ai.embeddings import EMBEDDING_TIMEOUT_S, EmbeddingProcessor, request_list
from streamer.connectors.ai.errors import ModelError
from streamer.connectors.ai.key_client import MODEL
from streamer.connectors.ai.openai import PROBE_PATH, client_fields, make_client
from streamer.connectors.ai.prompt_fields import TEXT_MAPPING, TEXT_MAPPING_FIELD
from streamer.connectors.ai.texts import FieldBytes
from streamer.core.execution import Execution
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

DIMENSIONS: Final = "dimensions"

_MAX_TEXTS: Final = 256

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "openai_embeddings",
    "Replaces each message by its embedding, by OpenAI or a server with the same API.",
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
        *client_fields(
            "text-embedding-3-large", "text-embedding-3-small", "text-embedding-ada-002"
        ),
        TEXT_MAPPING_FIELD,
        Field(
            DIMENSIONS,
            "int",
            "Numbers of an embedding; models since `text-embedding-3` can give fewer.",
            optional=True,
        ),
    ),
    examples=(
        Example(
            "Embeddings beside their texts",
            "pipeline:\n"
            "  processors:\n"
            "    - branch:\n"
            "        processors:\n"
            "          - openai_embeddings:\n"
            "              api_key: ${OPENAI_API_KEY}\n"
            "              model: text-embedding-3-small\n"
            "              text_mapping: root = this.text\n"
            "        result_map: root.embedding = this\n",
        ),
    ),
    begin={"api_key": "${OPENAI_API_KEY}", "model": "text-embedding-3-small"},
    categories=("AI",),
    delivery="calls are repeated when a micro-batch is replayed",
)


def build(parsed: ParsedFields, context: BuildContext) -> EmbeddingProcessor:
    """Make the client; nothing is connected yet."""
    client = context.worker_resource("openai", lambda: make_client(parsed, EMBEDDING_TIMEOUT_S))
    body: dict[str, Any] = {"model": parsed[MODEL]}
    if parsed[DIMENSIONS] is not None:
        body[DIMENSIONS] = parsed[DIMENSIONS]

    def embed(texts: Sequence[str], ex: Execution) -> list[Any]:
        data = request_list(client, "/embeddings", {**body, "input": list(texts)}, "data", ex)
        by_place = {one.get("index", n): one for n, one in enumerate(data) if type(one) is dict}
        if sorted(by_place) != list(range(len(texts))):
            raise ModelError(f"expected {len(texts)} embeddings, got {len(data)}")
        return [by_place[place].get("embedding") for place in range(len(texts))]

    return EmbeddingProcessor(
        FieldBytes(TEXT_MAPPING, parsed[TEXT_MAPPING]).text_of,
        embed,
        _MAX_TEXTS,
        ComponentRef(context.component),
        lambda: client.probe(PROBE_PATH),
    )
