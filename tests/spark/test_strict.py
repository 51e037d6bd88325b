"""`error_handling.strict` on a real Spark: what fails is tried again, and counts once."""

import json

import pytest

pytestmark = pytest.mark.spark

CONFIG = """
error_handling: {{ strict: true }}
input: {{ file: {{ paths: ["{source}"] }} }}
buffer:
  system_window: {{ timestamp_mapping: root = now(), size: 1h, end_of_input: flush }}
pipeline:
  processors:
    - group_by_value: {{ value: '${{! this.k }}' }}
    - mapping: |
        root = if batch_index() == 0 {{
          {{
            "k": this.k,
            "n": batch_size(),
            "there": file(path: "{there}", no_cache: true).string(),
          }}
        }} else {{ deleted() }}
output: {{ file: {{ path: "{target}" }} }}
"""


@pytest.mark.smoke
def test_a_window_that_fails_is_tried_again_until_it_does_not(run_stream, tmp_path):
    source, there, target = (tmp_path / name for name in ("in", "there", "out"))
    source.write_text("".join(json.dumps({"k": n % 3}) + "\n" for n in range(30)))

    def watch(stream) -> None:
        if stream.problem and not there.exists():
            # At once: a worker may look at any moment.
            draft = there.with_name("draft")
            draft.write_text("yes")
            draft.replace(there)

    ran = run_stream(CONFIG.format(source=source, there=there, target=target), watch=watch)
    lines = sorted(target.read_text().splitlines())
    assert [json.loads(line) for line in lines] == [
        {"k": k, "n": 10, "there": "yes"} for k in range(3)
    ]
    [*failures] = ran.said("The micro-batch failed: 3 messages have failed and must not be written")
    assert failures and "the first by mapping at pipeline.processors.1: failed" in failures[0]

    def counted(name: str, path: str) -> int:
        return ran.counts[name, (("label", ""), ("path", f"root.{path}"))]

    assert counted("output_rejected", "output") == 3 * len(failures)
    assert counted("input_connection_lost", "input") == len(failures)
    # Micro-batches that failed have left nothing else behind.
    assert counted("processor_received", "pipeline.processors.1") == 30
    assert counted("processor_sent", "pipeline.processors.1") == 3
    assert counted("output_sent", "output") == 3
    assert counted("buffer_received", "buffer") == counted("buffer_sent", "buffer") == 30
    assert ran.last.messages == 30
