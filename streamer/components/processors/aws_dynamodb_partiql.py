"""`aws_dynamodb_partiql`: it "executes a PartiQL expression against a DynamoDB table"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from streamer.bloblang import compile_interpolation, compile_mapping
from streamer.connectors.aws.attribute_values import read_attribute
from streamer.connectors.aws.client import AwsClient, shared_client
from streamer.connectors.aws.errors import AwsError, describe_failure
from streamer.connectors.aws.fields import (
    PACKAGES,
    SESSION_FIELDS,
    TESTED,
    session_problems,
)
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.mapping_query import interpolate, query_value
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

QUERY: Final = "query"
UNSAFE_DYNAMIC_QUERY: Final = "unsafe_dynamic_query"
USE_BATCH: Final = "use_batch"
ARGS_MAPPING: Final = "args_mapping"

_MAX_STATEMENTS: Final = 25


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from session_problems(parsed)
    if parsed[UNSAFE_DYNAMIC_QUERY]:
        try:
            compile_interpolation(parsed[QUERY])
        except StreamerError as error:
            yield QUERY, str(error)


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "aws_dynamodb_partiql",
    "Runs a PartiQL statement on AWS DynamoDB for each message.",
    description=(
        "A message becomes the first item that its statement finds, with types, such as "
        '`{"id": {"S": "a"}}`; without one, it stays as it is. A message whose statement fails is '
        "marked as failed; the others are not. The statements of a batch go in requests of up to "
        "25, which either read or change; each reads one item by its key."
        f"\n\n{TESTED}"
    ),
    fields=(
        Field(
            QUERY,
            "string",
            "The statement, with `?` for arguments.",
            access=Access.REMOTE,
            examples=("INSERT INTO footable VALUE {'foo': ?, 'bar': ?}",),
        ),
        Field(
            UNSAFE_DYNAMIC_QUERY,
            "bool",
            "True if `${! … }` in the statement is replaced for each message. Whatever is put "
            "there becomes a part of the statement: never a text that others may choose; use "
            "arguments.",
            default=False,
            advanced=True,
        ),
        Field(
            USE_BATCH,
            "bool",
            "False to run each statement by a request of its own, as a global secondary index "
            "needs.",
            default=True,
            advanced=True,
        ),
        Field(
            ARGS_MAPPING,
            "string",
            "A Bloblang query for an array of arguments, each with its type.",
            default="",
            mapping=True,
            examples=('root = [ { "S": this.foo }, { "N": this.bar } ]',),
        ),
        *SESSION_FIELDS,
    ),
    check=_problems,
    begin={"query": 'SELECT * FROM "footable" WHERE "id" = \'a\''},
    examples=(
        Example(
            "Insert",
            "pipeline:\n"
            "  processors:\n"
            "    - aws_dynamodb_partiql:\n"
            "        query: \"INSERT INTO footable VALUE {'id': ?, 'name': ?}\"\n"
            '        args_mapping: \'root = [ { "S": this.id }, { "S": this.name } ]\'\n'
            "        region: eu-west-1\n",
        ),
    ),
    categories=("Integration", "AWS"),
    delivery="calls are repeated when a micro-batch is replayed",
    requires=PACKAGES,
)


class PartiQlProcessor:
    """Runs statements of batches."""

    def __init__(self, parsed: ParsedFields, client: AwsClient, origin: ComponentRef) -> None:
        """Compile the fields."""
        self._query = parsed[QUERY]
        is_dynamic = parsed[UNSAFE_DYNAMIC_QUERY]
        self._template = compile_interpolation(parsed[QUERY]) if is_dynamic else None
        self._args = compile_mapping(parsed[ARGS_MAPPING]) if parsed[ARGS_MAPPING] else None
        self._uses_batch = parsed[USE_BATCH]
        self._client = client
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return what the statements of messages have found, or the messages, marked."""
        made: dict[int, Message] = {}
        statements: dict[int, Mapping[str, Any]] = {}
        for index, message in enumerate(batch):
            try:
                statements[index] = self._make_statement(batch, index, ex)
            except MessageError as error:
                made[index] = self._origin.fail(message, str(error), ex)
        for some in self._cut(statements):
            for index, result in zip(some, self._run(list(some.values())), strict=True):
                if isinstance(result, str):
                    made[index] = self._origin.fail(batch[index], result, ex)
                else:
                    made[index] = batch[index].with_doc(result) if result else batch[index]
        return [[made[index] for index in range(len(batch))]]

    def _make_statement(self, batch: Batch, index: int, ex: Execution) -> dict[str, Any]:
        text = self._query
        if self._template is not None:
            text = interpolate(QUERY, self._template, batch, index, ex)
        if self._args is None:
            return {"Statement": text}
        values = query_value(self._args, batch, index, ex)
        if not isinstance(values, list):
            raise MessageError(f"{ARGS_MAPPING} gives no array")
        arguments = [read_attribute(value) for value in values]
        return {"Statement": text, "Parameters": arguments} if arguments else {"Statement": text}

    def _cut(
        self, statements: Mapping[int, Mapping[str, Any]]
    ) -> Iterator[dict[int, Mapping[str, Any]]]:
        limit = _MAX_STATEMENTS if self._uses_batch else 1
        indices = list(statements)
        for at in range(0, len(indices), limit):
            yield {index: statements[index] for index in indices[at : at + limit]}

    def _run(self, statements: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | str]:
        """Return the first item that each statement finds, an empty one for none, or why not."""
        try:
            if self._uses_batch:
                answer = self._client.run(
                    lambda client: client.batch_execute_statement(Statements=statements)
                )
                return [_read_result(one) for one in answer["Responses"]]
            answer = self._client.run(lambda client: client.execute_statement(**statements[0]))
        except AwsError as error:
            return [str(error)] * len(statements)
        return [next(iter(answer.get("Items", ())), {})]


def _read_result(response: Mapping[str, Any]) -> dict[str, Any] | str:
    if error := response.get("Error"):
        return describe_failure(error)
    item: dict[str, Any] = response.get("Item") or {}
    return item


def build(parsed: ParsedFields, context: BuildContext) -> PartiQlProcessor:
    """Compile the fields; it is connected at the first message."""
    client = shared_client(parsed, context, "dynamodb")
    return PartiQlProcessor(parsed, client, ComponentRef(context.component))
