"""What the JVM says of itself, for metrics."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.components.metrics.metric_names import METRICS
from streamer.service.monitoring.process_metrics import process_samples
from streamer.spark.session.runtime_metrics import read_runtime_facts, read_runtime_metrics

pytestmark = pytest.mark.spark


def test_the_jvm_tells_its_heap_its_threads_and_its_executors(session: Any) -> None:
    found = read_runtime_metrics()
    assert 0 < found["jvm_heap_used_bytes"] <= found["jvm_heap_max_bytes"]
    assert found["jvm_threads"] > 10
    before = found["jvm_gc_seconds_total"]
    session._jvm.java.lang.System.gc()
    assert read_runtime_metrics()["jvm_gc_seconds_total"] > before
    # On this machine the driver is its own executor.
    assert (found["spark_executors"], found["spark_executors_lost_total"]) == (0, 0)
    samples = {sample.name: sample for sample in process_samples()}
    assert set(found) <= set(samples) <= set(METRICS)
    assert samples["streamer_build_info"].labels["spark"] == session.version
    facts = read_runtime_facts()
    assert facts["java"].split(".")[0].isdecimal() and facts["master"].startswith("local")
    assert 0 < facts["heap_used"] <= facts["heap_max"]
    session.range(3).count()
    [driver] = read_runtime_facts()["executors"]
    assert driver["name"] == "driver" and driver["cores"] >= 1 and driver["task_seconds"] > 0
