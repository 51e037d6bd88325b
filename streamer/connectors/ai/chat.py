"""A chat with a model: a request made of a message, calls of tools, and the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from streamer.connectors.ai.errors import ModelError
from streamer.connectors.ai.tools import Tool, find_tool
from streamer.connectors.http_client.json_client import ApiError, JsonClient
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.per_message import PerMessageProcessor

CHAT_TIMEOUT_S: Final = 300.0
"""How long a model may think about one answer."""


class ToolCall(NamedTuple):
    """A call of a tool by a model.

    Attributes:
        id: by which the result is told from others; empty where the API has none.
        name: of the tool.
        arguments: a message with the arguments.
    """

    id: str
    name: str
    arguments: Message


class Answer(NamedTuple):
    """An answer of a model.

    Attributes:
        text: what it says.
        calls: the tools that it wants called before it says more.
        reply: the answer as a message of the chat, for the next request.
    """

    text: str
    calls: tuple[ToolCall, ...]
    reply: dict[str, Any]


@dataclass(slots=True)
class Chat:
    """A chat that begins.

    Attributes:
        body: the request: the model, its messages and settings.
        meta: metadata that the answer's message has besides.
    """

    body: dict[str, Any]
    meta: Mapping[str, Any] = field(default_factory=dict)


class ChatModel(Protocol):
    """A chat in the words of one API."""

    path: str
    """Where requests go."""

    def begin(self, message: Message, ex: Execution) -> Chat:
        """Make the first request of a message.

        Raises:
            MessageError: a field cannot be made of it.
        """

    def read(self, document: Any, message: Message) -> Answer:
        """Read an answer; `message` is what the chat began with.

        Raises:
            ModelError: it is not what the API promises.
        """

    def write_result(self, call: ToolCall, made: Batch) -> dict[str, Any]:
        """Return the message of the chat that has the result of a tool."""


class Caller:
    """Calls a model, and tools for it, until it has answered."""

    def __init__(
        self,
        client: JsonClient,
        model: ChatModel,
        tools: Mapping[str, Tool],
        max_tool_calls: int,
        *,
        last_without_tools: bool = False,
    ) -> None:
        """Take what is called.

        Args:
            client: of the API.
            model: makes requests, and reads answers.
            tools: by name.
            max_tool_calls: how often the model may call tools for one message.
            last_without_tools: whether it is asked once more then, without tools.
        """
        self._client = client
        self._model = model
        self._tools = tools
        self._max_tool_calls = max_tool_calls
        self._last_without_tools = last_without_tools

    def __call__(self, message: Message, ex: Execution) -> Message:
        """Return the message with the model's answer in its place.

        Raises:
            MessageError: there is none.
        """
        chat = self._model.begin(message, ex)
        body = chat.body
        for count in range(self._max_tool_calls + 1):
            is_last = count == self._max_tool_calls
            if is_last and self._last_without_tools:
                body.pop("tools", None)
            answer = self._request(body, message, ex)
            if not answer.calls:
                return message.with_bytes(answer.text.encode()).with_added_metadata(**chat.meta)
            body["messages"].append(answer.reply)
            for call in answer.calls:
                made = find_tool(self._tools, call.name).call(call.arguments, ex)
                body["messages"].append(self._model.write_result(call, made))
        raise ModelError(f"model did not finish after {self._max_tool_calls} function calls")

    def _request(self, body: dict[str, Any], message: Message, ex: Execution) -> Answer:
        try:
            document = self._client.post(self._model.path, body, ex)
        except ApiError as error:
            raise ModelError(str(error)) from None
        try:
            return self._model.read(document, message)
        except (KeyError, TypeError, IndexError, AttributeError):
            raise ModelError("the answer is not what the API promises: no message in it") from None


class ChatProcessor(PerMessageProcessor):
    """Queries a model about every message; see `SupportsProbe`."""

    def __init__(
        self, caller: Caller, origin: ComponentRef, client: JsonClient, probe_path: str
    ) -> None:
        """Take what calls the model, the component, its client, and what a dry run asks for."""
        super().__init__(caller, origin)
        self._client = client
        self._probe_path = probe_path

    def probe(self) -> str:
        """Check that the server answers, and takes the key."""
        return self._client.probe(self._probe_path)
