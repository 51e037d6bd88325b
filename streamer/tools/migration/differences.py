"""Differences in behaviour between Benthos and streamer, as far as a config meets them.

Sources: Benthos's documentation of each component, and the page `migrating` of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from streamer.components.catalog import find_input_batching
from streamer.config.partial import PartialConfig
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields

_KAFKA_INPUTS: Final = frozenset({"kafka", "kafka_franz", "redpanda", "redpanda_common"})
_FILE_INPUTS: Final = frozenset({"file", "csv"})
_REPLAYABLE_INPUTS: Final = _KAFKA_INPUTS | _FILE_INPUTS | {"aws_s3", "generate", "sql_select"}
"""Inputs whose messages a restart reads again by their position."""
_WRAPPING_INPUTS: Final = frozenset(
    {"broker", "sequence", "read_until", "batched", "resource", "dynamic"}
)

_BY_COMPONENT: Final[dict[tuple[Kind, str], tuple[str, ...]]] = {
    (Kind.BUFFER, "system_window"): (
        "windows",
        "Open windows survive a restart; in Benthos their messages are read again.",
        "With tumbling_window, old data has the same result as new data.",
    ),
    (Kind.BUFFER, "sqlite"): (
        "sqlite_buffer",
        "The buffer sqlite makes no database: messages are on the disk without it.",
        "It can be left out.",
    ),
    (Kind.BUFFER, "memory"): (
        "memory_buffer",
        "The buffer memory loses nothing in a crash; in Benthos it does.",
    ),
    **{
        (Kind.CACHE, name): (
            "memory_cache",
            f"On a cluster, each worker has a cache {name} of its own.",
            "Use redis, memcached or sql where workers share it.",
        )
        for name in ("memory", "lru", "ttlru")
    },
    (Kind.RATE_LIMIT, "local"): (
        "local_rate_limit",
        "On a cluster, each machine has a rate limit local of its own.",
        "Use redis where machines share it.",
    ),
    **{
        (Kind.PROCESSOR, name): (
            "ollama_server",
            f"The processor {name} starts no server, and gets a model only when it is missing.",
            "Run `ollama serve`, and set server_address where it is elsewhere.",
        )
        for name in ("ollama_chat", "ollama_embeddings", "ollama_moderation")
    },
    (Kind.INPUT, "aws_kinesis"): (
        "kinesis_positions",
        "The input aws_kinesis has its positions in the checkpoint, not in DynamoDB, and reads all "
        "shards by itself.",
        "Positions in DynamoDB are not taken over: the first start follows start_from_oldest.",
    ),
    (Kind.INPUT, "aws_dynamodb_cdc"): (
        "dynamodb_positions",
        "The input aws_dynamodb_cdc has its positions in the checkpoint, not in DynamoDB, and "
        "reads changes behind the snapshot, not beside it.",
        "Positions in DynamoDB are not taken over: the first start follows start_from.",
    ),
    (Kind.INPUT, "sftp"): (
        "sftp_positions",
        "The input sftp has the files that were read in the checkpoint, and needs no cache; it "
        "deletes a file when all of it is on the disk, Redpanda Connect when it is delivered.",
        "Files that a cache of Redpanda Connect has are read again by the first start.",
    ),
    (Kind.INPUT, "amqp_0_9"): (
        "amqp_acknowledgement",
        "The input amqp_0_9 acknowledges messages when they are on the disk; Redpanda Connect "
        "does when they are delivered.",
        "Leave nack_reject_patterns empty: nothing is given back to the broker.",
    ),
    (Kind.OUTPUT, "amqp_0_9"): (
        "amqp_message_id",
        "The output amqp_0_9 gives each message a random id where message_id is not set, by which "
        "it knows those that the broker sends back.",
        "Set message_id where consumers use it.",
    ),
    (Kind.INPUT, "cassandra"): (
        "cassandra_pages",
        "The input cassandra goes on behind the last page that it has read; Redpanda Connect runs "
        "the query anew at every start. A column without a value is null, and not zero or empty.",
    ),
    (Kind.INPUT, "amqp_1"): (
        "amqp_1_acknowledgement",
        "The input amqp_1 accepts messages when they are on the disk; Redpanda Connect does when "
        "they are delivered.",
        "The field azure_renew_lock can be left out.",
    ),
    (Kind.INPUT, "gcp_pubsub"): (
        "pubsub_acknowledgement",
        "The input gcp_pubsub acknowledges messages when they are on the disk; Redpanda Connect "
        "does when they are delivered. Messages are pulled over JSON, not streamed.",
    ),
    (Kind.INPUT, "aws_cloudwatch_logs"): (
        "cloudwatch_positions",
        "The input aws_cloudwatch_logs goes on behind what it has read; Redpanda Connect begins at "
        "start_time at every start.",
    ),
    (Kind.INPUT, "aws_sqs"): (
        "sqs_deletion",
        "The input aws_sqs deletes messages when they are on the disk; Benthos does when they are "
        "delivered.",
    ),
    (Kind.INPUT, "aws_s3"): (
        "s3_positions",
        "The input aws_s3 has its position in the checkpoint: a restart goes on behind the objects "
        "that it has read. In Benthos it begins anew.",
        "With sqs.url, messages are deleted from the queue when they are on the disk.",
    ),
    (Kind.TRACER, "jaeger"): (
        "jaeger_otlp",
        "The tracer jaeger sends OTLP to port 4318; Benthos sends Jaeger's own protocol.",
        "Set collector_url to http://HOST:4318/v1/traces where Jaeger has another port.",
    ),
    (Kind.OUTPUT, "switch"): (
        "switch_order",
        "The output switch keeps the order among its cases; Benthos does not.",
        "With keep_order: false, cases send in parallel, which is faster.",
    ),
}
"""Differences of single components: subject, text, and what to change."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference in behaviour that a config meets.

    Attributes:
        subject: a short, stable name, such as `http_address`.
        line: the line of the config that it is about; 0 where the config says nothing of it.
        text: a sentence on how Benthos and streamer differ there.
        change: a sentence on what to do or to set; empty where there is nothing.
    """

    subject: str
    line: int
    text: str
    change: str = ""


Rule = Callable[[PartialConfig], Iterator[Difference]]


def find_differences(config: PartialConfig) -> tuple[Difference, ...]:
    """Return the differences that a config meets, one for each subject, in the order of the file.

    Example:
        >>> import os, tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "cars.yaml"
        >>> _ = file.write_text("pipeline: {threads: 4}")
        >>> from streamer.config.partial import read_partial_config
        >>> [one.subject for one in find_differences(read_partial_config(str(file), {}))][-1]
        'threads'
    """
    by_subject: dict[str, Difference] = {}
    for rule in _RULES:
        for one in rule(config):
            by_subject.setdefault(one.subject, one)
    return tuple(sorted(by_subject.values(), key=lambda one: one.line))


def _compare_http_address(config: PartialConfig) -> Iterator[Difference]:
    http = config.section("http")
    if not isinstance(http, ParsedFields) or http.is_given("address") or not http["enabled"]:
        return
    yield Difference(
        "http_address",
        config.line_of("http"),
        "The HTTP server listens on 127.0.0.1:4195; Benthos's listens on all addresses.",
        "To serve other machines, set http.address: 0.0.0.0:4195 and credentials.",
    )


def _compare_threads(config: PartialConfig) -> Iterator[Difference]:
    line = config.line_of("pipeline", "threads")
    if line:
        yield Difference(
            "threads",
            line,
            "The field pipeline.threads is ignored: Spark's cores process messages.",
            "Set spark.master: local[N] for N cores.",
        )


def _compare_checkpoint(config: PartialConfig) -> Iterator[Difference]:
    spark = config.section("spark")
    if not isinstance(spark, ParsedFields) or spark.is_given("checkpoint"):
        return
    windows = any(
        one.kind == Kind.BUFFER and one.name not in {"none", "memory", "sqlite"}
        for one in config.components()
    )
    kept = "Positions and open windows" if windows else "Positions"
    yield Difference(
        "checkpoint",
        0,
        f"{kept} are kept in a checkpoint on the disk, which Benthos does not have.",
        "Set spark.checkpoint to a directory that survives, and keep it.",
    )


def _compare_latency(config: PartialConfig) -> Iterator[Difference]:
    spark = config.section("spark")
    if isinstance(spark, ParsedFields) and spark.is_given("trigger_interval"):
        return
    yield Difference(
        "micro_batches",
        0,
        "Messages are processed in micro-batches; in Benthos they flow one by one.",
        "The field spark.trigger_interval limits how long a message waits.",
    )


def _compare_delivery(config: PartialConfig) -> Iterator[Difference]:
    for one in _inputs(config):
        if one.name in _KAFKA_INPUTS:
            yield Difference(
                "kafka_group",
                one.line,
                f"The input {one.name} is not a member of its consumer group: positions are those "
                "of the checkpoint, and the group shows them.",
                "The first start goes on from the group's offsets. Use one stream for a group.",
            )
        elif one.name in _FILE_INPUTS:
            yield Difference(
                "file_positions",
                one.line,
                f"The input {one.name} goes on after a restart where it was; in Benthos it begins "
                "again.",
                "To read all files again, start with an empty checkpoint.",
            )
        elif one.name not in _REPLAYABLE_INPUTS | _WRAPPING_INPUTS:
            yield Difference(
                "spool",
                one.line,
                f"Messages of {one.name} are written to the disk before they are acknowledged.",
                "The field spark.spool_limit limits their size.",
            )


def _compare_batching(config: PartialConfig) -> Iterator[Difference]:
    for one in config.components():
        if one.kind == Kind.OUTPUT and isinstance(one.config, ParsedFields):
            batching = one.config.get("batching")
            if isinstance(batching, ParsedFields) and batching.get("period"):
                yield Difference(
                    "batching_period",
                    one.line,
                    f"The field batching.period of {one.name} is the least distance of two "
                    "micro-batches, and each micro-batch ends a batch.",
                )
    for one in _inputs(config):
        batching = find_input_batching(one)
        if batching is not None and batching.get("period"):
            yield Difference(
                "input_batching_period",
                one.line,
                f"The field batching.period of {one.name} is the least distance of two "
                "micro-batches; Connect waits for so long until a batch is full.",
                "A batch has messages of one partition, and the end of a micro-batch closes it.",
            )


def _compare_components(config: PartialConfig) -> Iterator[Difference]:
    for one in config.components():
        if (known := _BY_COMPONENT.get((one.kind, one.name))) is not None:
            yield Difference(known[0], one.line, *known[1:])


def _compare_retries(config: PartialConfig) -> Iterator[Difference]:
    pipeline = config.section("pipeline")
    processors = pipeline["processors"] if isinstance(pipeline, ParsedFields) else ()
    if processors:
        yield Difference(
            "retries",
            config.line_of("pipeline", "processors"),
            "Where an output fails, it alone is tried again; in Benthos, processors may run again.",
        )


def _inputs(config: PartialConfig) -> Iterator[ParsedComponent]:
    return (one for one in config.components() if one.kind == Kind.INPUT)


_RULES: Final[tuple[Rule, ...]] = (
    _compare_http_address,
    _compare_checkpoint,
    _compare_latency,
    _compare_delivery,
    _compare_components,
    _compare_threads,
    _compare_retries,
    _compare_batching,
)
