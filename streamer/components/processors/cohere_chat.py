"""`cohere_chat`: has a model of Cohere answer each message.

It "sends the contents of user prompts to the Cohere API, which generates responses". Source:
Cohere's reference of `POST /v2/chat`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamer.connectors.ai.chat import (
    CHAT_TIMEOUT_S,
    Answer,
    Caller,
    Chat,
    ChatProcessor,
    ToolCall,
)
from streamer.connectors.ai.cohere import PROBE_PATH, client_fields, make_client
from streamer.connectors.ai.key_client import MODEL
from streamer.connectors.ai.prompt_fields import (
    MAX_TOKENS_FIELD,
    PROMPT,
    PROMPT_FIELD,
    SYSTEM_PROMPT,
    setting_field,
    stop_field,
    system_prompt_field,
)
from streamer.connectors.ai.response_schema import (
    JSON_SCHEMA,
    RESPONSE_FORMAT,
    RESPONSE_FORMAT_FIELD,
    SCHEMA_REGISTRY,
    RegistrySchema,
    response_problems,
    schema_problem,
    schema_registry_field,
)
from streamer.connectors.ai.texts import FieldText, optional_text
from streamer.connectors.ai.tools import TOOLS, TOOLS_FIELD, Tool, build_tools, tool_problems
from streamer.core.execution import Execution
from streamer.core.json.parse import parse_json
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.checks import join_checks

MAX_TOOL_CALLS: Final = "max_tool_calls"

_SETTINGS: Final = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "p",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
    "stop": "stop_sequences",
}
"""Fields whose values are sent as they are, and their names in a request."""


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "cohere_chat",
    "Has a model of Cohere answer each message.",
    description=(
        "The answer replaces the message; its metadata stays. The messages of a batch are asked "
        "about one after another; put the processor into `parallel` for several at a time.\n"
        "\n"
        "A server that is busy is asked four times, after the pause that its `Retry-After` wants, "
        "up to a minute. A message that has no answer then stays as it is and is marked as "
        "failed.\n"
        "\n"
        "The model may call the functions in `tools`; an error in a tool fails the message."
    ),
    fields=(
        *client_fields("command-a-03-2025", "command-r-plus", "command-r"),
        PROMPT_FIELD,
        system_prompt_field(),
        MAX_TOKENS_FIELD,
        setting_field("temperature", "float", "Randomness of answers.", advanced=False),
        RESPONSE_FORMAT_FIELD,
        Field(
            JSON_SCHEMA,
            "string",
            "The JSON schema of the answer, as JSON.",
            access=Access.NONE,
            optional=True,
            check=schema_problem,
        ),
        schema_registry_field(names=False),
        setting_field("top_p", "float", "Share of likely tokens that are taken into account."),
        setting_field("frequency_penalty", "float", "From 0 to 1: high values repeat words less."),
        setting_field("presence_penalty", "float", "From 0 to 1: high values change topics more."),
        setting_field("seed", "int", "Seed: the same one gives the same answers, mostly."),
        stop_field("Texts at which an answer ends."),
        Field(
            MAX_TOOL_CALLS,
            "int",
            "How often the model may call tools for a message. After that it is asked once more, "
            "without tools.",
            default=10,
            check=lambda count: None if count >= 0 else "must not be negative",
        ),
        TOOLS_FIELD,
    ),
    check=join_checks(response_problems, tool_problems),
    examples=(
        Example(
            "A language",
            "pipeline:\n"
            "  processors:\n"
            "    - cohere_chat:\n"
            "        api_key: ${COHERE_API_KEY}\n"
            "        model: command-r\n"
            "        prompt: 'In one word, the language of this text: ${! this.text }'\n",
        ),
    ),
    begin={"api_key": "${COHERE_API_KEY}", "model": "command-r"},
    categories=("AI",),
    delivery="calls are repeated when a micro-batch is replayed",
)


class _CohereChat:
    """Chats in the words of Cohere's API."""

    path = "/v2/chat"

    def __init__(self, parsed: ParsedFields, tools: dict[str, Tool]) -> None:
        self._prompt = FieldText(PROMPT, parsed[PROMPT])
        self._system = optional_text(SYSTEM_PROMPT, parsed)
        self._body: dict[str, Any] = {"model": parsed[MODEL], "stream": False}
        for name, sent in _SETTINGS.items():
            if parsed[name] is not None:
                self._body[sent] = list(parsed[name]) if name == "stop" else parsed[name]
        if tools:
            self._body["tools"] = [tool.declaration for tool in tools.values()]
        self._format: str = parsed[RESPONSE_FORMAT]
        self._schema: Callable[[], dict[str, Any]] | None = _schema_source(parsed)

    def begin(self, message: Message, ex: Execution) -> Chat:
        """Make the first request of a message."""
        messages = []
        if self._system is not None:
            messages.append({"role": "system", "content": self._system.of(message, ex)})
        messages.append({"role": "user", "content": self._prompt.of(message, ex)})
        form: dict[str, Any] = {"type": "text"}
        if self._format != "text":
            schema = {} if self._schema is None else {"json_schema": self._schema()}
            form = {"type": "json_object", **schema}
        return Chat({**self._body, "messages": messages, "response_format": form})

    def read(self, document: Any, message: Message) -> Answer:
        """Read an answer."""
        reply = document["message"]
        calls = []
        for call in reply.get("tool_calls") or ():
            function = call["function"]
            if function.get("arguments") in (None, "", "null"):
                # The API refuses to be told of the arguments that it has given itself.
                function["arguments"] = "{}"
            arguments = Message(str(function["arguments"]).encode())
            calls.append(ToolCall(str(call["id"]), str(function["name"]), arguments))
        text = "".join(
            str(part["text"]) for part in reply.get("content") or () if part.get("type") == "text"
        )
        kept = {key: reply[key] for key in ("role", "tool_plan", "tool_calls") if key in reply}
        return Answer(text, tuple(calls), kept)

    def write_result(self, call: ToolCall, made: Batch) -> dict[str, Any]:
        """Return the message that has the result of a tool."""
        parts = [{"type": "text", "text": one.raw.decode(errors="replace")} for one in made]
        return {"role": "tool", "tool_call_id": call.id, "content": parts}


def _schema_source(parsed: ParsedFields) -> Callable[[], dict[str, Any]] | None:
    if parsed[RESPONSE_FORMAT] != JSON_SCHEMA:
        return None
    if parsed[JSON_SCHEMA] is None:
        kept = RegistrySchema(parsed[SCHEMA_REGISTRY])
        return lambda: kept().schema
    schema = parse_json(parsed[JSON_SCHEMA].encode())
    return lambda: schema


def build(parsed: ParsedFields, context: BuildContext) -> ChatProcessor:
    """Make the client and the tools; nothing is connected yet."""
    client = context.worker_resource("cohere", lambda: make_client(parsed, CHAT_TIMEOUT_S))
    tools = build_tools(parsed[TOOLS], context)
    caller = Caller(
        client, _CohereChat(parsed, tools), tools, parsed[MAX_TOOL_CALLS], last_without_tools=True
    )
    return ChatProcessor(caller, ComponentRef(context.component), client, PROBE_PATH)
