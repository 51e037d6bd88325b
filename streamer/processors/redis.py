"""`redis`: runs a command of Redis for each message, and replaces the message by the answer.

It "performs actions against Redis that aren't possible using a cache processor. Actions are
performed for each message and the message contents are replaced with the result."
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from streamer.bloblang import compile_interpolation, compile_mapping
from streamer.errors import MessageError
from streamer.failure import Origin
from streamer.message import Batch, Execution
from streamer.redisdb import CLIENT_FIELDS, client, client_problems
from streamer.redisdb.asking import RETRY_FIELDS, Ask, RedisAsking
from streamer.redisdb.client import Client
from streamer.redisdb.values import argument, arguments
from streamer.spec import Access, BuildContext, Example, Field, Kind, Package, Parsed, Spec

COMMAND: Final = "command"
ARGS_MAPPING: Final = "args_mapping"
OPERATOR: Final = "operator"
KEY: Final = "key"

# The old operators, and whether they take the message's content.
_OPERATORS: Final = {"keys": False, "scard": False, "sadd": True, "incrby": True}


def _problems(parsed: Parsed) -> Iterator[tuple[str, str]]:
    yield from client_problems(parsed)
    if parsed[OPERATOR]:
        if parsed[COMMAND]:
            yield (
                "",
                "only one of 'operator' (old style) or 'command' (new style) fields should be "
                "specified",
            )
        if parsed[KEY] is None:
            yield KEY, "is not set; the operator needs a key"
    elif not parsed[COMMAND]:
        yield COMMAND, "is not set; expected a command such as scard"
    elif not parsed[ARGS_MAPPING]:
        yield ARGS_MAPPING, "is not set; expected a mapping such as root = [ this.key ]"


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "redis",
    "Runs a command of Redis for each message, which the answer replaces.",
    description=(
        "A command that fails leaves the message as it is, marked as failed; so does one that "
        "finds nothing (`redis: nil`). To add the answer to the message in the place of replacing "
        "it, use a `branch`."
    ),
    fields=(
        *CLIENT_FIELDS,
        Field(
            COMMAND,
            "string",
            "The command.",
            access=Access.REMOTE,
            optional=True,
            interpolated=True,
            examples=("scard", "incrby", "${! @command }"),
        ),
        Field(
            ARGS_MAPPING,
            "string",
            "A Bloblang mapping whose result is an array with the command's arguments.",
            optional=True,
            mapping=True,
            examples=("root = [ this.key ]", 'root = [ meta("kafka_key"), this.count ]'),
        ),
        Field(
            OPERATOR,
            "string",
            "The old way to say which command; use `command` and `args_mapping`.",
            optional=True,
            options=tuple(_OPERATORS),
            deprecated=True,
        ),
        Field(
            KEY,
            "string",
            "The key of the old operators.",
            optional=True,
            interpolated=True,
            deprecated=True,
        ),
        *RETRY_FIELDS,
    ),
    check=_problems,
    examples=(
        Example(
            "A running total",
            "pipeline:\n"
            "  processors:\n"
            "    - redis:\n"
            "        url: redis://localhost:6379\n"
            "        command: incrby\n"
            "        args_mapping: 'root = [ this.name, this.friends_visited ]'\n",
        ),
    ),
    begin={"command": "scard", "args_mapping": "root = [ this.key ]"},
    categories=("Integration",),
    delivery="calls are repeated when a micro-batch is replayed",
    requires=(Package("redis"),),
)


def _commands(parsed: Parsed, of: Callable[[], Client]) -> Ask:
    command = compile_interpolation(parsed[COMMAND])
    mapping = compile_mapping(parsed[ARGS_MAPPING])

    def ask(batch: Batch, index: int, ex: Execution) -> tuple[str, Callable[[], Any]]:
        try:
            given = [argument(one) for one in arguments(mapping, batch, index, ex)]
        except MessageError as error:
            raise MessageError(f"args mapping failed: {error}") from None
        try:
            name = command.text_of(batch, index, ex)
        except MessageError as error:
            raise MessageError(f"command interpolation error: {error}") from None
        return f"{name} command", lambda: of().execute_command(name, *given)

    return ask


def _operators(parsed: Parsed, of: Callable[[], Client]) -> Ask:
    operator: str = parsed[OPERATOR]
    key = compile_interpolation(parsed[KEY])

    def ask(batch: Batch, index: int, ex: Execution) -> tuple[str, Callable[[], Any]]:
        try:
            given: list[str | bytes] = [key.text_of(batch, index, ex)]
        except MessageError as error:
            raise MessageError(f"key interpolation error: {error}") from None
        if _OPERATORS[operator]:
            given.append(batch[index].raw)
        return f"{operator} command", lambda: of().execute_command(operator, *given)

    return ask


def build(parsed: Parsed, context: BuildContext) -> RedisAsking:
    """Find the client, and compile what is asked."""

    def of() -> Client:
        return client(parsed, context)

    ask = _operators(parsed, of) if parsed[OPERATOR] else _commands(parsed, of)
    return RedisAsking(ask, parsed, Origin(context.component))
