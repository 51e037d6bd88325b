"""The metrics of a stream and of its windows."""

from __future__ import annotations

from typing import Final

from streamer.components.metrics.metric import Metric, MetricKind

_C, _G, _H = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM

WINDOW_METRICS: Final = (
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
        " `timestamp`, `key`, `gap`, `future`, `expired`, `incomplete`, `deploy`. Since the "
        "checkpoint began.",
        "late: raise allowed_lateness, or take them by late_output. timestamp, key, gap: mend the "
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
        "window_clock_held_seconds",
        _G,
        ("source",),
        "seconds",
        "How far the partition or input that is the furthest ahead is beyond the windows' clock; "
        "`source` is the one that the clock waits for (`clock_scope: partition` or `input`).",
        "Look why that one is behind, or silent: source_idle_timeout leaves it out.",
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
        "What open windows hold: their payloads, or the aggregates of these; and the state by key.",
        "Shorter windows, fewer keys, a pipeline that pre-aggregates; see spark.conf for the heap.",
    ),
    Metric(
        "state_keys",
        _G,
        (),
        "keys",
        "Keys of which the pipeline keeps state (lag, accumulate, throttle, …).",
        "Set state_ttl of the buffer: it grows with every new key without it.",
    ),
    Metric(
        "table_age_seconds",
        _G,
        (),
        "seconds",
        "How long ago the lookup table that is the oldest was last found to be as its source is.",
        "Far above its refresh_interval: it cannot be loaded, and the log says why.",
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
STREAM_METRICS: Final = (
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
        "stream_condition",
        _G,
        ("condition",),
        "0 or 1",
        "1 for the condition that the stream is in: `starting`, `running`, `catching_up`, `idle`, "
        "`degraded`, `retrying`, `output_blocked`, `input_blocked`, `draining`, `pausing`, "
        "`stopping`, `paused`, `ended`, `stopped`, `failed` or `refused`.",
        "degraded, retrying, output_blocked, input_blocked and failed: /ready and /streams say "
        "since when, at which component, and the error.",
    ),
    Metric(
        "stream_failing_seconds",
        _G,
        (),
        "seconds",
        "For how long the stream has been failing: since its first failed try, or since its "
        "oldest rejected message came. 0 while it is not.",
        "/ready says what fails, how often it was tried, and when it is tried again.",
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
