"""Outputs that run a command of Redis for each message, those of a batch in one go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from streamer.errors import MessageError
from streamer.message import Batch, Execution
from streamer.redisdb.client import Client, own_client
from streamer.redisdb.errors import RedisError, redis_errors, told
from streamer.sending import NotConnectedError, Output, SendError
from streamer.sending.rejection import Reason, Rejection, invalid
from streamer.spec import Parsed

Command = Callable[[Batch, int, Execution], Sequence[Any]]
"""Returns the command for a message of a batch, and its arguments; it may raise a MessageError."""


_KEYS: Final = ("key", "stream", "channel")


class RedisOutput(Output):
    """Runs a command for each message."""

    def __init__(self, command: Command, get: Callable[[], Client], parsed: Parsed) -> None:
        """Take what makes commands, what gives the client, and the fields for a look at Redis."""
        self._command = command
        self._own_keys = any("${!" in str(parsed.get(name, "")) for name in _KEYS)
        self._get = get
        self._parsed = parsed

    def connect(self, ex: Execution) -> None:
        """Look whether Redis answers."""
        try:
            with redis_errors():
                self._get().execute_command("PING")
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
                failed[index] = invalid(str(error))
        try:
            with redis_errors():
                # Without MULTI, as in Redpanda Connect: one command may fail and others not.
                pipe = self._get().pipeline(transaction=False)
                for command in commands.values():
                    pipe.execute_command(*command)
                answers = pipe.execute(raise_on_error=False)
        except RedisError as error:
            raise (NotConnectedError if error.lost else SendError)(str(error)) from None
        for index, one in zip(commands, answers, strict=True):
            if isinstance(one, Exception):
                refusal = told(one)
                if refusal.lost:
                    raise NotConnectedError(str(refusal))
                failed[index] = self._failure(refusal)
        if failed:
            raise SendError(next(iter(failed.values())), failed)

    def _failure(self, error: RedisError) -> str:
        # A key that all messages share is not a message's fault.
        if error.of_value or (error.of_key and self._own_keys):
            return Rejection(str(error), Reason.REFUSED)
        return str(error)

    def probe(self) -> str:
        """Look whether Redis answers."""
        with redis_errors():
            client = own_client(self._parsed)
            try:
                client.execute_command("PING")
            finally:
                client.close()
        return "Redis answers"
