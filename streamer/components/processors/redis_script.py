"""`redis_script`: runs a Lua script in Redis for each message, and takes its answer.

It "performs actions against Redis using LUA scripts"; "actions are performed for each message and
the message contents are replaced with the result".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamer.bloblang import Mapping, compile_mapping
from streamer.connectors.redis import CLIENT_FIELDS, PACKAGES, client_problems, shared_client
from streamer.connectors.redis.client import Client
from streamer.connectors.redis.processor_base import RETRY_FIELDS, MakeRequest, RedisProcessor
from streamer.connectors.redis.values import evaluate_arguments, to_argument
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

SCRIPT: Final = "script"
ARGS_MAPPING: Final = "args_mapping"
KEYS_MAPPING: Final = "keys_mapping"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "redis_script",
    "Runs a Lua script in Redis for each message, and replaces the message by the reply.",
    description=(
        "A script that fails, or gives nothing, leaves the message as it is, marked as "
        "failed. The script is sent once, and then called by its digest."
    ),
    fields=(
        *CLIENT_FIELDS,
        Field(
            SCRIPT,
            "string",
            "The script.",
            access=Access.REMOTE,
            examples=("return redis.call('set', KEYS[1], ARGV[1])",),
        ),
        Field(
            ARGS_MAPPING,
            "string",
            "A Bloblang mapping whose result is an array, which the script has as `ARGV`.",
            mapping=True,
            examples=("root = [ this.count ]",),
        ),
        Field(
            KEYS_MAPPING,
            "string",
            "A Bloblang mapping whose result is an array, which the script has as `KEYS`.",
            mapping=True,
            examples=("root = [ this.key ]",),
        ),
        *RETRY_FIELDS,
    ),
    check=client_problems,
    examples=(
        Example(
            "The greatest number so far",
            "pipeline:\n"
            "  processors:\n"
            "    - redis_script:\n"
            "        url: redis://localhost:6379\n"
            "        script: |\n"
            "          local known = tonumber(redis.call('get', KEYS[1]) or 0)\n"
            "          local most = math.max(known, tonumber(ARGV[1]))\n"
            "          redis.call('set', KEYS[1], most)\n"
            "          return most\n"
            "        keys_mapping: 'root = [ this.key ]'\n"
            "        args_mapping: 'root = [ this.number ]'\n",
        ),
    ),
    categories=("Integration",),
    delivery="calls are repeated when a micro-batch is replayed",
    requires=PACKAGES,
)


def _evaluate(name: str, mapping: Mapping, batch: Batch, index: int, ex: Execution) -> list[Any]:
    try:
        return [to_argument(one) for one in evaluate_arguments(mapping, batch, index, ex)]
    except MessageError as error:
        raise MessageError(f"{name} failed: {error}") from None


def _make_script_request(parsed: ParsedFields, get_client: Callable[[], Client]) -> MakeRequest:
    text = parsed[SCRIPT]
    args, keys = compile_mapping(parsed[ARGS_MAPPING]), compile_mapping(parsed[KEYS_MAPPING])

    def make_request(batch: Batch, index: int, ex: Execution) -> tuple[str, Callable[[], Any]]:
        values = _evaluate(ARGS_MAPPING, args, batch, index, ex)
        names = _evaluate(KEYS_MAPPING, keys, batch, index, ex)
        return "script", lambda: get_client().register_script(text)(names, values)

    return make_request


def build(parsed: ParsedFields, context: BuildContext) -> RedisProcessor:
    """Find the client, and compile the mappings."""
    make_request = _make_script_request(parsed, lambda: shared_client(parsed, context))
    return RedisProcessor(make_request, parsed, ComponentRef(context.component))
