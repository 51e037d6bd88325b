"""Outputs that run a command of Redis for each message, those of a batch in one go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streamer.errors import MessageError
from streamer.message import Batch, Execution
from streamer.redisdb.client import Client, own_client
from streamer.redisdb.errors import RedisError, redis_errors, told
from streamer.sending import NotConnectedError, Output, SendError
from streamer.spec import Parsed

Command = Callable[[Batch, int, Execution], Sequence[Any]]
"""Returns the command for a message of a batch, and its arguments; it may raise a MessageError."""


class RedisOutput(Output):
    """Runs a command for each message."""

    def __init__(self, command: Command, get: Callable[[], Client], parsed: Parsed) -> None:
        """Take what makes commands, what gives the client, and the fields for a look at Redis."""
        self._command = command
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
        try:
            commands = [self._command(batch, index, ex) for index in range(len(batch))]
        except MessageError as error:
            raise SendError(str(error)) from None
        try:
            with redis_errors():
                # Without MULTI, as in Redpanda Connect: one command may fail and others not.
                pipe = self._get().pipeline(transaction=False)
                for command in commands:
                    pipe.execute_command(*command)
                answers = pipe.execute(raise_on_error=False)
        except RedisError as error:
            raise (NotConnectedError if error.lost else SendError)(str(error)) from None
        failed = {i: told(one) for i, one in enumerate(answers) if isinstance(one, Exception)}
        if not failed:
            return
        first = next(iter(failed.values()))
        if any(error.lost for error in failed.values()):
            raise NotConnectedError(str(first))
        raise SendError(str(first), {index: str(error) for index, error in failed.items()})

    def probe(self) -> str:
        """Look whether Redis answers."""
        with redis_errors():
            client = own_client(self._parsed)
            try:
                client.execute_command("PING")
            finally:
                client.close()
        return "Redis answers"
