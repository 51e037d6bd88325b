"""`ollama_embeddings`: replaces messages by their embeddings, by a model that Ollama runs.

It "sends text to your chosen Ollama large language model (LLM) and creates vector embeddings,
using the Ollama API". Source: Ollama's reference of `POST /api/embeddings`, which takes one text;
the newer `/api/embed` takes several, but scales vectors to the length 1, as Connect does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from streamer.connectors.ai.embeddings import EMBEDDING_TIMEOUT_S, EmbeddingProcessor, request_list
from streamer.connectors.ai.ollama import (
    MODEL,
    PROBE_PATH,
    SERVER_FIELDS,
    OllamaClient,
    model_field,
    runner_options,
    server_problems,
)
from streamer.connectors.ai.texts import FieldText
from streamer.core.execution import Execution
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

TEXT: Final = "text"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "ollama_embeddings",
    "Replaces each message by its embedding, by a model that Ollama runs.",
    description=(
        "The embedding is a list of numbers. To add it to the message instead, use a `branch`. "
        "Each message is a request. Start the server beside this program, by `ollama serve`.\n"
        "\n"
        "A server that is busy is asked four times. A message that has no embedding then stays as "
        "it is and is marked as failed."
    ),
    fields=(
        model_field("nomic-embed-text", "mxbai-embed-large", "snowflake-arctic-embed"),
        Field(
            TEXT,
            "string",
            "The text. Without it, the message.",
            optional=True,
            interpolated=True,
            examples=("${! this.text }",),
        ),
        *SERVER_FIELDS,
    ),
    check=server_problems,
    examples=(
        Example(
            "Embeddings beside their texts",
            "pipeline:\n"
            "  processors:\n"
            "    - branch:\n"
            "        processors:\n"
            "          - ollama_embeddings:\n"
            "              model: nomic-embed-text\n"
            "              text: ${! this.text }\n"
            "        result_map: root.embedding = this\n",
        ),
    ),
    begin={"model": "nomic-embed-text"},
    categories=("AI",),
    limits="starts no server; gets a model only when it is missing",
    delivery="calls are repeated when a micro-batch is replayed",
)


def build(parsed: ParsedFields, context: BuildContext) -> EmbeddingProcessor:
    """Make the client; nothing is connected yet."""
    client = context.worker_resource("ollama", lambda: OllamaClient(parsed, EMBEDDING_TIMEOUT_S))
    options = runner_options(parsed)
    body: dict[str, Any] = {"model": parsed[MODEL]}
    if options:
        body["options"] = options

    def embed(texts: Sequence[str], ex: Execution) -> list[Any]:
        return [
            request_list(client, "/api/embeddings", {**body, "prompt": text}, "embedding", ex)
            for text in texts
        ]

    return EmbeddingProcessor(
        FieldText(TEXT, parsed[TEXT]).of,
        embed,
        1,
        ComponentRef(context.component),
        lambda: client.probe(PROBE_PATH),
    )
