"""The metrics of components: inputs, buffers, processors, outputs, caches, rate limits.

Their names are Benthos's.
"""

from __future__ import annotations

from typing import Final

from streamer.components.metrics.metric import Metric, MetricKind

_C, _G, _T = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.TIMING


def _metric(
    name: str,
    kind: MetricKind,
    unit: str,
    about: str,
    advice: str = "",
    labels: tuple[str, ...] = (),
) -> Metric:
    """Return a metric that has the component's label and path, and these labels."""
    return Metric(name, kind, ("label", "path", *labels), unit, about, advice)


INPUT_METRICS: Final = (
    _metric(
        "input_received",
        _C,
        "messages",
        "Messages that came in; with windows since the checkpoint began. Inputs inside of another "
        "one count since the program's start.",
        "When it stands still, look at input_connection_lost and at what sends the messages.",
    ),
    _metric("input_latency_ns", _T, "ns", "How long a micro-batch took, read to delivered."),
    _metric(
        "input_connected",
        _G,
        "0 or 1",
        "Whether messages can come in: what /ready says of the input. Not of an input that has "
        "others inside; these have one each.",
        "0: the log and /ready say why; nothing is lost meanwhile.",
    ),
    _metric("input_connection_up", _C, "times", "How often it began to be read."),
    _metric(
        "input_connection_failed",
        _C,
        "times",
        "How often it could not be connected: of Kafka once a second while no broker answers.",
        "The log and /ready say why; nothing is lost meanwhile.",
    ),
    _metric(
        "input_connection_lost",
        _C,
        "times",
        "How often its connection was lost, or a micro-batch of its messages had to be repeated.",
        "The log says why.",
    ),
    _metric(
        "input_error",
        _C,
        "times",
        "What could not be read, such as a file that is not what its scanner expects.",
        "The log names the file.",
    ),
    _metric(
        "input_dropped",
        _C,
        "messages",
        "Messages left out before they were read whole (`too_long`).",
        "Raise max_buffer_size of the scanner.",
        labels=("reason",),
    ),
    _metric(
        "input_lost",
        _C,
        "messages",
        "Messages that had come in and were damaged on the disk: `--skip-damaged` has passed them "
        "over.",
        "The log names the files; look at the disk.",
    ),
    _metric(
        "input_oldest_unread_timestamp_seconds",
        _G,
        "Unix seconds",
        "When the oldest message of Kafka came that waits and is in no delivered micro-batch; what "
        "was there before the start counts from then on. Not there while none waits.",
        "`time() - input_oldest_unread_timestamp_seconds` is the lag in time; see backlog.",
    ),
    _metric(
        "input_group_commit_failures_total",
        _C,
        "times",
        "How often Kafka's consumer group did not take what the stream has done.",
        "Nothing is lost, the checkpoint has the positions; tools show a lag that is too large. "
        "The log says why: rights for the group, or members of its own.",
    ),
    _metric(
        "kafka_lag",
        _G,
        "messages",
        "How far a partition's end is ahead of what was read (`kafka`, `kafka_franz`). Not there "
        "while no broker answers.",
        "As for backlog.",
        labels=("topic", "partition"),
    ),
    _metric(
        "redpanda_lag",
        _G,
        "messages",
        "The same of the inputs that are called `redpanda`.",
        "As for backlog.",
        labels=("topic", "partition"),
    ),
    _metric(
        "kafka_lost",
        _C,
        "messages",
        "Messages that were gone before they were read, with fail_on_data_loss: false (`kafka`, "
        "`kafka_franz`).",
        "They are lost to the stream: raise the topic's retention, or read faster.",
        labels=("topic", "partition"),
    ),
    _metric(
        "redpanda_lost",
        _C,
        "messages",
        "The same of the inputs that are called `redpanda`.",
        "As for kafka_lost.",
        labels=("topic", "partition"),
    ),
)
BUFFER_METRICS: Final = (
    _metric("buffer_received", _C, "messages", "Messages that came into the buffer."),
    _metric("buffer_batch_received", _C, "batches", "Batches that came into the buffer."),
    _metric("buffer_sent", _C, "messages", "Messages that left the buffer."),
    _metric(
        "buffer_batch_sent",
        _C,
        "batches",
        "Batches that left it; a window is one in each shard that has some of it.",
    ),
    _metric("buffer_latency_ns", _T, "ns", "How long a micro-batch took that let some out."),
    _metric(
        "batch_created",
        _C,
        "batches",
        "Batches that a policy has closed, by what closed them.",
        labels=("mechanism",),
    ),
)
PROCESSOR_METRICS: Final = (
    _metric("processor_received", _C, "messages", "Messages that came in."),
    _metric("processor_batch_received", _C, "batches", "Batches that came in."),
    _metric("processor_sent", _C, "messages", "Messages that went out."),
    _metric("processor_batch_sent", _C, "batches", "Batches that went out."),
    _metric(
        "processor_error",
        _C,
        "messages",
        "Messages that it could not process: they are marked, and go on.",
        "The log has the errors; a catch or a switch on errored() says what becomes of them.",
    ),
    _metric(
        "processor_crashed",
        _C,
        "messages",
        "Messages that end the process which works on them; they are marked as failed.",
        "The log has a sample; without one that ends it, a worker may lack memory.",
    ),
    _metric(
        "processor_latency_ns",
        _T,
        "ns",
        "How long a batch took.",
        "A processor that is slow for others' sake (HTTP, SQL) gains by parallel or a cache.",
    ),
)
OUTPUT_METRICS: Final = (
    _metric(
        "output_sent",
        _C,
        "messages",
        "Messages that were written.",
        "When it stands still and input_received does not, look at output_error and the windows.",
    ),
    _metric("output_batch_sent", _C, "batches", "Batches that were written."),
    _metric(
        "output_error",
        _C,
        "writes",
        "Writes that failed. They are tried again, and nothing new is read meanwhile; or a message "
        "was rejected, and goes to a `fallback`, or is counted in output_rejected.",
        "The log and /ready say why: a full disk, a refused connection, no permission.",
    ),
    _metric(
        "output_rejected",
        _C,
        "messages",
        "Messages that an output refused for what they are, and that nothing caught (`config`, "
        "`invalid`, `refused`, `too_large`).",
        "The log has a sample: see the page on delivery.",
        labels=("reason",),
    ),
    _metric(
        "output_resent",
        _C,
        "messages",
        "Rejected messages that were sent again, by why they were rejected before (`unsent`: the "
        "receiver did not answer).",
        "Mend what the API names for the oldest, or put the output into a fallback.",
        labels=("reason",),
    ),
    Metric(
        "output_rejected_waiting",
        _G,
        (),
        "messages",
        "Rejected messages that wait in the checkpoint to be sent again.",
        "At 10,000 the stream takes no more.",
    ),
    Metric(
        "output_dropped",
        _C,
        ("reason",),
        "messages",
        "Messages that were rejected and whose input has auto_replay_nacks: false (`rejected`).",
        "The log has a sample: see the page on delivery.",
    ),
    _metric(
        "output_latency_ns",
        _T,
        "ns",
        "How long writing took.",
        "Larger batches, or more max_in_flight.",
    ),
    _metric(
        "output_connected",
        _G,
        "0 or 1",
        "Whether messages can be written: what /ready says of the output; 0 before the first "
        "delivery.",
        "0: the log and /ready say why; nothing new is read meanwhile.",
    ),
    _metric("output_connection_up", _C, "times", "How often writing began to work."),
    _metric(
        "output_connection_failed",
        _C,
        "times",
        "How often it could not be connected.",
        "The log and /ready say why.",
    ),
    _metric(
        "output_connection_lost",
        _C,
        "times",
        "How often writing ceased to work.",
        "The log and /ready say why.",
    ),
)
RESOURCE_METRICS: Final = (
    _metric(
        "cache_success",
        _C,
        "times",
        "Operations of a cache that did what they were to: `get`, `set`, `add`, `delete`.",
        labels=("operation",),
    ),
    _metric(
        "cache_error",
        _C,
        "times",
        "Operations that failed.",
        "The log says why; messages for which a cache was needed are marked as failed.",
        labels=("operation",),
    ),
    _metric("cache_not_found", _C, "times", "Keys that `get` did not find.", labels=("operation",)),
    _metric(
        "cache_duplicate",
        _C,
        "times",
        "Keys that `add` found there already.",
        labels=("operation",),
    ),
    _metric("cache_latency_ns", _T, "ns", "How long an operation took.", labels=("operation",)),
    _metric("rate_limit_checked", _C, "times", "How often an access was requested."),
    _metric(
        "rate_limit_triggered",
        _C,
        "times",
        "How often the answer was to wait.",
        "Raise the limit, or accept the pace.",
    ),
    _metric("rate_limit_error", _C, "times", "How often it gave no answer."),
    _metric("table_rows", _G, "rows", "Rows of a lookup table, as it was last loaded."),
    _metric(
        "table_refreshed", _C, "times", "How often other rows were loaded, at the start as well."
    ),
    _metric(
        "table_refresh_failed",
        _C,
        "times",
        "How often a lookup table could not be loaded: it stays as it was.",
        "The log says why.",
    ),
)
