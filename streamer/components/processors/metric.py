"""`metric`: counts, or measures, what a config wants to know of its messages.

It will "emit custom metrics by extracting values from messages". They stand among the program's
own, under the names that the config gives them, with
the labels `label` and `path` beside its own, as in Benthos. They leave the worker with the
micro-batch, so that one that is tried again counts once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from streamer.bloblang import Interpolation, compile_interpolation
from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.convert import parse_float
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

TYPE: Final = "type"
NAME: Final = "name"
LABELS: Final = "labels"
VALUE: Final = "value"

TYPES: Final = ("counter", "counter_by", "gauge", "timing")

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "metric",
    "Counts or measures something of each message as a metric of the config's own.",
    description=(
        "`counter` grows by one for each message, `counter_by` by `value`; `gauge` is set to "
        "`value`, and `timing` takes it as a time in nanoseconds. A value that is missing, "
        "not a number or negative is logged as an error; the message passes without a mark. "
        "If several tasks of a micro-batch set a gauge, the last one in the order of the "
        "input counts."
    ),
    fields=(
        Field(TYPE, "string", "Type of the metric.", options=TYPES),
        Field(
            NAME,
            "string",
            "The metric's name, which no other metric has.",
            access=Access.NONE,
            check=lambda name: None if name else "metric name must not be empty",
            examples=("Foos",),
        ),
        Field(
            LABELS,
            "string",
            "The metric's labels, beside `label` and `path`, which say where the processor is.",
            optional=True,
            shape="map",
            interpolated=True,
            examples=({"topic": '${! meta("kafka_topic") }'},),
        ),
        Field(
            VALUE,
            "string",
            "The value, for all types but `counter`.",
            default="",
            interpolated=True,
            examples=("${! this.size }",),
        ),
    ),
    examples=(
        Example(
            "Count messages by a field",
            "pipeline:\n"
            "  processors:\n"
            "    - metric:\n"
            "        type: counter\n"
            "        name: Documents\n"
            "        labels:\n"
            '          type: ${! this.type.or("unknown") }\n',
        ),
    ),
    categories=("Utility",),
    delivery="counted once, also after retries",
)


class MetricProcessor:
    """Adds each message to a metric, and lets it pass."""

    def __init__(
        self,
        kind: str,
        name: str,
        labels: Mapping[str, Interpolation],
        value: Interpolation,
        origin: ComponentRef,
    ) -> None:
        """Take the fields, and who speaks."""
        self._kind = kind
        self._name = name
        self._labels = labels
        self._value = value
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Measure every message, and return the batch."""
        for index in range(len(batch)):
            self._measure(batch, index, ex)
        return [batch]

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Measure messages that are batches by themselves, and return them."""
        for message in messages:
            self._measure([message], 0, ex)
        return messages

    def _measure(self, batch: Batch, index: int, ex: Execution) -> None:
        what = "Value interpolation error"
        try:
            value = self._value.text_of(batch, index, ex)
            what = "Handler error: label interpolation error"
            labels = self._origin.fields | {
                name: of.text_of(batch, index, ex) for name, of in self._labels.items()
            }
            what = "Handler error"
            self._add_value(labels, value, ex)
        except (MessageError, QueryError) as error:
            self._origin.log(ex, "ERROR", f"{what}: {error}")

    def _add_value(self, labels: Mapping[str, str], value: str, ex: Execution) -> None:
        name, figures = self._name, ex.custom_metrics
        if self._kind == "counter":
            figures.add_count(name, labels, 1)
        elif self._kind == "counter_by":
            figures.add_count(name, labels, _parse_number(value))
        elif self._kind == "gauge":
            figures.set_gauge(name, labels, _parse_number(value))
        else:
            figures.add_time(name, labels, _parse_nanoseconds(value))


def _parse_number(text: str) -> float:
    """Return a number that is not negative; an integer as an int."""
    number = int(text) if _INTEGER.fullmatch(text) else parse_float(text)
    if number < 0:
        shown = str(number) if isinstance(number, int) else f"{number:f}"
        raise QueryError(f"value {shown} is negative")
    return number


def _parse_nanoseconds(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise QueryError(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    number = int(text)
    if number < 0:
        raise QueryError("value is negative")
    return number


def build(parsed: ParsedFields, context: BuildContext) -> MetricProcessor:
    """Compile the texts."""
    labels = parsed[LABELS] or {}
    return MetricProcessor(
        parsed[TYPE].lower(),
        parsed[NAME],
        {name: compile_interpolation(text) for name, text in sorted(labels.items())},
        compile_interpolation(parsed[VALUE]),
        ComponentRef(context.component),
    )
