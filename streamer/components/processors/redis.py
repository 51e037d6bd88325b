"""`redis`: runs a command of Redis for each message, and replaces the message by the answer.

It "performs actions against Redis that aren't possible using a cache processor. Actions are
performed for each message and the message contents are replaced with the result."
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from streamer.bloblang import compile_interpolation, compile_mapping
from streamer.connectors.redis import CLIENT_FIELDS, PACKAGES, client_problems, shared_client
from streamer.connectors.redis.client import Client
from streamer.connectors.redis.processor_base import RETRY_FIELDS, MakeRequest, RedisProcessor
from streamer.connectors.redis.values import evaluate_arguments, to_argument
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

COMMAND: Final = "command"
ARGS_MAPPING: Final = "args_mapping"
OPERATOR: Final = "operator"
KEY: Final = "key"

# The old operators, and whether they take the message's content.
_HAS_VALUE_BY_OPERATOR: Final = {"keys": False, "scard": False, "sadd": True, "incrby": True}


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
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
    "Runs a command of Redis for each message, and replaces the message by the reply.",
    description=(
        "A command that fails leaves the message as it is, marked as failed; so does one that "
        "finds nothing (`redis: nil`). To add the reply to the message instead of replacing "
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
            options=tuple(_HAS_VALUE_BY_OPERATOR),
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
    requires=PACKAGES,
)


def _make_command_request(parsed: ParsedFields, get_client: Callable[[], Client]) -> MakeRequest:
    command = compile_interpolation(parsed[COMMAND])
    mapping = compile_mapping(parsed[ARGS_MAPPING])

    def make_request(batch: Batch, index: int, ex: Execution) -> tuple[str, Callable[[], Any]]:
        try:
            given = [to_argument(one) for one in evaluate_arguments(mapping, batch, index, ex)]
        except MessageError as error:
            raise MessageError(f"args mapping failed: {error}") from None
        name = interpolate("command", command, batch, index, ex)
        return f"{name} command", lambda: get_client().execute_command(name, *given)

    return make_request


def _make_operator_request(parsed: ParsedFields, get_client: Callable[[], Client]) -> MakeRequest:
    operator: str = parsed[OPERATOR]
    key = compile_interpolation(parsed[KEY])

    def make_request(batch: Batch, index: int, ex: Execution) -> tuple[str, Callable[[], Any]]:
        given: list[str | bytes] = [interpolate("key", key, batch, index, ex)]
        if _HAS_VALUE_BY_OPERATOR[operator]:
            given.append(batch[index].raw)
        return f"{operator} command", lambda: get_client().execute_command(operator, *given)

    return make_request


def build(parsed: ParsedFields, context: BuildContext) -> RedisProcessor:
    """Find the client, and compile what is asked."""

    def get_client() -> Client:
        return shared_client(parsed, context)

    make_request = (
        _make_operator_request(parsed, get_client)
        if parsed[OPERATOR]
        else _make_command_request(parsed, get_client)
    )
    return RedisProcessor(make_request, parsed, ComponentRef(context.component))
