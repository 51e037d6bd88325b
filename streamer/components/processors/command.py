"""`command`: runs a program for each message, with the message as its standard input.

"The raw bytes of the message being fed into the stdin of the command process, and the resulting
message having its contents replaced with the stdout of it."
"""

from __future__ import annotations

from typing import Any, Final

from streamer.bloblang import Interpolation, Mapping, compile_interpolation, compile_mapping
from streamer.connectors.subprocess_client import start_error_text
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.dump import dump_json
from streamer.core.message import Batch, Message
from streamer.core.permissions import ALL, Permissions
from streamer.core.value import type_name
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.mapping_query import interpolate, query_value
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

NAME: Final = "name"
ARGS_MAPPING: Final = "args_mapping"

EXIT_CODE: Final = "exit_code"
STDERR: Final = "command_stderr"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "command",
    "Runs a program for each message, whose output replaces the message.",
    description=(
        "The program gets the message as its standard input. Its exit code is the metadata "
        "`exit_code`, and what it writes to its standard error `command_stderr`. With an exit code "
        "other than 0 the message stays as it is, marked as failed. A process for each message is "
        "slow: for many messages use `subprocess`. The program must be installed wherever workers "
        "are."
    ),
    fields=(
        Field(
            NAME,
            "string",
            "The program.",
            access=Access.PROGRAM,
            interpolated=True,
            examples=("bash", "${! @command }"),
        ),
        Field(
            ARGS_MAPPING,
            "string",
            "A Bloblang mapping whose result is an array with the program's arguments.",
            optional=True,
            mapping=True,
            examples=('[ "-c", this.script_path ]',),
        ),
    ),
    examples=(
        Example(
            "Count words",
            "pipeline:\n"
            "  processors:\n"
            "    - command:\n"
            "        name: wc\n"
            "        args_mapping: '[ \"-w\" ]'\n",
        ),
    ),
    status="experimental",
    categories=("Integration",),
    delivery="calls are repeated when a micro-batch is replayed",
    limits="the program must be on every worker's machine",
)


class CommandProcessor:
    """Runs a program for each message."""

    def __init__(
        self,
        name: Interpolation,
        mapping: Mapping | None,
        origin: ComponentRef,
        permissions: Permissions = ALL,
    ) -> None:
        self._name = name
        self._mapping = mapping
        self._origin = origin
        self._permissions = permissions

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the programs' outputs, or the messages on which they failed, marked."""
        return [self.process_each(batch, ex)]

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Run the program for each message."""
        made = []
        for message in messages:
            try:
                made.append(self._run(message, self._make_command(message, ex), ex))
            except MessageError as error:
                made.append(self._origin.fail(message, str(error), ex))
        return made

    def _make_command(self, message: Message, ex: Execution) -> list[str]:
        name = interpolate("name", self._name, [message], 0, ex)
        if self._mapping is None:
            return [name]
        try:
            values = query_value(self._mapping, [message], 0, ex)
        except MessageError as error:
            raise MessageError(f"args mapping error: {error}") from None
        if not isinstance(values, list):
            raise MessageError(
                f"args mapping result error: expected array value, got {_describe_value(values)}"
            )
        return [name, *map(_to_argument, values)]

    def _run(self, message: Message, arguments: list[str], ex: Execution) -> Message:
        try:
            done = self._permissions.run(arguments, message.raw)
        except (OSError, ValueError) as e:
            failed = message.with_added_metadata(**{EXIT_CODE: -1})
            return self._origin.fail(
                failed, f"execution error: {start_error_text(arguments[0], e)}: ", ex
            )
        stderr = done.stderr.decode(errors="replace")
        code = done.returncode
        if code != 0:
            # Go tells a signal by its name, and -1 for the code.
            how = f"exit status {code}" if code > 0 else f"signal: {_signal_text(-code)}"
            failed = message.with_added_metadata(**{EXIT_CODE: max(code, -1)})
            return self._origin.fail(failed, f"execution error: {how}: {stderr}", ex)
        meta: dict[str, Any] = {EXIT_CODE: 0}
        if stderr:
            meta[STDERR] = stderr
        return message.with_added_metadata(**meta).with_bytes(done.stdout)


def _signal_text(number: int) -> str:
    import signal

    return (signal.strsignal(number) or f"signal {number}").lower()


def _to_argument(value: Any) -> str:
    if isinstance(value, str):
        return value
    return value.decode(errors="replace") if isinstance(value, bytes) else dump_json(value).decode()


def _describe_value(value: Any) -> str:
    kind = type_name(value)
    if isinstance(value, str):
        return f'{kind} ("{value}")'
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{kind} ({_to_argument(value)})" if number else kind


def build(parsed: ParsedFields, context: BuildContext) -> CommandProcessor:
    """Compile the name and the mapping."""
    mapping = parsed[ARGS_MAPPING]
    return CommandProcessor(
        compile_interpolation(parsed[NAME]),
        compile_mapping(mapping) if mapping else None,
        ComponentRef(context.component),
        parsed.permissions,
    )
