"""An endpoint of the API, as the table has it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from aiohttp import web

from streamer.service.fleet.deploys import ChangeOptions

Schema = Mapping[str, Any]


class ApiRequest(NamedTuple):
    """A request as its handler sees it.

    Attributes:
        path: what the path's parameters stand for.
        query: the query's parameters; of those that are given more than once, the first.
        body: the body; empty where the endpoint takes none.
        options: how something is to be changed.
        is_abandoned: returns whether who asks is gone.
    """

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: str
    options: ChangeOptions
    is_abandoned: Callable[[], bool] = lambda: False


SyncHandler = Callable[[ApiRequest], web.Response]
AsyncHandler = Callable[[ApiRequest], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a query: its name, what it is for, and its JSON schema."""

    name: str
    about: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint: a path, a method and the handler.

    Attributes:
        method: in upper case.
        path: with parameters in braces.
        name: what generated clients call it.
        about: what it does, in a sentence or two.
        answer: answers; in a thread, since it may take its time, unless it is awaited.
        ok_schema: the schema of a good answer, JSON; None for a text.
        parameters: of the query.
        body: what is sent, in words; None when nothing is.
        codes: other answers, by status, and when they are given.
        is_change: whether it changes something: then pages of other sites may not ask for it.
        is_slow: whether it waits for streams to start or stop.
        is_awaited: whether `answer` is awaited.
        media_types: content types of a good answer that is neither JSON nor a text.
    """

    method: str
    path: str
    name: str
    about: str
    answer: SyncHandler | AsyncHandler
    ok_schema: Schema | None = None
    parameters: tuple[Parameter, ...] = ()
    body: str | None = None
    codes: Mapping[int, str] = field(default_factory=dict)
    is_change: bool = False
    is_slow: bool = False
    is_awaited: bool = False
    media_types: tuple[str, ...] = ()
