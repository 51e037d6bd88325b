"""Answers to requests that wait for them: how a `sync_response` reaches who has asked.

An input that holds a request open until its messages have been through the pipeline gives them its
number in their metadata (`REQUEST`). What answers puts its payloads into the run (`answer`); with
the micro-batch's results they return to the driver, where the input gets them once everything
is written. A request that nothing answers is told so as well.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Mapping
from typing import Final

from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message

_NO_REFUSALS: Final[Mapping[str, str]] = {}

REQUEST: Final = "http_server_request_id"
"""The metadata that names the request that a message came with, where one waits for an answer."""


def add_answers(batch: Batch, ex: Execution) -> None:
    """Answer the requests that the messages of a batch came with, with these messages.

    A message that came with none, or whose request was not read in this run, is left aside; further
    answers to a request are added to the first one.
    """
    for message in batch:
        answers = ex.answers.get(str(message.meta.get(REQUEST, "")))
        if answers is not None:
            answers.append(message.copy())


def without_request(message: Message) -> Message:
    """Return a message without the name of its request, as it is shown to who has asked."""
    if REQUEST not in message.meta:
        return message
    return message.with_metadata(
        {key: value for key, value in message.meta.items() if key != REQUEST}
    )


class RefusedRequestError(StreamerError):
    """An output has rejected a message that a request came with; the text is the reason."""


ReplyCallback = Callable[[Batch | RefusedRequestError], None]
"""Is called once, with the messages that answer a request, or with why it is refused."""


class PendingRequests:
    """The requests that wait on the driver. It can be used from several threads.

    Attributes:
        needs_replies: whether they get messages back, and not just to know whether theirs were
            taken.
    """

    def __init__(self) -> None:
        """Begin with none; the requests of other starts of the program have other names."""
        self._start_token = uuid.uuid4().hex[:12]
        self._numbers = itertools.count(1)
        self.needs_replies = True
        self._callbacks: dict[str, ReplyCallback] = {}

    def register(self, on_reply: ReplyCallback) -> str:
        """Register a request and return its name.

        Args:
            on_reply: is called once, with the messages that answer it, once its own are dealt with,
                or with why it is refused; in any thread, so it must not take long.
        """
        request = f"{self._start_token}-{next(self._numbers)}"
        self._callbacks[request] = on_reply
        return request

    def forget(self, request: str) -> None:
        """Let a request go that waits no more."""
        self._callbacks.pop(request, None)

    def resolve(
        self, answers: Mapping[str, Batch], refusals: Mapping[str, str] = _NO_REFUSALS
    ) -> None:
        """Answer requests whose messages are dealt with; those of other starts are left out.

        Args:
            answers: the requests, each with the messages that answer it.
            refusals: why some of them are refused.
        """
        for request, messages in answers.items():
            on_reply = self._callbacks.pop(request, None)
            if on_reply is not None:
                refused = refusals.get(request)
                on_reply(messages if refused is None else RefusedRequestError(refused))
