"""`system_window`: cuts a stream into windows of a fixed length that follow the system clock.

"Chops a stream of messages into tumbling or sliding windows of fixed temporal size, following the
system clock." Fields and defaults are those of Redpanda Connect's buffer of this name;
`late_output`, `on_expired`, `expire_after` and `end_of_input` are ours. The rules themselves are
in `streamer.window.settings.system_window`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

from streamer.bloblang import Mapping, compile_mapping
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec, duration_field
from streamer.sdk.window_buffer.event_time import (
    find_retention_problems,
    find_state_ttl_problems,
    find_timestamp_problems,
)
from streamer.sdk.window_buffer.fields import (
    RETENTION,
    RETENTION_FIELD,
    RETENTION_PACKAGES,
    STATE_TTL_FIELD,
    TIMESTAMP_MAPPING,
)
from streamer.window.settings.system_window import SystemWindow, find_system_window_problems

SIZE: Final = "size"
SLIDE: Final = "slide"
OFFSET: Final = "offset"
ALLOWED_LATENESS: Final = "allowed_lateness"
LATE_OUTPUT: Final = "late_output"
ON_EXPIRED: Final = "on_expired"
EXPIRE_AFTER: Final = "expire_after"
END_OF_INPUT: Final = "end_of_input"


def _check(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    yield from find_timestamp_problems(parsed)
    problem_list = find_system_window_problems(
        parsed[SIZE],
        parsed[SLIDE],
        parsed[OFFSET],
        parsed[ALLOWED_LATENESS],
        parsed[EXPIRE_AFTER],
    )
    # Lint puts the field's name in front.
    yield from ((name, text.removeprefix(f"{name} ")) for name, text in problem_list)
    yield from find_retention_problems(parsed)
    yield from find_state_ttl_problems(parsed)


_FIELDS: Final = (
    Field(
        TIMESTAMP_MAPPING,
        "string",
        "A Bloblang mapping that returns the time by which a message is put into a window: Unix "
        "seconds as a number (up to nine decimals count), a date and time with zone as text (RFC "
        "3339, ISO 8601), or a timestamp. The default is the time of arrival. When it fails or "
        'returns anything else, the message is dropped, logged and counted (reason "timestamp").',
        default="root = now()",
        mapping=True,
        examples=("root = this.created_at", 'root = meta("kafka_timestamp_unix").number()'),
    ),
    duration_field(
        SIZE,
        "The length of a window. Windows end at multiples of it on the UTC clock, so windows of "
        "an hour end at the turn of every hour; `offset` moves them.",
        examples=("30s", "10m"),
    ),
    duration_field(
        SLIDE,
        "The time from one window's end to the next one's, shorter than `size`: windows overlap, "
        "and a message is in each window that covers its time. Empty for windows that follow one "
        "another.",
        default="",
        examples=("30s", "10m"),
    ),
    duration_field(
        OFFSET,
        "Moves all windows by this much, which may be negative, and must be less than the slide "
        "(or the size, without one).",
        default="",
        examples=("-6h", "30m"),
    ),
    duration_field(
        ALLOWED_LATENESS,
        "Time for which a window waits for late messages after its end; shorter than `size`.",
        default="",
        examples=("10s", "1m"),
    ),
    Field(
        LATE_OUTPUT,
        "string",
        "The label of an output resource that gets the messages that are dropped, with the reason "
        "in their metadata. Without it, they are only logged and counted.",
        optional=True,
        refers=Kind.OUTPUT,
        advanced=True,
    ),
    Field(
        ON_EXPIRED,
        "string",
        "Treatment of a window that is overdue because of a blocked output or slow processors "
        "of the stream: `drop` drops it, logged and counted, as Benthos does; `keep` emits it "
        "late. The current and the previous window are never dropped.",
        default="drop",
        options=("drop", "keep"),
        advanced=True,
    ),
    duration_field(
        EXPIRE_AFTER,
        "Time for which the stream's own processors and outputs may delay a due window before "
        "`on_expired` applies. By default the larger of 10s and the slide (or the size, "
        "without one).",
        default="",
        advanced=True,
    ),
    Field(
        END_OF_INPUT,
        "string",
        "Treatment of open windows when the input ends (a file, a closed pipe): `wait` waits "
        "for their ends and emits them, as Benthos does; `flush` emits them at once; `keep` "
        "leaves them in the checkpoint for the next start.",
        default="wait",
        options=("wait", "flush", "keep"),
        advanced=True,
    ),
    RETENTION_FIELD,
    STATE_TTL_FIELD,
)

SPEC: Final = Spec(
    Kind.BUFFER,
    "system_window",
    "Divides a stream into tumbling or sliding windows by the system clock.",
    description=(
        "The messages of a window are emitted as one batch once the system clock has passed "
        "the window's end by `allowed_lateness`. A window covers the times after its start, "
        "up to and including its end. Each message gets the metadata `window_end_timestamp`, "
        "the window's end in RFC 3339.\n"
        "\n"
        "Windows survive a restart and a crash: open windows continue, and each one is "
        "emitted completely. A message whose windows have all been emitted is late: it is "
        "dropped, logged and counted."
    ),
    status="beta",
    fields=_FIELDS,
    check=_check,
    examples=(
        Example(
            "Count passengers at traffic lights",
            "buffer:\n"
            "  system_window:\n"
            "    timestamp_mapping: root = this.created_at\n"
            "    size: 1h\n"
            "pipeline:\n"
            "  processors:\n"
            "    - group_by_value:\n"
            "        value: '${! json(\"traffic_light\") }'\n"
            "    - mapping: |\n"
            "        root = if batch_index() == 0 {\n"
            "          {\n"
            '            "traffic_light": this.traffic_light,\n'
            '            "created_at": meta("window_end_timestamp"),\n'
            '            "total_cars": json("registration_plate").from_all().unique().length(),\n'
            '            "passengers": json("passengers").from_all().sum(),\n'
            "          }\n"
            "        } else { deleted() }\n",
            "Messages of one light and one hour become one message.",
        ),
    ),
    categories=("Windowing",),
    requires=RETENTION_PACKAGES,
)


@dataclass(frozen=True, slots=True)
class SystemWindowBuffer:
    """The buffer as the plan and the stages need it.

    Attributes:
        window: the settings of the windows.
        timestamp: the mapping that gives a message's time; `now()` in it is the micro-batch's.
        late_output: the label of the output resource for dropped messages, or None.
    """

    window: SystemWindow
    timestamp: Mapping
    late_output: str | None

    key: ClassVar[None] = None
    filter: ClassVar[None] = None
    having: ClassVar[None] = None
    gap: ClassVar[None] = None
    begin_when: ClassVar[None] = None
    emit_when: ClassVar[None] = None
    right_timestamp: ClassVar[None] = None
    right_key: ClassVar[None] = None

    @property
    def settings(self) -> SystemWindow:
        """Settings of the windows, for the plan."""
        return self.window


def build(parsed: ParsedFields, context: BuildContext) -> SystemWindowBuffer:
    """Take the settings, which `SPEC.check` has found to be right, and compile the mapping."""
    window = SystemWindow(
        size=parsed[SIZE],
        slide=parsed[SLIDE] or None,
        offset=parsed[OFFSET] or 0,
        allowed_lateness=parsed[ALLOWED_LATENESS] or 0,
        expire_after=parsed[EXPIRE_AFTER],
        on_expired=parsed[ON_EXPIRED],
        end_of_input=parsed[END_OF_INPUT],
        retention=parsed[RETENTION],
    )
    timestamp = compile_mapping(parsed[TIMESTAMP_MAPPING])
    return SystemWindowBuffer(window, timestamp, parsed[LATE_OUTPUT] or None)
