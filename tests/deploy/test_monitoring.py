"""The dashboard and the alerts: they name metrics that there are, and Prometheus takes them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml

from streamer.components.metrics.docs_page import format_tables
from streamer.components.metrics.metric import MetricKind
from streamer.components.metrics.metric_names import METRIC_GROUPS, METRICS
from streamer.config import parse_config
from streamer.engine.report.stream_metrics import Snapshot, StreamMetrics
from streamer.service.monitoring.exposition import make_fleet_exposition
from streamer.service.monitoring.metric_samples import Sample
from streamer.service.monitoring.stream_view import ManagedState, StreamState, StreamView
from tests.servers import installed

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana" / "streamer.json").read_text())
RULES = DEPLOY / "prometheus" / "alerts.yaml"
ALERTS = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
PAGE = (ROOT / "streamer" / "docs" / "metrics.md").read_text()
OF_HISTOGRAMS = ("_bucket", "_sum", "_count")
WORDS = {
    *("sum", "max", "min", "by", "on", "and", "or", "unless", "group_left", "vector"),
    *("rate", "increase", "changes", "deriv", "predict_linear", "histogram_quantile"),
    *("instance", "stream", "le", "topic", "reason", "path", "expectation", "time", "offset"),
}
CONFIG = """
input: { label: in, generate: { mapping: root = 1 } }
buffer: { system_window: { size: 10s, retention: 1h } }
pipeline: { processors: [ { label: p, mapping: root = this } ] }
output: { label: out, drop: {} }
"""


def names_in(query: str) -> set[str]:
    """Return the names of metrics in a query of PromQL."""
    named = {
        name for names in re.findall(r'__name__=~"([^"]*)"', query) for name in names.split("|")
    }
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\"[^\"]*\"", " ", query)
    return named | (set(re.findall(r"(?<![\w.])[a-zA-Z_]\w*", bare)) - WORDS)


def series() -> set[str]:
    """Return the names of all series that the catalogue stands for."""
    found = set()
    for name, metric in METRICS.items():
        found.add(name)
        if metric.kind in (MetricKind.HISTOGRAM, MetricKind.TIMING):
            found |= {f"{name}{end}" for end in OF_HISTOGRAMS}
    return found


def exposed() -> str:
    """Return what a stream of the service exposes, for Prometheus."""
    meters = StreamMetrics()
    for name in ("window_close_delay_seconds", "batch_duration_seconds"):
        meters.time(name, {}, 10**9)
    place = {"label": "in", "path": "root.input"}
    for name, metric in METRICS.items():
        if metric.kind == MetricKind.COUNTER and name.startswith(
            ("input_", "output_commit", "expectation_", "window_d", "kafka_", "redpanda_")
        ):
            meters.count(name, {label: place.get(label, "x") for label in metric.labels}, 1)
        if name.endswith("_lag"):
            meters.set(name, {**place, "topic": "t", "partition": "0"}, 3)
    meters.set("input_oldest_unread_timestamp_seconds", place, 5)
    meters.set("event_time_lag_seconds", {}, 1)
    view = StreamView(parse_config(CONFIG), lambda: ManagedState("running", 0, 1, 2.0))
    held = {"retention_rows": 1, "retention_bytes": 2, "retention_files": 1, "backlog": 3}
    held |= {"checkpoint_bytes": 5, "checkpoint_free_bytes": 6}
    shot = Snapshot(batch=1, closed_until=7)
    now = StreamState(shot, meters.counts, "", meters.times(), lambda: held, last_delivery=8.0)
    view.set_running(lambda: now)
    serve = make_fleet_exposition(view.config.metrics, lambda: {"cars": view})
    assert serve is not None
    # Those of the JVM are there while Spark is up.
    process = [
        Sample(metric.name, dict.fromkeys(metric.labels, "x"), 1, metric)
        for metric in METRIC_GROUPS["The process"]
    ]
    with patch("streamer.service.monitoring.exposition.process_samples", lambda: process):
        return serve()[0].decode()


def live() -> dict[str, set[str]]:
    """Return the labels of each series that a stream of the service exposes."""
    found: dict[str, set[str]] = {}
    for line in exposed().splitlines():
        match = re.match(r"(\w+)(?:\{(.*)\})? ", line)
        if match:
            labels = set(re.findall(r"(\w+)=\"", match[2] or ""))
            found.setdefault(match[1], set()).update(labels)
    return found


def queries() -> list[Any]:
    found = [
        pytest.param(target["expr"], id=f"{panel['title']}-{target['refId']}")
        for panel in DASHBOARD["panels"]
        for target in panel.get("targets", ())
    ]
    return found + [pytest.param(rule["expr"], id=rule["alert"]) for rule in ALERTS]


@pytest.mark.parametrize("query", queries())
def test_a_query_names_metrics_that_there_are(query: str) -> None:
    names, found = names_in(query), live()
    assert names and names <= series()
    assert names <= set(found)
    for grouped in re.findall(r"(?:by|on) \(([^)]*)\)", query):
        known = {label for name in names for label in found[name]} | {"instance"}
        assert {label.strip() for label in grouped.split(",")} <= known


def test_a_query_of_a_metric_that_is_not_there_is_found_out() -> None:
    assert names_in('sum by (stream) (rate(nothing{a="b"}[5m])) / window_open') == {
        "nothing",
        "window_open",
    }


def test_every_exposed_metric_is_in_the_catalogue() -> None:
    assert set(live()) <= series()


def test_the_pages_have_the_tables_of_the_catalogue_and_a_section_for_each_alert() -> None:
    table_page = (ROOT / "streamer" / "docs" / "metrics-list.md").read_text()
    assert format_tables() in table_page, (
        "stale: write streamer.components.metrics.docs_page.format_tables() into the page"
    )
    alerts = (ROOT / "streamer" / "docs" / "alerts.md").read_text()
    sections = {line[4:].strip().lower() for line in alerts.splitlines() if line.startswith("### ")}
    for rule in ALERTS:
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert page == "alerts.md" and anchor in sections, rule["alert"]


def test_every_alert_is_tried() -> None:
    tried = yaml.safe_load((DEPLOY / "prometheus" / "alerts.test.yaml").read_text())["tests"]
    fired = {
        case["alertname"]
        for test in tried
        for case in test["alert_rule_test"]
        if case.get("exp_alerts")
    }
    assert fired == {rule["alert"] for rule in ALERTS}


def test_panels_do_not_overlap_and_have_units() -> None:
    cells: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        mine = {
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        }
        assert not mine & cells, panel["title"]
        cells |= mine
        assert panel["type"] == "row" or panel["fieldConfig"]["defaults"]["unit"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", "--lint-fatal", "alerts.yaml"),
        ("check", "config", "--lint-fatal", "prometheus.yaml"),
        ("test", "rules", "alerts.test.yaml"),
    ],
    ids=["rules", "config", "tests"],
)
def test_prometheus_takes_them(arguments: tuple[str, ...]) -> None:
    promtool = installed("prometheus", "promtool")
    ran = subprocess.run(
        [promtool, *arguments], cwd=DEPLOY / "prometheus", capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.slow
def test_promtool_objects_to_the_names_that_the_page_gives_a_reason_for_and_to_no_others() -> None:
    promtool = installed("prometheus", "promtool")
    ran = subprocess.run(
        [promtool, "check", "metrics"], input=exposed(), capture_output=True, text=True
    )
    said = dict(line.split(" ", 1) for line in (ran.stdout + ran.stderr).splitlines() if line)
    [reasons] = re.findall(r"^Counters have no `_total`.*?\n\n", PAGE, re.DOTALL | re.MULTILINE)
    kept = set(re.findall(r"`(\w+)`", reasons.partition("It also complains")[2]))
    of_benthos = re.compile(
        "(input|buffer|processor|output)_(batch_)?(received|sent|error|latency_ns)|"
        "(input|output)_connection_(up|failed|lost)"
    )
    others = {name for name in said if not of_benthos.fullmatch(name)}
    assert others and others <= kept, sorted(others - kept)
