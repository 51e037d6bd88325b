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
        "With keys: check whether the number grows for ever. Sessions and idle_timeout remove "
        "old windows.",
    ),
    Metric(
        "window_messages",
        _G,
        (),
        "messages",
        "Messages in open windows.",
        "A pre-aggregated pipeline stores aggregates instead of messages; see state_bytes.",
    ),
    Metric(
        "window_closed",
        _C,
        (),
        "windows",
        "Windows that were emitted; with `emit: changes` each time. Windows of keys count "
        "since the checkpoint began.",
        "If none closes although window_open is above 0, check the clock. An event-time "
        "window waits for newer events.",
    ),
    Metric(
        "window_dropped",
        _C,
        ("reason",),
        "messages",
        "Messages that no window accepted, or in a dropped window, by reason: `late`, "
        "`timestamp`, `key`, `gap`, `future`, `expired`, `incomplete`, `deploy`. Since the "
        "checkpoint began.",
        "late: increase allowed_lateness, or set late_output. timestamp, key, gap: fix the "
        "mapping. expired: the output is too slow.",
    ),
    Metric(
        "window_close_delay_seconds",
        _H,
        (),
        "seconds",
        "Time from the end of a window plus its lateness to its delivery, by the wall clock. "
        "Of many windows of keys that close together, the first 16 of a shard are measured.",
        "Check batch_duration_seconds and output_latency_ns. For replayed events it is their age.",
    ),
    Metric(
        "window_next_close_timestamp_seconds",
        _G,
        (),
        "Unix seconds",
        "Time at which the next window closes; absent if none is open or events decide.",
    ),
    Metric(
        "window_watermark_timestamp_seconds",
        _G,
        (),
        "Unix seconds",
        "All windows that end at or before this time have closed; absent before the first.",
        "For event-time windows it stands still without newer events.",
    ),
    Metric(
        "window_clock_held_seconds",
        _G,
        ("source",),
        "seconds",
        "Distance from the windows' clock to the fastest partition or input. `source` is the "
        "slowest one, which holds the clock (`clock_scope: partition` or `input`).",
        "Find the reason why that source is slow or silent; source_idle_timeout ignores "
        "silent ones.",
    ),
    Metric(
        "window_clock_held_since_timestamp_seconds",
        _G,
        ("source",),
        "Unix seconds",
        "Batch time from which on `source` has held the windows' clock back.",
        "`streamer why` shows the source, the windows that wait, and what to set.",
    ),
    Metric(
        "window_clock_held_windows",
        _G,
        ("source",),
        "windows",
        "Open windows that would have closed by the clock of the fastest partition or input.",
        "See `window_clock_held_seconds`. Of very many windows only the first are counted.",
    ),
    Metric(
        "window_clock_held_messages",
        _G,
        ("source",),
        "messages",
        "Messages in the windows of `window_clock_held_windows`.",
        "See `window_clock_held_seconds`.",
    ),
    Metric(
        "window_clock_held_bytes",
        _G,
        ("source",),
        "bytes",
        "Bytes of the messages of `window_clock_held_messages`; 0 where no step counts them.",
        "See `window_clock_held_seconds`.",
    ),
    Metric(
        "event_time_lag_seconds",
        _G,
        (),
        "seconds",
        "Age of the newest event when its micro-batch was delivered. It is constant without "
        "messages, and grows while an input or output is not connected.",
        "If backlog is high too, the stream is slow; otherwise the events arrive late.",
    ),
    Metric(
        "state_bytes",
        _G,
        (),
        "bytes",
        "Size of the contents of open windows (payloads or aggregates), and of the state by key.",
        "Shorter windows, fewer keys, a pre-aggregated pipeline; see spark.conf for the heap.",
    ),
    Metric(
        "state_keys",
        _G,
        (),
        "keys",
        "Keys with state of the pipeline (lag, accumulate, throttle, …).",
        "Set state_ttl of the buffer; otherwise it grows with every new key.",
    ),
    Metric(
        "table_age_seconds",
        _G,
        (),
        "seconds",
        "Time since the last successful check of the oldest lookup table.",
        "Far above its refresh_interval: it cannot be loaded, and the log has the reason.",
    ),
    Metric(
        "retention_rows",
        _G,
        (),
        "results",
        "Results of windows stored for queries.",
        "A shorter retention.",
    ),
    Metric("retention_bytes", _G, (), "bytes", "Their size on the disk.", "A shorter retention."),
    Metric(
        "retention_files",
        _G,
        (),
        "files",
        "Number of their files.",
        "More than some dozens: compaction fails, and the log has the reason.",
    ),
    Metric(
        "canary_windows_compared",
        _C,
        (),
        "windows",
        "Windows that a canary and the running revision have both closed; absent without a canary.",
    ),
    Metric(
        "canary_windows_different",
        _C,
        (),
        "windows",
        "Those of them that differ.",
        "`streamer canary ID` shows the fields that differ.",
    ),
    Metric(
        "canary_micro_batches_behind",
        _G,
        (),
        "micro-batches",
        "Distance from the canary to the running revision; absent without a canary.",
        "The machine is too small for both: the canary is dropped when it waits too long.",
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
        "Duration of a micro-batch, from its start to its delivery.",
        "Compare processor_latency_ns and output_latency_ns; a large backlog makes large "
        "micro-batches.",
    ),
    Metric(
        "batch_failed",
        _C,
        (),
        "micro-batches",
        "Micro-batches that failed and were retried.",
        "The log has the component and the reason. After five failures in a row the stream stops.",
    ),
    Metric(
        "micro_batch",
        _G,
        (),
        "number",
        "Number of the newest micro-batch; -1 before the first.",
    ),
    Metric(
        "backlog",
        _G,
        (),
        "messages",
        "Waiting messages at the last poll of the input, including the current micro-batch. "
        "For inputs other than Kafka, at most the size of a micro-batch. Absent while no "
        "broker answers.",
        "If it grows: more cores, fewer processors, or a faster output.",
    ),
    Metric(
        "batch_in_hand_seconds",
        _G,
        (),
        "seconds",
        "Time since the start of the current micro-batch; 0 between two.",
        "If it grows without end, /ready has the reason.",
    ),
    Metric(
        "last_delivery_timestamp_seconds",
        _G,
        (),
        "Unix seconds",
        "Time of the newest delivery; absent before the first of a start.",
    ),
    Metric("stream_running", _G, (), "0 or 1", "1 if the stream runs."),
    Metric(
        "stream_ready",
        _G,
        (),
        "0 or 1",
        "1 if messages flow, as in /ready: all inputs and outputs are connected, and the "
        "stream neither stops nor drains its windows.",
        "input_connected and output_connected show which one is not; /ready has the reason.",
    ),
    Metric(
        "checkpoint_bytes",
        _G,
        (),
        "bytes",
        "Size of the checkpoint on this machine, including spools and results; measured at "
        "most once a minute. Absent if the checkpoint is elsewhere.",
        "Compare state_bytes and retention_bytes; the rest is in spools.",
    ),
    Metric(
        "checkpoint_free_bytes",
        _G,
        (),
        "bytes",
        "Free space on the disk of the checkpoint.",
        "Free space before it is 0: then nothing is delivered.",
    ),
    Metric(
        "stream_state",
        _G,
        ("state",),
        "0 or 1",
        "Of a stream of the service, 1 for the state that it is in: `starting`, `running`, "
        "`restarting`, `waiting`, `paused`, `ended`, `failed` or `stopped`.",
        "failed: /streams has the reason; fix it, then run `streamer resume`.",
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
        "/ready has the failing component, the number of attempts and the time of the next one.",
    ),
    Metric(
        "stream_restarts",
        _C,
        (),
        "times",
        "Restarts by the service after a failure.",
        "The log has the reason.",
    ),
    Metric("stream_revision", _G, (), "number", "Number of the deployed revision."),
    Metric(
        "stream_uptime_seconds", _G, (), "seconds", "Time since its start; 0 if it does not run."
    ),
)
