"""`cohere_rerank`: sorts documents of each message by how well they answer a query, by Cohere.

Source: Cohere's reference of `POST /v2/rerank`.
"""

from __future__ import annotations

from typing import Any, Final

from streamer.bloblang import compile_mapping
from streamer.bloblang.golib.text import to_text
from streamer.connectors.ai.cohere import PROBE_PATH, client_fields, make_client
from streamer.connectors.ai.errors import ModelError
from streamer.connectors.ai.key_client import MODEL
from streamer.connectors.ai.texts import FieldText
from streamer.connectors.http_client.json_client import ApiError, JsonClient
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.mapping_query import query_value
from streamer.sdk.processing.per_message import PerMessageProcessor
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

QUERY: Final = "query"
DOCUMENTS: Final = "documents"
TOP_N: Final = "top_n"
MAX_TOKENS_PER_DOC: Final = "max_tokens_per_doc"

_TIMEOUT_S: Final = 60.0

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "cohere_rerank",
    "Sorts documents of each message by how well they answer a query, by Cohere.",
    description=(
        "The message is replaced by a list with the best document first: objects with `document`, "
        "`relevance_score` and `index`, its place among the `documents`.\n"
        "\n"
        "A server that is busy is asked four times, after the pause that its `Retry-After` wants, "
        "up to a minute. A message that has no answer then stays as it is and is marked as failed."
    ),
    fields=(
        *client_fields("rerank-v3.5"),
        Field(QUERY, "string", "The query.", interpolated=True, access=Access.NONE),
        Field(
            DOCUMENTS,
            "string",
            "A mapping that gives the list of documents. One that is no text is sent as JSON.",
            mapping=True,
            examples=("root = this.documents",),
        ),
        Field(
            TOP_N,
            "string",
            "How many documents the result has; `0` for all.",
            default="0",
            interpolated=True,
        ),
        Field(
            MAX_TOKENS_PER_DOC,
            "int",
            "Tokens of a document that are taken into account.",
            default=4096,
        ),
    ),
    examples=(
        Example(
            "The three best documents",
            "pipeline:\n"
            "  processors:\n"
            "    - cohere_rerank:\n"
            "        api_key: ${COHERE_API_KEY}\n"
            "        model: rerank-v3.5\n"
            "        query: ${! this.question }\n"
            "        documents: root = this.documents\n"
            "        top_n: 3\n",
        ),
    ),
    begin={
        "api_key": "${COHERE_API_KEY}",
        "model": "rerank-v3.5",
        "query": "${! this.question }",
        "documents": "root = this.documents",
    },
    categories=("AI",),
    delivery="calls are repeated when a micro-batch is replayed",
)


class _Reranker:
    """Requests the order of the documents of a message."""

    def __init__(self, parsed: ParsedFields, client: JsonClient) -> None:
        self._client = client
        self._query = FieldText(QUERY, parsed[QUERY])
        self._top_n = FieldText(TOP_N, parsed[TOP_N])
        self._documents = compile_mapping(parsed[DOCUMENTS])
        self._body = {"model": parsed[MODEL], MAX_TOKENS_PER_DOC: parsed[MAX_TOKENS_PER_DOC]}

    def __call__(self, message: Message, ex: Execution) -> Message:
        """Return the message with its documents in order in its place."""
        query = self._query.of(message, ex)
        documents = self._find_documents(message, ex)
        body: dict[str, Any] = {**self._body, QUERY: query, DOCUMENTS: [*map(to_text, documents)]}
        count = self._top_n.of(message, ex)
        if not count.strip().lstrip("-").isdigit():
            raise ModelError(f"top_n must be a valid integer, found {count!r}")
        if int(count) > 0:
            body[TOP_N] = int(count)
        try:
            answer = self._client.post("/v2/rerank", body, ex)
        except ApiError as error:
            raise ModelError(f"reranking documents: {error}") from None
        return message.with_doc(_read_results(answer, documents))

    def _find_documents(self, message: Message, ex: Execution) -> list[Any]:
        try:
            documents = query_value(self._documents, [message], 0, ex)
        except MessageError as error:
            raise ModelError(f"executing documents: {error}") from None
        if not isinstance(documents, list):
            raise ModelError("the mapping documents gives no list")
        if not documents:
            raise ModelError("no documents to rerank")
        return documents


def _read_results(answer: Any, documents: list[Any]) -> list[dict[str, Any]]:
    try:
        results = [(result["index"], result["relevance_score"]) for result in answer["results"]]
    except (KeyError, TypeError, IndexError):
        raise ModelError("the answer has no results; expected the URL of Cohere's API") from None
    for index, _ in results:
        if type(index) is not int or not 0 <= index < len(documents):
            raise ModelError(
                f"invalid API response: out of range index {index} for documents array of length "
                f"{len(documents)}"
            )
    return [
        {"document": documents[index], "relevance_score": score, "index": index}
        for index, score in results
    ]


class _RerankProcessor(PerMessageProcessor):
    """Reranks documents of every message; see `SupportsProbe`."""

    def __init__(self, reranker: _Reranker, origin: ComponentRef, client: JsonClient) -> None:
        super().__init__(reranker, origin)
        self._client = client

    def probe(self) -> str:
        """Check that the server answers, and takes the key."""
        return self._client.probe(PROBE_PATH)


def build(parsed: ParsedFields, context: BuildContext) -> PerMessageProcessor:
    """Make the client; nothing is connected yet."""
    client = context.worker_resource("cohere", lambda: make_client(parsed, _TIMEOUT_S))
    return _RerankProcessor(_Reranker(parsed, client), ComponentRef(context.component), client)
