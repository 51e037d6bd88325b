"""Caches and rate limits in a running stream: what outlives tasks, and what workers share."""

import json

import pytest

pytestmark = pytest.mark.spark

CONFIG = """
input: {{file: {{paths: ["{directory}/*.jsonl"]}}}}
pipeline:
  processors:
    - dedupe: {{cache: seen, key: "${{! this.id }}"}}
    - rate_limit: {{resource: plenty}}
    - workflow:
        branches:
          known:
            processors:
              - cached:
                  cache: known
                  key: all
                  processors: [{{mapping: root.by = uuid_v4()}}]
            result_map: root.by = this.by
output: {{stdout: {{}}}}
cache_resources:
  - {{label: seen, memory: {{}}}}
  - {{label: known, ttlru: {{}}}}
rate_limit_resources:
  - {{label: plenty, local: {{count: 100000}}}}
"""


def test_workers_drop_what_any_of_them_has_seen(run_stream, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for number in range(4):
        lines = [json.dumps({"id": one}) for one in range(number * 100, number * 100 + 500)]
        (source / f"{number}.jsonl").write_text("\n".join(lines) + "\n")
    ran = run_stream(CONFIG.format(directory=source))
    made = [json.loads(line) for line in ran.lines]
    assert sorted(one["id"] for one in made) == list(range(800))
    assert all(one["meta"]["workflow"] == {"succeeded": ["known"]} for one in made)
    # Two workers may both have found nothing at first; no later one has.
    assert len({one["by"] for one in made}) <= 2
    counts = {}
    for (name, labels), count in ran.counts.items():
        told = dict(labels)
        counts[name, told.get("operation"), told.get("label")] = count
    assert counts["cache_success", "add", "seen"] == 800
    assert counts["cache_duplicate", "add", "seen"] == 1_200
    assert counts["rate_limit_checked", None, "plenty"] == 800
