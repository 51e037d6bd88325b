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
        "Messages that came in; with windows, since the checkpoint began. Inputs inside "
        "another one count since the program's start.",
        "If it stands still, check input_connection_lost and the sender of the messages.",
    ),
    _metric("input_latency_ns", _T, "ns", "Duration of a micro-batch, from reading to delivery."),
    _metric(
        "input_connected",
        _G,
        "0 or 1",
        "1 if messages can come in, as in /ready. An input that contains others has no such "
        "metric; each inner one has.",
        "If 0: the log and /ready have the reason; nothing is lost meanwhile.",
    ),
    _metric("input_connection_up", _C, "times", "Number of times that reading began."),
    _metric(
        "input_connection_failed",
        _C,
        "times",
        "Failed connections; with Kafka one per second while no broker answers.",
        "The log and /ready have the reason; nothing is lost meanwhile.",
    ),
    _metric(
        "input_connection_lost",
        _C,
        "times",
        "Lost connections, and repeated micro-batches of its messages.",
        "The log has the reason.",
    ),
    _metric(
        "input_error",
        _C,
        "times",
        "Read errors, such as a file that does not match its scanner.",
        "The log has the file.",
    ),
    _metric(
        "input_dropped",
        _C,
        "messages",
        "Messages that were skipped before they were read completely (`too_long`).",
        "Increase max_buffer_size of the scanner.",
        labels=("reason",),
    ),
    _metric(
        "input_lost",
        _C,
        "messages",
        "Received messages that were damaged on the disk and skipped with `--skip-damaged`.",
        "The log has the files; check the disk.",
    ),
    _metric(
        "input_oldest_unread_timestamp_seconds",
        _G,
        "Unix seconds",
        "Arrival time of the oldest message in Kafka that is in no delivered micro-batch; "
        "messages from before the start count from the start. Absent while none waits.",
        "`time() - input_oldest_unread_timestamp_seconds` is the lag in time; see backlog.",
    ),
    _metric(
        "input_group_commit_failures_total",
        _C,
        "times",
        "Offsets that Kafka's consumer group did not accept.",
        "Nothing is lost, because the checkpoint has the positions; tools show too large a "
        "lag. The log has the reason: rights for the group, or active members.",
    ),
    _metric(
        "kafka_lag",
        _G,
        "messages",
        "Distance from the read position to the end of a partition (`kafka`, `kafka_franz`). "
        "Absent while no broker answers.",
        "As for backlog.",
        labels=("topic", "partition"),
    ),
    _metric(
        "redpanda_lag",
        _G,
        "messages",
        "The same for the inputs `redpanda`.",
        "As for backlog.",
        labels=("topic", "partition"),
    ),
    _metric(
        "kafka_lost",
        _C,
        "messages",
        "Messages that were deleted before they were read, with fail_on_data_loss: false "
        "(`kafka`, `kafka_franz`).",
        "They are lost to the stream: increase the topic's retention, or read faster.",
        labels=("topic", "partition"),
    ),
    _metric(
        "redpanda_lost",
        _C,
        "messages",
        "The same for the inputs `redpanda`.",
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
        "Batches that left it; a window is one batch in each of its shards.",
    ),
    _metric("buffer_latency_ns", _T, "ns", "Duration of a micro-batch that emitted windows."),
    _metric(
        "batch_created",
        _C,
        "batches",
        "Batches that a policy has closed, by the closing rule.",
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
        "Messages that it could not process: they are marked as failed and continue.",
        "The log has the errors; a catch, or a switch on errored(), handles such messages.",
    ),
    _metric(
        "processor_crashed",
        _C,
        "messages",
        "Messages that end their worker process; they are marked as failed.",
        "The log has a sample. If no message is found, a worker may lack memory.",
    ),
    _metric(
        "expectation_passed_total",
        _C,
        "judgements",
        "Messages, or batches where it is per batch, that pass an expectation of an `expect`.",
        labels=("expectation",),
    ),
    _metric(
        "expectation_failed_total",
        _C,
        "judgements",
        "Messages, or batches where it is per batch, that fail an expectation.",
        "The tab Failed of the console has samples with the reasons.",
        labels=("expectation",),
    ),
    _metric(
        "expectation_dropped_total",
        _C,
        "messages",
        "Messages that an expectation with `on_fail: drop` drops; where several do, each counts.",
        "The tab Failed of the console has samples with the reasons.",
        labels=("expectation",),
    ),
    _metric(
        "processor_latency_ns",
        _T,
        "ns",
        "Duration of a batch.",
        "A processor that waits for a server (HTTP, SQL) becomes faster with parallel or a cache.",
    ),
)
OUTPUT_METRICS: Final = (
    _metric(
        "output_sent",
        _C,
        "messages",
        "Messages that were written.",
        "If it stands still and input_received does not, check output_error and the windows.",
    ),
    _metric("output_batch_sent", _C, "batches", "Batches that were written."),
    _metric(
        "output_error",
        _C,
        "writes",
        "Failed writes. They are retried, and nothing new is read meanwhile; or a message was "
        "rejected, and goes to a `fallback` or counts in output_rejected.",
        "The log and /ready have the reason: a full disk, a refused connection, no permission.",
    ),
    _metric(
        "output_rejected",
        _C,
        "messages",
        "Messages that an output refused because of their content, without a fallback "
        "(`config`, `invalid`, `refused`, `too_large`).",
        "The log has a sample: see the page on delivery.",
        labels=("reason",),
    ),
    _metric(
        "output_resent",
        _C,
        "messages",
        "Rejected messages that were sent again, by the reason of the rejection (`unsent`: "
        "the receiver did not answer).",
        "Fix the cause that the API shows for the oldest one, or put the output into a fallback.",
        labels=("reason",),
    ),
    Metric(
        "output_rejected_waiting",
        _G,
        (),
        "messages",
        "Rejected messages that wait in the checkpoint to be sent again.",
        "At 10,000 the stream accepts no more.",
    ),
    Metric(
        "output_dropped",
        _C,
        ("reason",),
        "messages",
        "Rejected messages of inputs with auto_replay_nacks: false (`rejected`).",
        "The log has a sample: see the page on delivery.",
    ),
    _metric(
        "output_latency_ns",
        _T,
        "ns",
        "Duration of a write.",
        "Larger batches, or a higher max_in_flight.",
    ),
    _metric(
        "output_connected",
        _G,
        "0 or 1",
        "1 if messages can be written, as in /ready; 0 before the first delivery.",
        "If 0: the log and /ready have the reason; nothing new is read meanwhile.",
    ),
    _metric(
        "output_commits_total", _C, "commits", "Commits of a table, or of a micro-batch's files."
    ),
    _metric("output_commit_files_total", _C, "files", "Files that commits of a table have added."),
    _metric(
        "output_commit_bytes_total",
        _C,
        "bytes",
        "Bytes of the files that commits of a table have added.",
        "If there are few in a file, let trigger_interval be longer, and compact the table.",
    ),
    _metric("output_commit_rows_total", _C, "rows", "Rows that commits of a table have added."),
    _metric(
        "output_commit_retries_total",
        _C,
        "times",
        "Commits that were tried again: the store did not answer, or another program was faster.",
        "The log has the reason.",
    ),
    _metric(
        "output_commit_conflicts_total",
        _C,
        "times",
        "Commits that another program has forestalled.",
        "If it grows all the time, let fewer programs change the table, or less often.",
    ),
    _metric("output_connection_up", _C, "times", "Number of times that writing began to work."),
    _metric(
        "output_connection_failed",
        _C,
        "times",
        "Failed connections.",
        "The log and /ready have the reason.",
    ),
    _metric(
        "output_connection_lost",
        _C,
        "times",
        "Number of times that writing stopped working.",
        "The log and /ready have the reason.",
    ),
)
RESOURCE_METRICS: Final = (
    _metric(
        "cache_success",
        _C,
        "times",
        "Successful operations of a cache: `get`, `set`, `add`, `delete`.",
        labels=("operation",),
    ),
    _metric(
        "cache_error",
        _C,
        "times",
        "Operations that failed.",
        "The log has the reason; messages that needed the cache are marked as failed.",
        labels=("operation",),
    ),
    _metric("cache_not_found", _C, "times", "Keys that `get` did not find.", labels=("operation",)),
    _metric(
        "cache_duplicate",
        _C,
        "times",
        "Keys that existed when `add` was called.",
        labels=("operation",),
    ),
    _metric("cache_latency_ns", _T, "ns", "Duration of an operation.", labels=("operation",)),
    _metric("rate_limit_checked", _C, "times", "Requests for an access."),
    _metric(
        "rate_limit_triggered",
        _C,
        "times",
        "Requests that had to wait.",
        "Raise the limit, or accept the rate.",
    ),
    _metric("rate_limit_error", _C, "times", "Failed requests."),
    _metric("table_rows", _G, "rows", "Rows of a lookup table after the last load."),
    _metric(
        "table_refreshed", _C, "times", "Loads of changed rows, including the one at the start."
    ),
    _metric(
        "table_refresh_failed",
        _C,
        "times",
        "Failed loads of a lookup table; the table is unchanged.",
        "The log has the reason.",
    ),
)
