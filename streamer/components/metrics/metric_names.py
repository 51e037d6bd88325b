"""Every metric that there is: its name, type, labels, unit and meaning, and what to do about it.

The names of components' metrics are Benthos's; a config's own (`metric` processors) come on top.
In one file because it is one table, which the documentation prints in this order.
"""

from __future__ import annotations

from typing import Final

from streamer.components.metrics.metric import Metric, MetricKind
from streamer.components.metrics.process_metrics import PROCESS_METRICS

_C, _G, _H, _T = (
    MetricKind.COUNTER,
    MetricKind.GAUGE,
    MetricKind.HISTOGRAM,
    MetricKind.TIMING,
)
_LABELS: Final = ("label", "path")

_INPUT: Final = (
    Metric(
        "input_received",
        _C,
        _LABELS,
        "messages",
        "Messages that came in; with windows since the checkpoint began. Inputs inside of another "
        "one count since the program's start.",
        "When it stands still, look at input_connection_lost and at what sends the messages.",
    ),
    Metric(
        "input_latency_ns", _T, _LABELS, "ns", "How long a micro-batch took, read to delivered."
    ),
    Metric(
        "input_connected",
        _G,
        _LABELS,
        "0 or 1",
        "Whether messages can come in: what /ready says of the input. Not of an input that has "
        "others inside; these have one each.",
        "0: the log and /ready say why; nothing is lost meanwhile.",
    ),
    Metric("input_connection_up", _C, _LABELS, "times", "How often it began to be read."),
    Metric(
        "input_connection_failed",
        _C,
        _LABELS,
        "times",
        "How often it could not be connected: of Kafka once a second while no broker answers.",
        "The log and /ready say why; nothing is lost meanwhile.",
    ),
    Metric(
        "input_connection_lost",
        _C,
        _LABELS,
        "times",
        "How often its connection was lost, or a micro-batch of its messages had to be repeated.",
        "The log says why.",
    ),
    Metric(
        "input_error",
        _C,
        _LABELS,
        "times",
        "What could not be read, such as a file that is not what its scanner expects.",
        "The log names the file.",
    ),
    Metric(
        "input_dropped",
        _C,
        (*_LABELS, "reason"),
        "messages",
        "Messages left out before they were read whole (`too_long`).",
        "Raise max_buffer_size of the scanner.",
    ),
    Metric(
        "input_lost",
        _C,
        _LABELS,
        "messages",
        "Messages that had come in and were damaged on the disk: `--skip-damaged` has passed them "
        "over.",
        "The log names the files; look at the disk.",
    ),
    Metric(
        "input_oldest_unread_timestamp_seconds",
        _G,
        _LABELS,
        "Unix seconds",
        "When the oldest message of Kafka came that waits and is in no delivered micro-batch; what "
        "was there before the start counts from then on. Not there while none waits.",
        "`time() - input_oldest_unread_timestamp_seconds` is the lag in time; see backlog.",
    ),
    Metric(
        "input_group_commit_failures_total",
        _C,
        _LABELS,
        "times",
        "How often Kafka's consumer group did not take what the stream has done.",
        "Nothing is lost, the checkpoint has the positions; tools show a lag that is too large. "
        "The log says why: rights for the group, or members of its own.",
    ),
    Metric(
        "kafka_lag",
        _G,
        (*_LABELS, "topic", "partition"),
        "messages",
        "How far a partition's end is ahead of what was read (`kafka`, `kafka_franz`). Not there "
        "while no broker answers.",
        "As for backlog.",
    ),
    Metric(
        "redpanda_lag",
        _G,
        (*_LABELS, "topic", "partition"),
        "messages",
        "The same of the inputs that are called `redpanda`.",
        "As for backlog.",
    ),
    Metric(
        "kafka_lost",
        _C,
        (*_LABELS, "topic", "partition"),
        "messages",
        "Messages that were gone before they were read, with fail_on_data_loss: false (`kafka`, "
        "`kafka_franz`).",
        "They are lost to the stream: raise the topic's retention, or read faster.",
    ),
    Metric(
        "redpanda_lost",
        _C,
        (*_LABELS, "topic", "partition"),
        "messages",
        "The same of the inputs that are called `redpanda`.",
        "As for kafka_lost.",
    ),
)
_BUFFER: Final = (
    Metric("buffer_received", _C, _LABELS, "messages", "Messages that came into the buffer."),
    Metric("buffer_batch_received", _C, _LABELS, "batches", "Batches that came into the buffer."),
    Metric("buffer_sent", _C, _LABELS, "messages", "Messages that left the buffer."),
    Metric(
        "buffer_batch_sent",
        _C,
        _LABELS,
        "batches",
        "Batches that left it; a window is one in each shard that has some of it.",
    ),
    Metric(
        "buffer_latency_ns", _T, _LABELS, "ns", "How long a micro-batch took that let some out."
    ),
    Metric(
        "batch_created",
        _C,
        (*_LABELS, "mechanism"),
        "batches",
        "Batches that a policy has closed, by what closed them.",
    ),
)
_PROCESSOR: Final = (
    Metric("processor_received", _C, _LABELS, "messages", "Messages that came in."),
    Metric("processor_batch_received", _C, _LABELS, "batches", "Batches that came in."),
    Metric("processor_sent", _C, _LABELS, "messages", "Messages that went out."),
    Metric("processor_batch_sent", _C, _LABELS, "batches", "Batches that went out."),
    Metric(
        "processor_error",
        _C,
        _LABELS,
        "messages",
        "Messages that it could not process: they are marked, and go on.",
        "The log has the errors; a catch or a switch on errored() says what becomes of them.",
    ),
    Metric(
        "processor_crashed",
        _C,
        _LABELS,
        "messages",
        "Messages that end the process which works on them; they are marked as failed.",
        "The log has a sample; without one that ends it, a worker may lack memory.",
    ),
    Metric(
        "processor_latency_ns",
        _T,
        _LABELS,
        "ns",
        "How long a batch took.",
        "A processor that is slow for others' sake (HTTP, SQL) gains by parallel or a cache.",
    ),
)
_OUTPUT: Final = (
    Metric(
        "output_sent",
        _C,
        _LABELS,
        "messages",
        "Messages that were written.",
        "When it stands still and input_received does not, look at output_error and the windows.",
    ),
    Metric("output_batch_sent", _C, _LABELS, "batches", "Batches that were written."),
    Metric(
        "output_error",
        _C,
        _LABELS,
        "writes",
        "Writes that failed. They are tried again, and nothing new is read meanwhile; or a message "
        "was rejected, and goes to a `fallback`, or is counted in output_rejected.",
        "The log and /ready say why: a full disk, a refused connection, no permission.",
    ),
    Metric(
        "output_rejected",
        _C,
        (*_LABELS, "reason"),
        "messages",
        "Messages that an output refused for what they are, and that nothing caught (`config`, "
        "`invalid`, `refused`, `too_large`).",
        "The log has a sample: see the page on delivery.",
    ),
    Metric(
        "output_resent",
        _C,
        (*_LABELS, "reason"),
        "messages",
        "Rejected messages that were sent again, by why they were rejected before (`unsent`: the "
        "receiver did not answer).",
        "Mend what the API names for the oldest, or put the output into a fallback.",
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
    Metric(
        "output_latency_ns",
        _T,
        _LABELS,
        "ns",
        "How long writing took.",
        "Larger batches, or more max_in_flight.",
    ),
    Metric(
        "output_connected",
        _G,
        _LABELS,
        "0 or 1",
        "Whether messages can be written: what /ready says of the output; 0 before the first "
        "delivery.",
        "0: the log and /ready say why; nothing new is read meanwhile.",
    ),
    Metric("output_connection_up", _C, _LABELS, "times", "How often writing began to work."),
    Metric(
        "output_connection_failed",
        _C,
        _LABELS,
        "times",
        "How often it could not be connected.",
        "The log and /ready say why.",
    ),
    Metric(
        "output_connection_lost",
        _C,
        _LABELS,
        "times",
        "How often writing ceased to work.",
        "The log and /ready say why.",
    ),
)
_OPERATION: Final = (*_LABELS, "operation")
_RESOURCES: Final = (
    Metric(
        "cache_success",
        _C,
        _OPERATION,
        "times",
        "Operations of a cache that did what they were to: `get`, `set`, `add`, `delete`.",
    ),
    Metric(
        "cache_error",
        _C,
        _OPERATION,
        "times",
        "Operations that failed.",
        "The log says why; messages for which a cache was needed are marked as failed.",
    ),
    Metric("cache_not_found", _C, _OPERATION, "times", "Keys that `get` did not find."),
    Metric("cache_duplicate", _C, _OPERATION, "times", "Keys that `add` found there already."),
    Metric("cache_latency_ns", _T, _OPERATION, "ns", "How long an operation took."),
    Metric("rate_limit_checked", _C, _LABELS, "times", "How often an access was requested."),
    Metric(
        "rate_limit_triggered",
        _C,
        _LABELS,
        "times",
        "How often the answer was to wait.",
        "Raise the limit, or accept the pace.",
    ),
    Metric("rate_limit_error", _C, _LABELS, "times", "How often it gave no answer."),
)
_WINDOWS: Final = (
    Metric(
        "window_open",
        _G,
        (),
        "windows",
        "Windows that are open.",
        "With keys: are there ever more of them? Sessions and idle_timeout drop old ones.",
    ),
    Metric(
        "window_messages",
        _G,
        (),
        "messages",
        "Messages in open windows.",
        "A pipeline with pre-aggregation keeps aggregates, not messages; see state_bytes.",
    ),
    Metric(
        "window_closed",
        _C,
        (),
        "windows",
        "Windows that came out; with `emit: changes` each time. Those of keys are counted since "
        "the checkpoint began.",
        "When none closes though window_open is above 0: does the clock go on? An event-time "
        "window waits for newer events.",
    ),
    Metric(
        "window_dropped",
        _C,
        ("reason",),
        "messages",
        "Messages that no window got, or that were in a window that was dropped, by reason: `late`,"
        " `timestamp`, `key`, `future`, `expired`, `incomplete`, `deploy`. Since the checkpoint "
        "began.",
        "late: raise allowed_lateness, or take them by late_output. timestamp, key: mend the "
        "mapping. expired: the output is too slow.",
    ),
    Metric(
        "window_close_delay_seconds",
        _H,
        (),
        "seconds",
        "How long after its end and lateness a window was delivered, by the wall clock. Of many "
        "windows of keys that come out together, the first 16 of a shard are timed.",
        "Look at batch_duration_seconds and output_latency_ns. Of events that are replayed it is "
        "their age.",
    ),
    Metric(
        "window_next_close_timestamp_seconds",
        _G,
        (),
        "Unix seconds",
        "When the next window closes; not there when none is open or events decide.",
    ),
    Metric(
        "window_watermark_timestamp_seconds",
        _G,
        (),
        "Unix seconds",
        "Every window that ends at or before it has closed; not there before the first.",
        "Of an event-time window it stands still when no newer events come.",
    ),
    Metric(
        "event_time_lag_seconds",
        _G,
        (),
        "seconds",
        "How old the newest event was when its micro-batch was delivered. It stands still while "
        "nothing comes, and grows while an input or an output is not connected.",
        "If backlog is high too, the stream is slow; if not, the events come late.",
    ),
    Metric(
        "state_bytes",
        _G,
        (),
        "bytes",
        "What open windows hold: their payloads, or the aggregates of these.",
        "Shorter windows, fewer keys, a pipeline that pre-aggregates; see spark.conf for the heap.",
    ),
    Metric(
        "retention_rows",
        _G,
        (),
        "results",
        "Results of windows that are kept for queries.",
        "A shorter retention.",
    ),
    Metric("retention_bytes", _G, (), "bytes", "Their size on the disk.", "A shorter retention."),
    Metric(
        "retention_files",
        _G,
        (),
        "files",
        "The files that they are in.",
        "More than some dozens: compaction fails, which the log says.",
    ),
    Metric(
        "retention_removed",
        _C,
        (),
        "results",
        "Results that have expired, or were replaced by a newer revision of their window.",
    ),
)
_STREAM: Final = (
    Metric(
        "batch_duration_seconds",
        _H,
        (),
        "seconds",
        "How long a micro-batch took, from its start to its delivery.",
        "Compare processor_latency_ns and output_latency_ns; a large backlog makes large "
        "micro-batches.",
    ),
    Metric(
        "batch_failed",
        _C,
        (),
        "micro-batches",
        "Micro-batches that failed and were tried again.",
        "The log says which component failed and why. After five in a row the stream stops.",
    ),
    Metric(
        "micro_batch",
        _G,
        (),
        "number",
        "The number of the newest micro-batch; -1 before the first.",
    ),
    Metric(
        "backlog",
        _G,
        (),
        "messages",
        "Messages that waited when the input was last looked at, those of the micro-batch in hand "
        "included; of inputs other than Kafka as many as one micro-batch takes at most. Not there "
        "while no broker answers.",
        "If it grows: more cores, fewer processors, or a faster output.",
    ),
    Metric(
        "batch_in_hand_seconds",
        _G,
        (),
        "seconds",
        "For how long the micro-batch in hand is under way; 0 between two.",
        "When it grows and grows, /ready says what it waits for.",
    ),
    Metric(
        "last_delivery_timestamp_seconds",
        _G,
        (),
        "Unix seconds",
        "When the newest micro-batch was delivered; not there before the first of a start.",
    ),
    Metric("stream_running", _G, (), "0 or 1", "Whether the stream runs."),
    Metric(
        "stream_ready",
        _G,
        (),
        "0 or 1",
        "Whether messages flow, as /ready says: all inputs and outputs are connected, and the "
        "stream neither stops nor lets its windows out for a deploy.",
        "input_connected and output_connected say which is not; /ready says why.",
    ),
    Metric(
        "checkpoint_bytes",
        _G,
        (),
        "bytes",
        "The size of the checkpoint on this machine, spools and results included; measured once a "
        "minute at most. Not there where the checkpoint is elsewhere.",
        "Compare state_bytes and retention_bytes; the rest is what waits in spools.",
    ),
    Metric(
        "checkpoint_free_bytes",
        _G,
        (),
        "bytes",
        "What is free on the disk that it is on.",
        "Make room before it is 0: then nothing is delivered any more.",
    ),
    Metric(
        "stream_state",
        _G,
        ("state",),
        "0 or 1",
        "Of a stream of the service, 1 for the state that it is in: `starting`, `running`, "
        "`restarting`, `waiting`, `paused`, `ended`, `failed` or `stopped`.",
        "failed: /streams says why; mend it, then `streamer resume`.",
    ),
    Metric(
        "stream_restarts",
        _C,
        (),
        "times",
        "How often the service started it again after a failure.",
        "The log says why.",
    ),
    Metric("stream_revision", _G, (), "number", "The revision that is deployed."),
    Metric("stream_uptime_seconds", _G, (), "seconds", "For how long it runs; 0 when it does not."),
)

METRIC_GROUPS: Final = {
    "Inputs": _INPUT,
    "Buffers": _BUFFER,
    "Processors": _PROCESSOR,
    "Outputs": _OUTPUT,
    "Caches and rate limits": _RESOURCES,
    "Windows": _WINDOWS,
    "Streams": _STREAM,
    "The process": PROCESS_METRICS,
}
"""Metrics by what they are of, in the order of the documentation."""

METRICS: Final = {metric.name: metric for group in METRIC_GROUPS.values() for metric in group}
"""Metrics by name."""

HISTOGRAM_BOUNDS_S: Final = {
    "window_close_delay_seconds": (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0),
    "batch_duration_seconds": (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0),
}
"""The upper bounds of the buckets of histograms, seconds."""
