"""`log`: prints a line to the log for each message, which stays as it is.

"The log message can be set using function interpolations described in Bloblang queries which
allows you to log the contents and metadata of messages." When a part of a line cannot be found,
an error is logged in its place and the message passes unmarked, as in Benthos.
"""

from __future__ import annotations

from collections.abc import Mapping as Map
from typing import Any, Final

from streamer.bloblang import Interpolation, Mapping, compile_interpolation, compile_mapping
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.core.value import type_name
from streamer.sdk.component_ref import ComponentRef, explain_undefined
from streamer.sdk.mapping_query import query_value
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

LEVEL: Final = "level"
FIELDS_MAPPING: Final = "fields_mapping"
MESSAGE: Final = "message"
FIELDS: Final = "fields"

LEVELS: Final = ("ERROR", "WARN", "INFO", "DEBUG", "TRACE")


def _level_problem(text: str) -> str | None:
    if text.upper() in LEVELS:
        return None
    return f"is {text!r}; expected one of {', '.join(LEVELS)}"


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "log",
    "Prints a line to the log for each message. Messages stay as they are.",
    description=(
        "The line has the fields of `fields_mapping` beside the message. `logger` in the "
        "config sets the format and the printed levels."
    ),
    fields=(
        Field(
            LEVEL,
            "string",
            "The level of the line: ERROR, WARN, INFO, DEBUG or TRACE, in any case.",
            default="INFO",
            check=_level_problem,
        ),
        Field(
            FIELDS_MAPPING,
            "string",
            "A Bloblang mapping whose result, an object, gives further fields of the line.",
            optional=True,
            mapping=True,
            examples=('root.id = this.id\nroot.topic = meta("kafka_topic")',),
        ),
        Field(MESSAGE, "string", "The text of the line.", default="", interpolated=True),
        Field(
            FIELDS,
            "string",
            "Further fields of the line; they win over those of `fields_mapping`.",
            optional=True,
            shape="map",
            interpolated=True,
            deprecated=True,
        ),
    ),
    examples=(
        Example(
            "Log failed messages",
            "pipeline:\n"
            "  processors:\n"
            "    - mapping: root.id = this.id.number()\n"
            "    - catch:\n"
            "        - log:\n"
            "            level: ERROR\n"
            "            message: 'no number: ${! error() }'\n"
            "            fields_mapping: root.content = content().string()\n",
        ),
    ),
    categories=("Utility",),
)


class LogProcessor:
    """Logs a line per message."""

    def __init__(
        self,
        level: str,
        message: Interpolation,
        mapping: Mapping | None,
        fields: Map[str, Interpolation],
        origin: ComponentRef,
    ) -> None:
        self._level = level
        self._message = message
        self._mapping = mapping
        self._fields = fields
        self._origin = origin
        # Benthos tells lines that a config asked for from its own by this field.
        self._static = {**origin.fields, "custom_source": True}

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Log every message, and return the batch."""
        for index in range(len(batch)):
            self._log(batch, index, ex)
        return [batch]

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Log messages that are batches by themselves, and return them."""
        for message in messages:
            self._log([message], 0, ex)
        return messages

    def _log(self, batch: Batch, index: int, ex: Execution) -> None:
        what = "Failed to execute fields mapping"
        fields: dict[str, Any] = dict(self._static)
        try:
            if self._mapping is not None:
                values = query_value(self._mapping, batch, index, ex)
                if not isinstance(values, dict):
                    kind = type_name(values)
                    self._log_error(ex, f"Fields mapping yielded a non-object result: {kind}")
                    return
                fields.update(values)
            for name, value in self._fields.items():
                what = f"Field {name} interpolation error"
                fields[name] = value.text_of(batch, index, ex)
            what = "Message interpolation error"
            text = self._message.text_of(batch, index, ex)
        except MessageError as error:
            self._log_error(ex, explain_undefined(f"{what}: {error}", batch[index]))
            return
        ex.log(self._level, text, fields)

    def _log_error(self, ex: Execution, text: str) -> None:
        ex.log("ERROR", text, self._static)


def build(parsed: ParsedFields, context: BuildContext) -> LogProcessor:
    """Compile the texts and the mapping."""
    mapping = parsed[FIELDS_MAPPING]
    fields = parsed[FIELDS] or {}
    return LogProcessor(
        parsed[LEVEL].upper(),
        compile_interpolation(parsed[MESSAGE]),
        compile_mapping(mapping) if mapping else None,
        {name: compile_interpolation(text) for name, text in fields.items()},
        ComponentRef(context.component),
    )
