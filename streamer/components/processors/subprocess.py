"""`subprocess`: keeps a program running, tells it each message, and takes its answer.

It "executes a command as a subprocess and, for each message, will pipe its contents to the stdin
stream of the process followed by a newline". The program must answer each with a line on its
standard output, or, when it fails, on its standard error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from streamer.connectors.subprocess_client import CODECS, LINES, RunError, SubprocessClient
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

NAME: Final = "name"
ARGS: Final = "args"
MAX_BUFFER: Final = "max_buffer"
CODEC_SEND: Final = "codec_send"
CODEC_RECV: Final = "codec_recv"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "subprocess",
    "Runs a program that replaces each message by its response.",
    description=(
        "The program gets a line for each line of a message, and must write one line for each "
        "and flush it. Output on its standard error is an error: the message stays as it is, "
        "marked as failed. Each worker has its own process, which lives as long as the worker "
        "and is restarted when it ends. The program must be installed on all workers."
    ),
    fields=(
        Field(
            NAME, "string", "The program.", access=Access.PROGRAM, examples=("cat", "sed", "awk")
        ),
        Field(
            ARGS,
            "string",
            "The program's arguments.",
            access=Access.NONE,
            default=(),
            shape="array",
        ),
        Field(
            MAX_BUFFER,
            "int",
            "The most bytes that an answer may have; after a longer one the program is started "
            "again.",
            default=65_536,
            check=lambda size: None if size >= 1 else f"is {size}; expected 1 or more",
            advanced=True,
        ),
        Field(
            CODEC_SEND,
            "string",
            "Separation of the messages for the program.",
            default=LINES,
            options=CODECS,
            advanced=True,
        ),
        Field(
            CODEC_RECV,
            "string",
            "Separation of the messages from the program.",
            default=LINES,
            options=CODECS,
            advanced=True,
        ),
    ),
    examples=(
        Example(
            "Let sed work",
            "pipeline:\n"
            "  processors:\n"
            "    - subprocess:\n"
            "        name: sed\n"
            "        args: [--unbuffered, s/cat/dog/g]\n",
        ),
    ),
    categories=("Integration",),
    delivery="calls are repeated when a micro-batch is replayed",
    limits="the program must be on every worker's machine",
)


class SubprocessProcessor:
    """Sends each message to a program, and takes the program's answer in its place."""

    def __init__(self, client: SubprocessClient, by_line: bool, origin: ComponentRef) -> None:
        self._client = client
        self._by_line = by_line
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the program's answers, and the messages that it answered with an error, marked."""
        return [self.process_each(batch, ex)]

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Return the program's answer to each message."""

        def log(level: str, text: str) -> None:
            self._origin.log(ex, level, text)

        made = []
        for message in messages:
            try:
                made.append(message.with_bytes(self._request(message.raw, log)))
            except RunError as error:
                line = f"Failed to send message to subprocess: {error}"
                made.append(self._origin.fail(message, str(error), ex, line))
        return made

    def _request(self, raw: bytes, log: Callable[[str, str], None]) -> bytes:
        if not self._by_line:
            return self._client.request(raw, log)
        lines = raw.split(b"\n")
        # A line break at the end of a message stays, and the program never gets it.
        last = [lines.pop()] if len(lines) > 1 and not lines[-1] else []
        return b"\n".join([*(self._client.request(line, log) for line in lines), *last])


def build(parsed: ParsedFields, context: BuildContext) -> SubprocessProcessor:
    """Find the program that is running, or prepare to start it."""
    program = context.worker_resource(
        "program",
        lambda: SubprocessClient(
            [parsed[NAME], *parsed[ARGS]],
            parsed[MAX_BUFFER],
            parsed[CODEC_SEND],
            parsed[CODEC_RECV],
            parsed.permissions,
        ),
    )
    return SubprocessProcessor(
        program, parsed[CODEC_SEND] == LINES, ComponentRef(context.component)
    )
