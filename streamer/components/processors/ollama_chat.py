"""`ollama_chat`: has a model that Ollama runs answer each message.

It "sends prompts to your chosen Ollama large language model (LLM) and generates text from the
responses, using the Ollama API". Source: Ollama's reference of `POST /api/chat`.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from streamer.connectors.ai.chat import (
    CHAT_TIMEOUT_S,
    Answer,
    Caller,
    Chat,
    ChatProcessor,
    ToolCall,
)
from streamer.connectors.ai.ollama import (
    MODEL,
    PROBE_PATH,
    SERVER_FIELDS,
    OllamaClient,
    model_field,
    runner_options,
    server_problems,
)
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
from streamer.connectors.ai.texts import FieldText, optional_bytes, optional_text, read_history
from streamer.connectors.ai.tools import (
    TOOLS,
    TOOLS_FIELD,
    Tool,
    build_tools,
    combine_results,
    tool_problems,
)
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.checks import join_checks

RESPONSE_FORMAT: Final = "response_format"
SAVE_PROMPT_METADATA: Final = "save_prompt_metadata"
MAX_TOOL_CALLS: Final = "max_tool_calls"

_OPTIONS: Final = {
    "max_tokens": "num_predict",
    "temperature": "temperature",
    "num_keep": "num_keep",
    "seed": "seed",
    "top_k": "top_k",
    "top_p": "top_p",
    "repeat_penalty": "repeat_penalty",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "stop": "stop",
}
"""Fields that are options of the model, and their names in a request."""


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "ollama_chat",
    "Has a model that Ollama runs answer each message.",
    description=(
        "The answer replaces the message; its metadata stays. The messages of a batch are asked "
        "about one after another; put the processor into `parallel` for several at a time. Start "
        "the server beside this program, by `ollama serve`.\n"
        "\n"
        "A server that is busy is asked four times. A message that has no answer then stays as it "
        "is and is marked as failed.\n"
        "\n"
        "The model may call the functions in `tools`; an error in a tool fails the message."
    ),
    fields=(
        model_field("llama3.1", "gemma2", "qwen2", "phi3"),
        PROMPT_FIELD,
        system_prompt_field(advanced=True),
        IMAGE_FIELD,
        Field(
            RESPONSE_FORMAT,
            "string",
            "The format of the answer. With `json`, the prompt must ask for JSON too.",
            default="text",
            options=("text", "json"),
        ),
        MAX_TOKENS_FIELD,
        setting_field("temperature", "float", "Randomness of answers.", advanced=False),
        setting_field("num_keep", "int", "Tokens of the prompt that are kept when it is cut."),
        setting_field("seed", "int", "Seed: the same one gives the same answers."),
        setting_field("top_k", "int", "Number of likely tokens that are taken into account."),
        setting_field("top_p", "float", "Share of likely tokens that are taken into account."),
        setting_field("repeat_penalty", "float", "High values repeat words less."),
        setting_field("presence_penalty", "float", "High values change topics more."),
        setting_field("frequency_penalty", "float", "High values repeat words less."),
        stop_field("Texts at which an answer ends."),
        Field(
            SAVE_PROMPT_METADATA,
            "bool",
            "True if the message gets the metadata `prompt` and `system_prompt`.",
            default=False,
        ),
        HISTORY_FIELD,
        Field(
            MAX_TOOL_CALLS,
            "int",
            "How often the model may call tools for a message.",
            default=3,
            advanced=True,
            check=lambda count: None if count >= 0 else "must not be negative",
        ),
        TOOLS_FIELD,
        *SERVER_FIELDS,
    ),
    check=join_checks(server_problems, tool_problems),
    examples=(
        Example(
            "A summary",
            "pipeline:\n"
            "  processors:\n"
            "    - ollama_chat:\n"
            "        server_address: http://127.0.0.1:11434\n"
            "        model: llama3.1\n"
            "        prompt: 'Sum up in one sentence: ${! this.text }'\n",
        ),
    ),
    begin={"model": "llama3.1"},
    categories=("AI",),
    limits="starts no server; gets a model only when it is missing",
    delivery="calls are repeated when a micro-batch is replayed",
)


class _OllamaChat:
    """Chats in the words of Ollama's API."""

    path = "/api/chat"

    def __init__(self, parsed: ParsedFields, tools: dict[str, Tool]) -> None:
        self._prompt = FieldText(PROMPT, parsed[PROMPT])
        self._system = optional_text(SYSTEM_PROMPT, parsed)
        self._image = optional_bytes(IMAGE, parsed)
        self._history = optional_bytes(HISTORY, parsed)
        self._saves_prompt: bool = parsed[SAVE_PROMPT_METADATA]
        options = runner_options(parsed)
        for name, option in _OPTIONS.items():
            if parsed[name] is not None:
                options[option] = list(parsed[name]) if name == "stop" else parsed[name]
        self._body: dict[str, Any] = {"model": parsed[MODEL], "stream": False}
        if options:
            self._body["options"] = options
        if parsed[RESPONSE_FORMAT] == "json":
            self._body["format"] = "json"
        if tools:
            self._body["tools"] = [tool.declaration for tool in tools.values()]

    def begin(self, message: Message, ex: Execution) -> Chat:
        """Make the first request of a message."""
        system = "" if self._system is None else self._system.of(message, ex)
        prompt: dict[str, Any] = {"role": "user", "content": self._prompt.of(message, ex)}
        if self._image is not None:
            prompt["images"] = [base64.b64encode(self._image.of(message, ex)).decode()]
        messages = [] if self._history is None else list(read_history(self._history, message, ex))
        if system:
            messages.append({"role": "system", "content": system})
        meta = {}
        if self._saves_prompt:
            meta = {SYSTEM_PROMPT: system} if system else {}
            meta[PROMPT] = prompt["content"]
        return Chat({**self._body, "messages": [*messages, prompt]}, meta)

    def read(self, document: Any, message: Message) -> Answer:
        """Read an answer."""
        reply = document["message"]
        calls = [
            ToolCall(
                "",
                str(call["function"]["name"]),
                Message.from_value(call["function"].get("arguments") or {}),
            )
            for call in reply.get("tool_calls") or ()
        ]
        return Answer(str(reply.get("content") or ""), tuple(calls), reply)

    def write_result(self, call: ToolCall, made: Batch) -> dict[str, Any]:
        """Return the message that has the result of a tool."""
        return {"role": "tool", "content": combine_results(made), "tool_name": call.name}


def build(parsed: ParsedFields, context: BuildContext) -> ChatProcessor:
    """Make the client and the tools; nothing is connected yet."""
    client = context.worker_resource("ollama", lambda: OllamaClient(parsed, CHAT_TIMEOUT_S))
    tools = build_tools(parsed[TOOLS], context)
    caller = Caller(client, _OllamaChat(parsed, tools), tools, parsed[MAX_TOOL_CALLS])
    return ChatProcessor(caller, ComponentRef(context.component), client, PROBE_PATH)
