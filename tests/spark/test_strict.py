"""Rejected messages on a real Spark: all others go on, and they come again once they can."""

import json

import pytest

pytestmark = pytest.mark.spark

CONFIG = """
error_handling: {{ strict: true }}
input: {{ file: {{ paths: ["{source}"] }} }}
pipeline:
  processors:
    - mapping: |
        root = this
        root.there = if this.n % 3 == 0 {{ file(path: "{there}", no_cache: true).string() }}
output: {{ file: {{ path: "{target}" }} }}
"""


@pytest.mark.smoke
def test_a_message_that_fails_is_written_once_it_does_not_and_keeps_nobody_waiting(
    run_stream, tmp_path
):
    source, there, target = (tmp_path / name for name in ("in", "there", "out"))
    source.write_text("".join(json.dumps({"n": n}) + "\n" for n in range(30)))

    def watch(stream) -> None:
        if stream.run.rejections.messages and target.exists() and not there.exists():
            # At once: a worker may look at any moment.
            draft = there.with_name("draft")
            draft.write_text("yes")
            draft.replace(there)

    ran = run_stream(CONFIG.format(source=source, there=there, target=target), watch=watch)
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert [line["n"] for line in lines[:20]] == [n for n in range(30) if n % 3]
    assert sorted(line["n"] for line in lines[20:]) == [n for n in range(30) if n % 3 == 0]
    assert all(line["there"] == "yes" for line in lines[20:])
    [text] = ran.said("A message was rejected (kept and sent again by itself)")
    assert "by mapping at pipeline.processors.0" in text

    def counted(name: str, **labels: str) -> int:
        return ran.counts[name, tuple(sorted({"label": "", **labels}.items()))]

    assert counted("output_rejected", path="root.output", reason="config") == 10
    assert counted("output_resent", path="root.output", reason="config") >= 10
    assert counted("output_sent", path="root.output") == 30
