"""The streams with several buffers of which checkpoints are kept."""

from __future__ import annotations

from typing import Final

_STATISTICS: Final = """
                "avg": json("n").from_all().avg(), "median": json("n").from_all().median(),
                "p95": json("n").from_all().percentile_approx(0.95),
                "stddev": json("n").from_all().stddev_pop(),
                "distinct": json("n").from_all().approx_count_distinct(),
                "least": json().from_all().min_by(m -> m.n % 7),
                "first": json("n").from_all().slice(0, 2), "last": json("n").from_all().slice(-2)
"""

CHAINED_BUFFERS: Final = f"""
buffers:
  - label: filled
    tumbling_window:
      timestamp_mapping: root = this.at
      key_mapping: root = this.k
      filter: this.n % 40 < 25
      size: 500ms
      allowed_lateness: 1s
      clock_scope: input
      source_idle_timeout: 0s
      empty_windows: {{ emit: keys_seen, keys: [k1, k8], fill: previous, for: 4s }}
      end_of_input: END
    pipeline:
      processors:
        - mapping: |
            root = if batch_index() == 0 {{
              {{
                "k": @window_key, "n": json("n").from_all().max().catch(0), "count": batch_size(),
                "emit": @window_emit
              }}
            }} else {{ deleted() }}
  - label: behind
    from: filled
    hopping_window:
      key_mapping: root = this.k
      size: 6s
      every: 3s
      end_of_input: END
    pipeline:
      processors:
        - mapping: |
            root = if batch_index() == 0 {{
              {{
                "buffer": "behind", "k": this.k, "to": @window_end_timestamp,
                "count": json("count").from_all().sum(),
                "emits": json("emit").from_all().count_by(e -> e == "empty"),
                {_STATISTICS.strip()}
              }}
            }} else {{ deleted() }}
  - label: visits
    session_window:
      timestamp_mapping: root = this.at
      key_mapping: root = this.k
      filter: this.n % 30 < 25
      gap: 1s
      gap_mapping: root = this.gap * 0.2
      expected_keys: [k1, k9]
      allowed_lateness: 1s
      clock_scope: partition
      source_idle_timeout: 0s
      end_of_input: END
    pipeline:
      processors:
        - mapping: |
            root = if batch_index() == 0 {{
              {{
                "buffer": "visits", "k": @window_key, "n": json("n").from_all().sort(),
                "to": @window_end_timestamp
              }}
            }} else {{ deleted() }}
  - label: pairs
    window_join:
      left: left
      right: right
      timestamp_mapping: root = this.at
      key_mapping: 'root = if this.side == "left" {{ this.n }} else {{ this.n * 2 }}'
      within: {{FAR}}
      type: outer
      clock: system
      idle_timeout: 1h
      end_of_input: END
    pipeline:
      processors:
        - mapping: 'root = {{ "buffer": "pairs", "n": [this.left.n, this.right.n] }}'
"""
"""A window behind one that is filled up, sessions with gaps of their own, a join by the wall."""

ENDLESS_BUFFERS: Final = f"""
buffers:
  - label: totals
    global_window: {{ key_mapping: root = this.k, emit: each }}
    pipeline:
      processors:
        - mapping: |
            root = if batch_index() == 0 {{
              {{
                "buffer": "totals", "k": this.k, "n": json("n").from(-1), "count": batch_size(),
                {_STATISTICS.strip()}
              }}
            }} else {{ deleted() }}
  - label: latest
    global_window:
      key_mapping: root = this.k
      latest_by: root = this.n % 7
      delete_when: this.n % 11 == 0
      emit: each
    pipeline:
      processors:
        - mapping: |
            root = if batch_index() == 0 {{
              {{ "buffer": "latest", "k": this.k, "n": json("n").from_all(), "emit": @window_emit }}
            }} else {{ deleted() }}
  - label: sorted
    keyed_state:
      key_mapping: root = this.k
      timestamp_mapping: root = this.at
      allowed_lateness: 1s
      order: event_time
      end_of_input: END
    pipeline:
      processors:
        - label: before
          mapping: |
            root = this
            root.before = lag(this.n)
            root.level = table("levels").get(this.k).level
  - label: marked
    from: sorted
    tumbling_window:
      timestamp_mapping: root = this.at
      key_mapping: root = this.k
      size: 3s
      order: event_time
      emit: each
      emit_also: [close]
      end_of_input: END
    pipeline:
      processors:
        - mapping: |
            root = if batch_index() == 0 {{
              {{
                "buffer": "marked", "k": this.k, "n": json("n").from_all(), "emit": @window_emit,
                "before": json("before").from_all(), "level": this.level
              }}
            }} else {{ deleted() }}
table_resources:
  - label: levels
    inline: {{ key: k, rows: [{{ k: k0, level: 1 }}, {{ k: k1, level: 2 }}] }}
"""
"""Windows without end, and windows behind messages that are sorted and looked up."""

_ROW: Final = """|
            root = if batch_index() == 0 {
              {
                "k": this.k, "n": json("n").from_all(), "emit": @window_emit,
                "offsets": [@window_start_offset.or(0), @window_end_offset.or(0)]
              }
            } else { deleted() }"""

RESULT_BUFFERS: Final = f"""
buffers:
  - label: visits
    session_window:
      timestamp_mapping: root = this.at
      key_mapping: root = this.k
      filter: this.n % 30 < 25
      gap: 600ms
      allowed_lateness: 1s
      emit: each
      emit_also: [retractions]
      end_of_input: END
    pipeline:
      processors:
        - mapping: |
            root = if batch_index() == 0 {{
              {{
                "buffer": "visits", "k": @window_key, "from": @window_start_timestamp,
                "to": @window_end_timestamp, "gone": @window_retracted.or(false),
                "sum": json("n").from_all().sum().catch(0)
              }}
            }} else {{ deleted() }}
  - label: uneven
    tumbling_window:
      timestamp_mapping: root = this.at
      key_mapping: root = this.k
      size: 4s
      allowed_lateness: 1s
      emit: each
      emit_also: [retractions]
      having: batch_size() % 3 != 0
      end_of_input: END
    pipeline:
      processors:
        - mapping: |
            root = if batch_index() == 0 {{
              {{
                "buffer": "uneven", "k": @window_key, "to": @window_end_timestamp,
                "n": if @window_retracted.or(false) {{ null }} else {{ json("n").from_all() }}
              }}
            }} else {{ deleted() }}
  - label: started
    count_window:
      {{ key_mapping: root = this.k, count: 12, every: 5, align: start, end_of_input: END }}
    pipeline:
      processors:
        - mapping: {_ROW}
  - label: trailing
    count_window:
      {{ key_mapping: root = this.k, count: 6, every: 9, min_count: 1, end_of_input: END }}
    pipeline:
      processors:
        - mapping: {_ROW}
  - label: half_open
    sliding_window:
      timestamp_mapping: root = this.at
      key_mapping: root = this.k
      size: 1s
      delay: 500ms
      mode: event
      closed: right
      emit_when: this.n % 7 == 0
      allowed_lateness: 1s
      end_of_input: END
    pipeline:
      processors:
        - mapping: {_ROW}
"""
"""Results that are taken back, count windows that begin and end otherwise, half-open windows."""
