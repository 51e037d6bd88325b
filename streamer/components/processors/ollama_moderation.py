"""`ollama_moderation`: has a model that Ollama runs judge whether an answer is safe.

It "checks LLM responses for safety using Ollama". Source: Ollama's reference of `POST /api/chat`,
and the answers of the models `llama-guard3` and `shieldgemma`.
"""

from __future__ import annotations

from typing import Any, Final

from streamer.connectors.ai.chat import CHAT_TIMEOUT_S
from streamer.connectors.ai.errors import ModelError
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
from streamer.connectors.http_client.json_client import ApiError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.per_message import PerMessageProcessor
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

PROMPT: Final = "prompt"
RESPONSE: Final = "response"

_VERDICTS: Final = {"Yes": "no", "unsafe": "no", "No": "yes", "safe": "yes"}
"""What models say, and whether the answer is safe then."""

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "ollama_moderation",
    "Has a model that Ollama runs judge whether an answer of a model is safe.",
    description=(
        "The message stays as it is. Its metadata `safe` is `yes` or `no`; `category` is the kind "
        "of danger, where the model names one. A message that has no verdict is marked as failed."
    ),
    fields=(
        model_field(options=("llama-guard3", "shieldgemma")),
        Field(PROMPT, "string", "What a model was asked.", interpolated=True),
        Field(RESPONSE, "string", "What the model has answered.", interpolated=True),
        *SERVER_FIELDS,
    ),
    check=server_problems,
    examples=(
        Example(
            "Only safe answers",
            "pipeline:\n"
            "  processors:\n"
            "    - ollama_moderation:\n"
            "        model: llama-guard3\n"
            "        prompt: ${! this.question }\n"
            "        response: ${! this.answer }\n"
            '    - mapping: root = if @safe == "no" { deleted() }\n',
        ),
    ),
    begin={
        "model": "llama-guard3",
        "prompt": "${! this.question }",
        "response": "${! this.answer }",
    },
    categories=("AI",),
    limits="starts no server; gets a model only when it is missing",
    delivery="calls are repeated when a micro-batch is replayed",
)


class _Moderator:
    """Requests the verdict on a message."""

    def __init__(self, parsed: ParsedFields, client: OllamaClient) -> None:
        self._client = client
        self._prompt = FieldText(PROMPT, parsed[PROMPT])
        self._response = FieldText(RESPONSE, parsed[RESPONSE])
        self._body: dict[str, Any] = {"model": parsed[MODEL], "stream": False}
        options = runner_options(parsed)
        if options:
            self._body["options"] = options

    def __call__(self, message: Message, ex: Execution) -> Message:
        """Return the message with the verdict in its metadata."""
        messages = [
            {"role": "user", "content": self._prompt.of(message, ex)},
            {"role": "assistant", "content": self._response.of(message, ex)},
        ]
        try:
            document = self._client.post("/api/chat", {**self._body, "messages": messages}, ex)
            verdict, *more = str(document["message"]["content"]).split("\n")
        except ApiError as error:
            raise ModelError(str(error)) from None
        except (KeyError, TypeError, IndexError):
            raise ModelError("the answer is not what the API promises: no message in it") from None
        if verdict not in _VERDICTS:
            raise ModelError(
                f"unexpected moderation response from {self._body['model']}: {verdict[:200]!r}"
            )
        category = {"category": more[0]} if more else {}
        return message.with_added_metadata(safe=_VERDICTS[verdict], **category)


class _ModerationProcessor(PerMessageProcessor):
    """Judges every message; see `SupportsProbe`."""

    def __init__(self, moderator: _Moderator, origin: ComponentRef, client: OllamaClient) -> None:
        super().__init__(moderator, origin)
        self._client = client

    def probe(self) -> str:
        """Check that the server answers."""
        return self._client.probe(PROBE_PATH)


def build(parsed: ParsedFields, context: BuildContext) -> PerMessageProcessor:
    """Make the client; nothing is connected yet."""
    client = context.worker_resource("ollama", lambda: OllamaClient(parsed, CHAT_TIMEOUT_S))
    return _ModerationProcessor(_Moderator(parsed, client), ComponentRef(context.component), client)
