"""`openai_chat_completion`: has a model of OpenAI, or of a server like it, answer each message.

It "sends the contents of user prompts to the OpenAI API, which generates responses". Source:
OpenAI's reference of `POST /chat/completions`.
"""

from __future__ import annotations

import base64
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
from streamer.connectors.ai.errors import ModelError
from streamer.connectors.ai.key_client import MODEL
from streamer.connectors.ai.openai import PROBE_PATH, client_fields, make_client
from streamer.connectors.ai.prompt_fields import (
    HISTORY,
    HISTORY_FIELD,
    IMAGE,
    IMAGE_FIELD,
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
    NamedSchema,
    RegistrySchema,
    response_problems,
    schema_problem,
    schema_registry_field,
)
from streamer.connectors.ai.texts import (
    FieldText,
    image_type,
    optional_bytes,
    optional_text,
    read_history,
)
from streamer.connectors.ai.tools import (
    TOOLS,
    TOOLS_FIELD,
    Tool,
    build_tools,
    combine_results,
    tool_problems,
)
from streamer.core.execution import Execution
from streamer.core.json.parse import parse_json
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.checks import join_checks

USER: Final = "user"

MAX_TOOL_CALLS: Final = 10

_SETTINGS: Final = (
    *("max_tokens", "temperature", "top_p", "frequency_penalty", "presence_penalty", "seed"),
    "stop",
)
"""Fields whose values are sent as they are, under the same name."""


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "openai_chat_completion",
    "Has a model of OpenAI, or of a server with the same API, answer each message.",
    description=(
        "The answer replaces the message; its metadata stays. The messages of a batch are asked "
        "about one after another; put the processor into `parallel` for several at a time.\n"
        "\n"
        "A server that is busy (`429`, `500` to `504` and others) is asked four times, after "
        "the pause that its `Retry-After` wants, up to a minute. A message that has no answer "
        "then stays as it is and is marked as failed.\n"
        "\n"
        "### Tools\n"
        "The model may call the functions in `tools`, up to ten times for a message. The arguments "
        "are a message with the metadata of the one that is asked about. What the processors of "
        "the tool make of it is the result. An error in a tool fails the message."
    ),
    fields=(
        *client_fields("gpt-4o", "gpt-4o-mini", "gpt-4", "gpt4-turbo"),
        PROMPT_FIELD,
        system_prompt_field(),
        HISTORY_FIELD,
        IMAGE_FIELD,
        MAX_TOKENS_FIELD,
        setting_field(
            "temperature", "float", "Randomness of answers, from 0 to 2.", advanced=False
        ),
        Field(
            USER,
            "string",
            "A name of whoever asks, for OpenAI's detection of abuse.",
            optional=True,
            interpolated=True,
        ),
        RESPONSE_FORMAT_FIELD,
        Field(
            JSON_SCHEMA,
            "object",
            "The JSON schema of the answer.",
            optional=True,
            children=(
                Field("name", "string", "The name of the schema.", access=Access.NONE),
                Field(
                    "description",
                    "string",
                    "The purpose of the schema, for the model.",
                    access=Access.NONE,
                    optional=True,
                    advanced=True,
                ),
                Field(
                    "schema",
                    "string",
                    "The schema, as JSON.",
                    access=Access.NONE,
                    check=schema_problem,
                ),
            ),
        ),
        schema_registry_field(names=True),
        setting_field("top_p", "float", "Share of likely tokens that are taken into account."),
        setting_field("frequency_penalty", "float", "From -2 to 2: high values repeat words less."),
        setting_field("presence_penalty", "float", "From -2 to 2: high values change topics more."),
        setting_field("seed", "int", "Seed: the same one gives the same answers, mostly."),
        stop_field("Up to four texts at which an answer ends."),
        TOOLS_FIELD,
    ),
    check=join_checks(response_problems, tool_problems),
    examples=(
        Example(
            "Facts about texts",
            "pipeline:\n"
            "  processors:\n"
            "    - openai_chat_completion:\n"
            "        api_key: ${OPENAI_API_KEY}\n"
            "        model: gpt-4o-mini\n"
            "        prompt: 'In one word, the mood of this text: ${! this.text }'\n",
        ),
        Example(
            "A tool",
            "pipeline:\n"
            "  processors:\n"
            "    - openai_chat_completion:\n"
            "        api_key: ${OPENAI_API_KEY}\n"
            "        model: gpt-4o\n"
            "        prompt: Will it rain in ${! this.city } today?\n"
            "        tools:\n"
            "          - name: forecast\n"
            "            description: Get the weather forecast of a city.\n"
            "            parameters:\n"
            "              required: [city]\n"
            "              properties:\n"
            "                city: {type: string, description: The name of the city.}\n"
            "            processors:\n"
            "              - http:\n"
            "                  url: http://localhost:8080/forecast/${! this.city }\n"
            "                  verb: GET\n",
        ),
    ),
    begin={"api_key": "${OPENAI_API_KEY}", "model": "gpt-4o-mini"},
    categories=("AI",),
    delivery="calls are repeated when a micro-batch is replayed",
)


class _OpenAiChat:
    """Chats in the words of OpenAI's API."""

    path = "/chat/completions"

    def __init__(self, parsed: ParsedFields, tools: dict[str, Tool]) -> None:
        self._prompt = FieldText(PROMPT, parsed[PROMPT])
        self._system = optional_text(SYSTEM_PROMPT, parsed)
        self._user = optional_text(USER, parsed)
        self._history = optional_bytes(HISTORY, parsed)
        self._image = optional_bytes(IMAGE, parsed)
        self._body: dict[str, Any] = {"model": parsed[MODEL]}
        for name in _SETTINGS:
            if parsed[name] is not None:
                self._body[name] = list(parsed[name]) if name == "stop" else parsed[name]
        if tools:
            self._body["parallel_tool_calls"] = False
            self._body["tools"] = [tool.declaration for tool in tools.values()]
        self._format: str = parsed[RESPONSE_FORMAT]
        self._schema: Callable[[], NamedSchema] | None = _schema_source(parsed)

    def begin(self, message: Message, ex: Execution) -> Chat:
        """Make the first request of a message."""
        messages: list[dict[str, Any]] = []
        if self._system is not None:
            messages.append({"role": "system", "content": self._system.of(message, ex)})
        if self._history is not None:
            messages += read_history(self._history, message, ex)
        messages.append({"role": "user", "content": self._prompt.of(message, ex)})
        if self._image is not None:
            messages.append(_image_message(self._image.of(message, ex)))
        body = {**self._body, "messages": messages}
        if self._user is not None:
            body["user"] = self._user.of(message, ex)
        if self._format != "text":
            body["response_format"] = self._response_format()
        return Chat(body)

    def _response_format(self) -> dict[str, Any]:
        if self._schema is None:
            return {"type": "json_object"}
        schema = self._schema()
        described = {"description": schema.description} if schema.description else {}
        named = {"name": schema.name, **described, "schema": schema.schema, "strict": True}
        return {"type": "json_schema", "json_schema": named}

    def read(self, document: Any, message: Message) -> Answer:
        """Read an answer."""
        choices = document["choices"]
        if len(choices) != 1:
            raise ModelError(f"invalid number of choices in response: {len(choices)}")
        reply = choices[0]["message"]
        calls = [
            ToolCall(
                str(call["id"]),
                str(call["function"]["name"]),
                message.with_bytes(str(call["function"]["arguments"]).encode()),
            )
            for call in reply.get("tool_calls") or ()
        ]
        return Answer(str(reply.get("content") or ""), tuple(calls), reply)

    def write_result(self, call: ToolCall, made: Batch) -> dict[str, Any]:
        """Return the message that has the result of a tool."""
        content = combine_results(made)
        return {"role": "tool", "content": content, "name": call.name, "tool_call_id": call.id}


def _image_message(image: bytes) -> dict[str, Any]:
    url = f"data:{image_type(image)};base64,{base64.b64encode(image).decode()}"
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}


def _schema_source(parsed: ParsedFields) -> Callable[[], NamedSchema] | None:
    if parsed[RESPONSE_FORMAT] != JSON_SCHEMA:
        return None
    if parsed[JSON_SCHEMA] is None:
        return RegistrySchema(parsed[SCHEMA_REGISTRY])
    fields = parsed[JSON_SCHEMA]
    schema = parse_json(fields["schema"].encode())
    named = NamedSchema(fields["name"], schema, fields["description"] or "")
    return lambda: named


def build(parsed: ParsedFields, context: BuildContext) -> ChatProcessor:
    """Make the client and the tools; nothing is connected yet."""
    client = context.worker_resource("openai", lambda: make_client(parsed, CHAT_TIMEOUT_S))
    tools = build_tools(parsed[TOOLS], context)
    caller = Caller(client, _OpenAiChat(parsed, tools), tools, MAX_TOOL_CALLS)
    return ChatProcessor(caller, ComponentRef(context.component), client, PROBE_PATH)
