"""Metrics that are sent to CloudWatch, with a simulated CloudWatch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import AwsError
from streamer.core.component_stats import bucket_of
from streamer.engine.report.latency import LatencySnapshot
from streamer.engine.report.stream_metrics import Snapshot
from streamer.service.monitoring.cloudwatch_push import CloudWatchExporter, make_data
from streamer.service.monitoring.metric_samples import Sample
from streamer.service.monitoring.metrics_export import export_metrics
from streamer.service.monitoring.sample_deltas import SampleDeltas
from tests.servers.aws import aws_server
from tests.service.monitoring.test_metrics_push import TIMES, Exported


def data_of(*samples: Sample, deltas: SampleDeltas, all_gauges: bool = False) -> list[Any]:
    return list(make_data(samples, deltas, has_all_gauges=all_gauges))


def test_counters_are_sent_as_what_they_have_grown_by() -> None:
    deltas = SampleDeltas()
    for value, grown in ((7, [7.0]), (7, []), (9, [2.0])):
        sample = Sample.create("input_received", {"label": "ä", "path": ""}, value)
        made = data_of(sample, deltas=deltas)
        assert [one["Value"] for one in made] == grown
        for one in made:
            assert one["Unit"] == "Count"
            assert one["Dimensions"] == [{"Name": "label", "Value": "?"}]


def test_gauges_are_sent_when_they_change_and_once_in_a_while() -> None:
    deltas = SampleDeltas()
    sample = Sample.create("backlog", {}, 3)
    assert [one["Value"] for one in data_of(sample, deltas=deltas)] == [3.0]
    assert data_of(sample, deltas=deltas) == []
    assert [one["Value"] for one in data_of(sample, deltas=deltas, all_gauges=True)] == [3.0]


def test_times_are_their_distribution() -> None:
    deltas = SampleDeltas()
    sample = Sample.create("processor_latency_ns", {}, TIMES)
    [made] = data_of(sample, deltas=deltas)
    assert made["Unit"] == "Microseconds" and made["Counts"] == [1.0, 2.0]
    assert made["Values"] == pytest.approx([2_000, 3_500], rel=0.05)
    assert data_of(sample, deltas=deltas) == []
    buckets = {bucket_of(2**n): 1 for n in range(200)}
    many = LatencySnapshot(len(buckets), 1, buckets)
    parts = data_of(Sample.create("processor_latency_ns", {}, many), deltas=SampleDeltas())
    assert sum(len(one["Values"]) for one in parts) == len(buckets)
    assert all(len(one["Values"]) <= 150 for one in parts)


@pytest.mark.slow
def test_metrics_are_sent_at_the_end() -> None:
    with aws_server() as aws:
        made = Exported(f"aws_cloudwatch: {{ namespace: mine, {aws.fields} }}")
        with export_metrics(made.view.config.metrics, lambda: {"": made.view}, made.log):
            pass
        found = aws.client("cloudwatch").list_metrics(Namespace="mine")["Metrics"]
        dimensions = [{"Name": "label", "Value": "in"}, {"Name": "path", "Value": "root.input"}]
        received = next(one for one in found if one["MetricName"] == "input_received")
        assert received["Dimensions"] == dimensions and made.lines == []


class _CloudWatch:
    """CloudWatch that does at first what it is told."""

    def __init__(self, *codes: str) -> None:
        self.codes = list(codes)
        self.names: list[str] = []

    def put_metric_data(self, Namespace: str, MetricData: Any) -> None:  # noqa: N803
        if self.codes:
            raise AwsError("no", self.codes.pop(0))
        self.names += [one["MetricName"] for one in MetricData]


def test_what_could_not_be_sent_is_sent_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    service = _CloudWatch("", "AccessDenied", "InvalidParameterValue")
    monkeypatch.setattr(AwsClient, "run", lambda self, work: work(service))
    made = Exported("aws_cloudwatch: { region: eu-west-1 }")
    exporter = made.exporter(CloudWatchExporter)
    exporter.export(False)
    exporter.export(False)
    assert service.names == [] and len(made.lines) == 1
    # It refuses one request for what is in it; that is left out, and what comes later is sent.
    exporter.export(False)
    assert service.names == []
    made.state = replace(made.state, snapshot=Snapshot(9))
    exporter.export(True)
    assert "input_received" in service.names
