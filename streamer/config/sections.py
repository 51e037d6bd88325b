"""The top level of a config: Benthos's sections, and `spark`, which is ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from streamer.config.bloblang_section import BLOBLANG_SECTION
from streamer.config.http_section import HTTP_SECTION
from streamer.config.unit_tests.section import DEFINITION_FIELDS
from streamer.connectors.kafka.redpanda_section import REDPANDA_SECTION
from streamer.core.limits import DEFAULT_LIMITS
from streamer.sdk.spec import Access, Field

_OFFSET_LOG: Final = "spark.sql.streaming.offsetLog.formatVersion"
_MASTER_PATTERN: Final = re.compile(
    r"local(\[(\*|[1-9]\d*)(,[1-9]\d*)?\])?|local-cluster\[\d+,\d+,\d+\]|(spark|k8s)://.+|yarn"
)
LOG_LEVELS: Final = ("OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL", "NONE")


def _make_resource_section(kind: str, plural: str) -> Field:
    return Field(
        f"{kind}_resources",
        kind,
        f"{plural} that are defined once and used by their label.",
        default=(),
        shape="array",
        advanced=True,
    )


def _check_positive(value: int) -> str | None:
    return None if value > 0 else f"is {value}; expected 1 or more"


def _check_interval(value: int) -> str | None:
    return None if value >= 0 else "is negative; expected 0s or more"


def _check_days(value: int) -> str | None:
    return None if value >= 0 else f"is {value}; expected 0 or more"


def _check_spool_limit(value: int) -> str | None:
    return None if value >= 1 << 20 else f"is {value}; expected 1048576 (1 MiB) or more"


def _conf(settings: Mapping[str, Any]) -> str | None:
    value = settings.get(_OFFSET_LOG, "1")
    if str(value).strip() == "1":
        return None
    return (
        f"sets {_OFFSET_LOG} to {value!r}; expected 1, the form of Spark's log of offsets that "
        "positions are read from at a start: leave it out"
    )


def _check_kafka(settings: Mapping[str, Any]) -> str | None:
    if settings.get("reader", "workers") == "workers":
        return None
    return (
        f"names the reader {settings['reader']!r}, which is not there since version 0.2: Spark's "
        "workers read Kafka four times as fast, without jars, and go on from its checkpoint; "
        "leave it out"
    )


def _check_master(text: str) -> str | None:
    if _MASTER_PATTERN.fullmatch(text):
        return None
    return (
        f"is {text!r}; expected local[*], local[N] with N threads, spark://HOST:PORT, yarn or "
        "k8s://URL"
    )


_LOGGER: Final = Field(
    "logger",
    "object",
    "What is logged, and how.",
    children=(
        Field("level", "string", "The lowest level to log.", default="INFO", options=LOG_LEVELS),
        Field("format", "string", "How lines look.", default="logfmt", options=("json", "logfmt")),
        Field("add_timestamp", "bool", "True if lines have the time.", default=True),
        Field("level_name", "string", "The level's key.", default="level", advanced=True),
        Field("timestamp_name", "string", "The time's key.", default="time", advanced=True),
        Field("message_name", "string", "The text's key.", default="msg", advanced=True),
        Field(
            "static_fields",
            "string",
            "Fields of every line.",
            default={"@service": "streamer"},
            shape="map",
        ),
        Field(
            "file",
            "object",
            "A file to log to instead of the standard error stream.",
            advanced=True,
            children=(
                Field("path", "string", "The file; none when empty.", default=""),
                Field(
                    "rotate",
                    "bool",
                    "True to compress the file at 10 MiB and begin a new one.",
                    default=False,
                ),
                Field(
                    "rotate_max_age_days",
                    "int",
                    "Days that old files are kept for; 0 keeps them for ever.",
                    default=0,
                    check=_check_days,
                ),
            ),
        ),
    ),
)

_SPARK: Final = Field(
    "spark",
    "object",
    "Where and how the stream runs on Spark.",
    children=(
        Field(
            "master",
            "string",
            "Spark's master: `local[*]` for this machine, or a cluster's URL.",
            default="local[*]",
            check=_check_master,
            examples=("local[2]", "spark://host:7077"),
        ),
        Field(
            "environment",
            "string",
            "How a cluster's workers get this program: `packed` sends it and its packages along, "
            "`installed` finds them there (in an image), and anything else is an archive that "
            "`streamer pack` has made, by its path here, by one that all workers have "
            "(`local:/path`), or by a URL. Local masters need none.",
            access=Access.FILE,
            default="packed",
            advanced=True,
            examples=(
                "installed",
                "local:/shared/environment.tar.gz",
                "s3a://ours/environment.tar.gz",
            ),
        ),
        Field(
            "shards",
            "int",
            "Into how many parts the state of windows is cut; the cores when left out, on a "
            "cluster those that `conf` asks for by `spark.cores.max` or "
            "`spark.executor.instances`. The number of an existing checkpoint wins.",
            optional=True,
            check=_check_positive,
        ),
        Field(
            "trigger_interval",
            "string",
            "The shortest time between two micro-batches; chosen by the program when left out.",
            optional=True,
            duration=True,
            check=_check_interval,
            examples=("1s", "200ms"),
        ),
        Field(
            "checkpoint",
            "string",
            "The directory for offsets and open windows; one that belongs to the config when "
            "left out. A URL (`s3a://…`, `hdfs://…`) is one that all machines reach.",
            optional=True,
        ),
        Field(
            "spool_limit",
            "int",
            "How many bytes may wait on disk for each input that cannot request again what it "
            "was sent (HTTP, sockets, pipes). Above it nothing more is taken.",
            default=1 << 30,
            check=_check_spool_limit,
        ),
        Field(
            "kafka",
            "object",
            "Has no effect: Spark's workers read Kafka.",
            default={},
            deprecated=True,
            advanced=True,
            check=_check_kafka,
        ),
        Field(
            "conf",
            "string",
            "Further Spark settings.",
            default={},
            shape="map",
            secret=True,
            advanced=True,
            check=_conf,
            examples=({"spark.driver.memory": "4g"},),
        ),
        Field(
            "jars_directory",
            "string",
            "Where the jars are for a checkpoint in S3. When left out they are looked for in "
            "`/opt/streamer/s3` and `~/.cache/streamer/jars/s3`, and fetched into the latter when "
            "they are in neither. The environment's `STREAMER_JARS` wins.",
            access=Access.FILE,
            optional=True,
            advanced=True,
            examples=("/opt/spark/s3",),
        ),
    ),
)

_LIMITS: Final = Field(
    "limits",
    "object",
    "The largest message. A component checks before it allocates memory; a message beyond "
    "a limit is marked as failed, and the stream goes on.",
    advanced=True,
    children=(
        Field(
            "bytes",
            "int",
            "How many bytes one message may be unpacked to (`decompress`, `unarchive`, "
            "`parquet_decode`), and how long a text or value that a mapping makes may be.",
            default=DEFAULT_LIMITS.bytes,
            check=_check_positive,
        ),
        Field(
            "elements",
            "int",
            "How many elements an array may have that is made from a number (`range`, Avro), how "
            "many values a Parquet file, and how many values a jq query may emit.",
            default=DEFAULT_LIMITS.elements,
            check=_check_positive,
        ),
        Field(
            "messages",
            "int",
            "How many messages `unarchive` and `parquet_decode` may make of one.",
            default=DEFAULT_LIMITS.messages,
            check=_check_positive,
        ),
        Field(
            "depth",
            "int",
            "How deep records, arrays and maps of an Avro message may be nested, where its schema "
            "contains itself.",
            default=DEFAULT_LIMITS.depth,
            check=_check_positive,
        ),
        Field(
            "time",
            "string",
            "How long a mapping or an interpolation, wherever it stands, or a processor that only "
            "computes (a query, a decoder) may work on one message; for ever when it is 0s.",
            default="0s",
            duration=True,
            check=_check_interval,
            examples=("1s",),
        ),
    ),
)

_PIPELINE: Final = Field(
    "pipeline",
    "object",
    "The processors between buffer and output.",
    children=(
        Field(
            "threads",
            "int",
            "Taken for compatibility: Spark's cores decide.",
            default=-1,
        ),
        Field("processors", "processor", "The processors, in order.", default=(), shape="array"),
    ),
)

_BUFFERS: Final = Field(
    "buffers",
    "buffer",
    "Several buffers in the place of `buffer` and `pipeline`, each with a label, a pipeline and an "
    "output of its own; see [Several windows](several-windows.md).",
    shape="array",
    optional=True,
    children=(
        Field(
            "from",
            "string",
            "The label of the buffer whose results this one takes; the input's messages when it is "
            "left out.",
            default="",
            examples=("hourly",),
        ),
        replace(_PIPELINE, description="The processors behind this buffer."),
        Field(
            "output",
            "output",
            "Where its results go. When it is left out: where the top level's `output` says, "
            "unless another buffer takes them.",
            optional=True,
        ),
    ),
)

SECTIONS: Final = (
    HTTP_SECTION,
    Field("input", "input", "Where messages come from.", default={"stdin": {}}),
    Field("buffer", "buffer", "Holds messages, in windows or not.", default={"none": {}}),
    _PIPELINE,
    _BUFFERS,
    Field("output", "output", "Where messages go.", default={"stdout": {}}),
    _make_resource_section("input", "Inputs"),
    _make_resource_section("processor", "Processors"),
    _make_resource_section("output", "Outputs"),
    _make_resource_section("cache", "Caches"),
    _make_resource_section("rate_limit", "Rate limits"),
    _make_resource_section("table", "Lookup tables, for the function `table` of mappings,"),
    BLOBLANG_SECTION,
    REDPANDA_SECTION,
    _LOGGER,
    Field("metrics", "metrics", "Where metrics go.", default={"prometheus": {}}),
    Field("tracer", "tracer", "Where traces go.", default={"none": {}}),
    Field(
        "shutdown_delay",
        "string",
        "How long to wait between a signal and the stop.",
        default="0s",
        duration=True,
        check=_check_interval,
    ),
    Field(
        "shutdown_timeout",
        "string",
        "How long a stop may take before the micro-batch in hand is abandoned; it is replayed.",
        default="20s",
        duration=True,
        check=_check_interval,
    ),
    Field(
        "error_handling",
        "object",
        "What happens to messages that fail.",
        advanced=True,
        children=(
            Field(
                "strict",
                "bool",
                "True if a message on which a processor fails skips the processors that follow "
                "and is not delivered: its micro-batch fails, and is tried again. `try_catch` "
                "recovers from errors that are expected.",
                default=False,
            ),
        ),
    ),
    _LIMITS,
    *DEFINITION_FIELDS,
    _SPARK,
)
"""All fields of the top level, in the order of the documentation."""
