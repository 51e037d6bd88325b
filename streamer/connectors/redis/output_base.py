"""Outputs that run a command of Redis for each message, those of a batch in one go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from streamer.connectors.redis.client import Client, own_client, shared_client
from streamer.connectors.redis.errors import RedisError, as_redis_error, redis_errors
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.output.protocols import MAX_IN_FLIGHT, NotConnectedError, Output, SendError
from streamer.sdk.output.rejection import Reason, Rejection, make_invalid_rejection
from streamer.sdk.processing.batching import BatchPolicy
from streamer.sdk.spec import BuildContext, ParsedFields

Command = Callable[[Batch, int, Execution], Sequence[Any]]
"""Returns the command for a message of a batch, and its arguments; it may raise a MessageError."""


_KEY_FIELDS: Final = ("key", "stream", "channel")


class RedisOutput(Output):
    """Runs a command for each message."""

    def __init__(
        self,
        command: Command,
        parsed: ParsedFields,
        context: BuildContext,
        policy: BatchPolicy | None = None,
    ) -> None:
        """Take what makes commands, the fields, the worker that has the client, and `batching`."""
        self.max_in_flight = parsed[MAX_IN_FLIGHT]
        self.policy = policy
        self._command = command
        self._has_own_keys = any("${!" in str(parsed.get(name, "")) for name in _KEY_FIELDS)
        self._get_client: Callable[[], Client] = lambda: shared_client(parsed, context)
        self._parsed = parsed

    def connect(self, ex: Execution) -> None:
        """Check that Redis answers."""
        try:
            with redis_errors():
                self._get_client().execute_command("PING")
        except RedisError as error:
            raise SendError(str(error)) from None

    def send(self, batch: Batch, ex: Execution) -> None:
        """Run the commands of a batch; those that fail are named."""
        commands: dict[int, Sequence[Any]] = {}
        failed: dict[int, str] = {}
        for index in range(len(batch)):
            try:
                commands[index] = self._command(batch, index, ex)
            except MessageError as error:
                failed[index] = make_invalid_rejection(str(error))
        try:
            with redis_errors():
                # Without MULTI, as in Redpanda Connect: one command may fail and others not.
                pipe = self._get_client().pipeline(transaction=False)
                for command in commands.values():
                    pipe.execute_command(*command)
                answers = pipe.execute(raise_on_error=False)
        except RedisError as error:
            raise (NotConnectedError if error.is_connection_lost else SendError)(
                str(error)
            ) from None
        for index, one in zip(commands, answers, strict=True):
            if isinstance(one, Exception):
                refusal = as_redis_error(one)
                if refusal.is_connection_lost:
                    raise NotConnectedError(str(refusal))
                failed[index] = self._failure_text(refusal)
        if failed:
            raise SendError(next(iter(failed.values())), failed)

    def _failure_text(self, error: RedisError) -> str:
        # A key that all messages share is not a message's fault.
        if error.is_value_error or (error.is_key_error and self._has_own_keys):
            return Rejection(str(error), Reason.REFUSED)
        return str(error)

    def probe(self) -> str:
        """Check that Redis answers."""
        with redis_errors():
            client = own_client(self._parsed)
            try:
                client.execute_command("PING")
            finally:
                client.close()
        return "Redis answers"
