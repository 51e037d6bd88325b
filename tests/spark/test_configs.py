"""Every config of `configs/` runs as it is and gives what it promises."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from streamer.engine.report.stream_metrics import Snapshot
from tests.servers.http import http_server

pytestmark = pytest.mark.spark

CONFIGS = Path(__file__).parents[2] / "configs"
FIELDS = {
    "traffic_light": {"traffic_light", "created_at", "total_cars", "passengers"},
    "sliding": {"window_end", "cars", "lights"},
    "event_time_late": {"sensor", "window_end", "readings", "mean_celsius"},
}


@pytest.mark.parametrize(
    "name",
    [
        "event_time_late",
        "sliding",
        pytest.param("traffic_light", marks=pytest.mark.smoke),
    ],
)
def test_a_config_with_generate_emits_windows(run_stream, name):
    def enough(snapshot: Snapshot) -> bool:
        late = snapshot.dropped.get("late", 0) > 0 or name != "event_time_late"
        return emitted(snapshot) and late

    def emitted(snapshot: Snapshot) -> bool:
        return snapshot.messages > snapshot.held + sum(snapshot.dropped.values())

    ran = run_stream((CONFIGS / f"{name}.yaml").read_text(), until=enough)
    results = [json.loads(line) for line in ran.lines]
    assert results
    for result in results:
        assert set(result) >= FIELDS[name]
    if name == "event_time_late":
        assert ran.said("late"), "dropped readings are named in the log"


@pytest.mark.smoke
def test_the_hourly_original_counts_what_is_piped_in(run_stream):
    text = (CONFIGS / "traffic_light_hourly.yaml").read_text()
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    cars = [
        {
            "traffic_light": "cbf2eafc-806e-4067-9211-97be7e42cee3",
            "created_at": now,
            "registration_plate": plate,
            "passengers": passengers,
        }
        for plate, passengers in (("AB1C DEF", 3), ("AB1C DEF", 1), ("XY9Z ABC", 2))
    ]
    # A partial window at the end of the pipe, so that the test need not wait for the hour.
    text = text.replace("size: 1h", "size: 1h\n    end_of_input: flush")
    ran = run_stream(text, stdin=b"".join(json.dumps(car).encode() + b"\n" for car in cars))
    (result,) = (json.loads(line) for line in ran.lines)
    assert result["total_cars"] == 2 and result["passengers"] == 6
    assert result["traffic_light"] == cars[0]["traffic_light"]
    assert result["created_at"].endswith(":00:00Z") and result["created_at"] >= now


@pytest.mark.smoke
def test_alerts_of_a_window_are_posted_as_it_closes(run_stream, monkeypatch):
    text = (CONFIGS / "recipes" / "tenzir_alerts.yaml").read_text()
    failure = {"action": "login", "outcome": "failure", "user": "alice", "src_ip": "10.0.0.7"}
    times = ["10:00:10", "10:08:20", "10:30:00"]
    logins = [{**failure, "ts": f"2026-01-01T{time}Z"} for time in times]
    with http_server() as server:
        monkeypatch.setenv("ALERTS", f"{server.url}/security-alerts")
        monkeypatch.setenv("FAILURES", "2")
        run_stream(text, stdin=b"".join(json.dumps(one).encode() + b"\n" for one in logins))
        # The windows that begin at 09:59 and 10:00 hold the first two.
        alert = {"failures": 2, "user": "alice", "src_ip": "10.0.0.7"}
        assert [json.loads(body) for body in server.bodies] == [alert, alert]
        for asked in server.asked:
            assert (asked.method, asked.path) == ("POST", "/security-alerts")
            assert asked.headers["content-type"] == "application/json"
