"""`aws_lambda`: it "invokes an AWS lambda for each message"."""

from __future__ import annotations

from typing import Any, Final

from streamer.connectors.aws.client import AwsClient, shared_client
from streamer.connectors.aws.errors import AwsError, InvalidRequestError
from streamer.connectors.aws.fields import (
    PACKAGES,
    SESSION_FIELDS,
    TESTED,
    session_problems,
)
from streamer.core.durations import SECOND
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.rate_limit import RateLimit, wait_for_access
from streamer.sdk.spec import (
    Access,
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedFields,
    Spec,
    duration_field,
)
from streamer.sdk.thread_pool import ComponentPool

PARALLEL: Final = "parallel"
FUNCTION: Final = "function"
RATE_LIMIT: Final = "rate_limit"
TIMEOUT: Final = "timeout"
RETRIES: Final = "retries"

_MAX_ANSWER_BYTES: Final = 32 << 20
_ERROR_KEY: Final = "lambda_function_error"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "aws_lambda",
    "Invokes a function of AWS Lambda for each message, and takes the answer in its place.",
    description=(
        "The message is the payload of the invocation. If the function cannot be invoked, it is "
        "tried again up to `retries` times; then the message is marked as failed. If the function "
        "itself fails, the message becomes its description of the error, with the metadata "
        "`lambda_function_error`, and is not marked."
        f"\n\n{TESTED}"
    ),
    fields=(
        Field(
            PARALLEL, "bool", "True to invoke for the messages of a batch at once.", default=False
        ),
        Field(
            FUNCTION,
            "string",
            "The name or the ARN of the function.",
            access=Access.REMOTE,
            check=lambda name: None if name else "is empty; expected the name of a function",
        ),
        Field(
            RATE_LIMIT,
            "string",
            "The label of a rate limit for invocations.",
            default="",
            advanced=True,
            refers=Kind.RATE_LIMIT,
        ),
        *SESSION_FIELDS,
        duration_field(TIMEOUT, "Maximum time of an invocation.", default="5s", advanced=True),
        Field(
            RETRIES,
            "int",
            "Maximum number of repetitions for a message.",
            default=3,
            advanced=True,
            check=lambda number: None if number >= 0 else f"is {number}; expected 0 or more",
        ),
    ),
    check=session_problems,
    examples=(
        Example(
            "A failed function is a failed message",
            "pipeline:\n"
            "  processors:\n"
            "    - branch:\n"
            "        request_map: root = this.user\n"
            "        processors:\n"
            "          - aws_lambda:\n"
            "              function: check_user\n"
            "              region: eu-west-1\n"
            "        result_map: |\n"
            '          root.checked = if @.exists("lambda_function_error") {\n'
            "            throw(this.errorMessage)\n"
            "          } else {\n"
            "            this\n"
            "          }\n",
        ),
    ),
    begin={"function": "enrich"},
    categories=("Integration", "AWS"),
    delivery="calls are repeated when a micro-batch is replayed",
    requires=PACKAGES,
)


class LambdaProcessor:
    """Invokes a function for messages."""

    def __init__(
        self, parsed: ParsedFields, client: AwsClient, limit: RateLimit | None, origin: ComponentRef
    ) -> None:
        """Take the fields, the client, the rate limit, and the component for the log."""
        self._function = parsed[FUNCTION]
        self._tries = parsed[RETRIES] + 1
        self._client = client
        self._limit = limit
        self._origin = origin
        self._pool: ComponentPool[None] | None = (
            ComponentPool(lambda: None) if parsed[PARALLEL] else None
        )

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the answers, or the messages that got none, marked."""
        if self._pool is not None and len(batch) > 1:
            return [self._pool.map(self._invoke, batch, ex)]
        return [[self._invoke(None, message, ex) for message in batch]]

    def _invoke(self, _: None, message: Message, ex: Execution) -> Message:
        tries = self._tries
        while True:
            if self._limit is not None:
                wait_for_access(self._limit, ex)
            try:
                return self._client.run(lambda client: self._invoke_once(client, message))
            except AwsError as error:
                tries -= 1
                if tries <= 0 or error.is_content_refused:
                    line = f"Lambda function '{self._function}' failed: {error}"
                    return self._origin.fail(message, str(error), ex, line)

    def _invoke_once(self, client: Any, message: Message) -> Message:
        answer = client.invoke(FunctionName=self._function, Payload=message.raw)
        payload = answer["Payload"].read(_MAX_ANSWER_BYTES + 1)
        if len(payload) > _MAX_ANSWER_BYTES:
            raise InvalidRequestError("the answer is longer than 32 MiB", "AnswerTooLong")
        failed = answer.get("FunctionError")
        changed = message.with_added_metadata(**{_ERROR_KEY: failed}) if failed else message
        return changed.with_bytes(payload)


def build(parsed: ParsedFields, context: BuildContext) -> LambdaProcessor:
    """Take the fields; it is connected at the first message."""
    timeout_s = (parsed[TIMEOUT] or 0) / SECOND or 5.0
    client = shared_client(parsed, context, "lambda", attempts=1, read_timeout_s=timeout_s)
    label = parsed[RATE_LIMIT]
    limit = context.resource(Kind.RATE_LIMIT, label) if label else None
    return LambdaProcessor(parsed, client, limit, ComponentRef(context.component))
