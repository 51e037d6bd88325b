"""What the console draws a stream by: its graph, its figures, its windows, samples of messages."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from streamer.cli.remote_status import describe_stream
from streamer.core.durations import SECOND
from streamer.core.message import Message
from streamer.engine.report.failed_messages import FailureSampler
from streamer.engine.report.stream_metrics import Snapshot
from streamer.service.monitoring.stream_view import StreamState
from tests.service.api.asking import Asking, asking
from tests.service.console.showing import ORDERS, files, stage
from tests.service.fleet.pretending import Stage

CHECK = "root.pipeline.processors.0"
SECRET = """
input: { label: here, generate: { mapping: 'root = "x"' } }
output:
  http_client:
    url: http://ada:url-password@localhost:1/
    basic_auth: { enabled: true, username: ada, password: very-secret-word }
"""


@pytest.fixture
def shown(tmp_path: Path) -> object:
    with asking(tmp_path / "state", files=files(tmp_path), stage=stage()) as server:
        server.service.wait_for("lights", "running")
        server.service.wait_for("orders", "running")
        yield server


def test_the_list_says_what_came_what_went_and_what_failed(shown: Asking) -> None:
    found = shown.ask("GET", "/streams").json()
    orders = found["orders"]
    assert orders["messages"] > orders["sent"] > orders["errors"] > 0
    assert orders["event_time_lag"] == 1.4
    assert orders["backlog"] is None and orders["kafka_lag"] is None


def test_the_graph_has_the_lines_of_the_components(shown: Asking) -> None:
    lines = shown.ask("GET", "/streams/orders/graph").json()["lines"]
    text = ORDERS.splitlines()
    assert "switch:" in text[lines["root.pipeline.processors.1"] - 1]
    nested = "root.pipeline.processors.1.switch.0.processors.0"
    assert "{ label: say" in text[lines[nested] - 1]
    assert "generate:" in text[lines["root.input"] - 1]


@pytest.mark.parametrize("metrics", ["none: {}", "json_api: {}"])
def test_figures_do_not_hang_on_the_metrics_that_others_are_told(
    tmp_path: Path, metrics: str
) -> None:
    sections = f"metrics: {{ {metrics}, mapping: root = deleted() }}\n"
    with asking(tmp_path, stage=stage(), sections=sections) as server:
        assert server.ask("POST", "/streams/orders", SECRET).status_code == 200
        assert server.ask("GET", "/streams").json()["orders"]["sent"] > 0
        [first, *_] = server.ask("GET", "/streams/orders/components").json()["components"]
        assert first["path"] == "root.input" and first["received"] > 0


def test_an_output_that_has_others_inside_counts_once(tmp_path: Path) -> None:
    counts = {
        ("output_sent", (("label", ""), ("path", "root.output"))): 10,
        ("output_sent", (("label", "a"), ("path", "root.output.broker.outputs.0"))): 10,
        ("output_sent", (("label", "b"), ("path", "root.output.broker.outputs.1"))): 10,
    }
    said = Stage(now=lambda *_: StreamState(Snapshot(messages=10), counts))
    with asking(tmp_path, files=files(tmp_path), stage=said) as server:
        server.service.wait_for("orders", "running")
        assert server.ask("GET", "/streams").json()["orders"]["sent"] == 10
        del counts["output_sent", (("label", ""), ("path", "root.output"))]
        assert server.ask("GET", "/streams").json()["orders"]["sent"] == 20


def test_the_graph_has_the_places_that_figures_are_counted_under(shown: Asking) -> None:
    graph = shown.ask("GET", "/streams/orders/graph").json()
    counted = shown.ask("GET", "/streams/orders/components").json()
    assert graph["revision"] == counted["revision"] == 1

    def paths(nodes: list[dict[str, object]]) -> set[object]:
        found: set[object] = set()
        for node in nodes:
            found.add(node["path"])
            for branch in node["branches"]:  # type: ignore[attr-defined]
                found |= paths(branch["nodes"])
        return found

    nodes = [node for one in graph["stages"] for node in one["nodes"]]
    assert {one["path"] for one in counted["components"]} <= paths(nodes)
    [check] = [one for one in counted["components"] if one["label"] == "check"]
    assert check["received"] > check["error"] > 0


def test_the_graph_shows_no_secrets(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        server.ask("POST", "/streams/s", SECRET)
        text = server.ask("GET", "/streams/s/graph").text
        assert "http_client" in text
        assert "very-secret-word" not in text and "url-password" not in text


def test_windows_that_closed_and_what_was_dropped_are_told(shown: Asking) -> None:
    found = shown.ask("GET", "/streams/lights/windows").json()
    assert found["windows"] and found["closed"] and found["dropped"] and found["now"]
    assert found["closed"][-1]["end"] < found["windows"][-1]["end"]
    assert {one["reason"] for one in found["dropped"]} == {"late"}
    none = shown.ask("GET", "/streams/orders/windows").json()
    assert none["windows"] == [] and "kind" not in none


def test_samples_are_taken_for_a_while_and_shown_without_secrets(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        server.ask("POST", "/streams/s", SECRET)
        assert not server.ask("GET", "/streams/s/tap").json()["open"]
        assert server.ask("POST", "/streams/s/tap?seconds=5").json() == {"open": True}
        run = server.service.manager.registry.get("s").run
        assert run is not None and (tap := run.tap()) is not None and tap.per_task > 0
        content = "a very-secret-word and more"
        one = {"after": [[{"content": content, "metadata": {"k": content}}]], "failed": False}
        tap.record(orjson.dumps([["here", "root.input", [one]]]), 0)
        found = server.ask("GET", "/streams/s/tap?node=root.input")
        [sample] = found.json()["samples"]
        assert "very-secret-word" not in found.text and "SECRET_SCRUBBED" in found.text
        number = sample["number"]
        assert server.ask("GET", f"/streams/s/tap?after={number}").json()["samples"] == []
        assert server.ask("GET", "/streams/s/tap?after=x").status_code == 400
        lines = server.ask("GET", "/streams/s/logs").json()
        assert [one for one in lines if one["msg"] == "Messages are sampled for the API"]


def test_pages_of_others_may_not_have_samples_taken(shown: Asking) -> None:
    answer = shown.ask("POST", "/streams/orders/tap", Origin="https://evil.example")
    assert answer.status_code == 403
    assert not shown.ask("GET", "/streams/orders/tap").json()["open"]


def test_the_calls_of_the_page_pass_the_guard(shown: Asking) -> None:
    headers = {"Origin": shown.url, "Sec_Fetch_Site": "same-origin"}
    assert shown.ask("POST", "/streams/orders/tap", **headers).status_code == 200
    assert shown.ask("POST", "/streams/orders/pause", **headers).status_code == 200


def test_expectations_are_counted_by_name_and_their_samples_have_no_secrets(
    tmp_path: Path,
) -> None:
    place = (("label", "it"), ("path", CHECK))
    counts = {
        ("expectation_passed_total", (("expectation", "x"), *place)): 90,
        ("expectation_failed_total", (("expectation", "x"), *place)): 10,
        ("expectation_dropped_total", (("expectation", "x"), *place)): 7,
        ("expectation_passed_total", (("expectation", "fine"), *place)): 5,
    }
    said = Stage(now=lambda *_: StreamState(Snapshot(messages=20), counts))
    config = SECRET + "pipeline: { processors: [ { label: it, mapping: root = this } ] }\n"
    with asking(tmp_path, stage=said) as server:
        assert server.ask("POST", "/streams/a", config).status_code == 200
        sampler = FailureSampler()
        for name in ("x", "y"):
            labels = {"expectation": name, "label": "it", "path": CHECK}
            message = Message(f"very-secret-word {name}".encode())
            sampler.add("expectation_dropped", labels, "it is very-secret-word", [message])
        body = sampler.encode_samples()
        assert body is not None
        view = server.service.manager.registry.get("a").view
        view.failed_messages.record(4, 1_700_000_000 * SECOND, [body])
        path = "/streams/a/failed-messages"
        answer = server.ask("GET", f"{path}?expectation=x")
        assert "very-secret-word" not in answer.text
        [sample] = answer.json()["messages"]
        assert (sample["expectation"], sample["fate"]) == ("x", "expectation_dropped")
        assert len(server.ask("GET", path).json()["messages"]) == 2
        fine, x = answer.json()["expectations"]
        assert (fine["passed"], fine["failed"], fine["dropped"]) == (5, 0, 0)
        assert x == {
            **{"expectation": "x", "label": "it", "path": CHECK},
            **{"passed": 90, "failed": 10, "dropped": 7},
        }
        status = server.ask("GET", "/streams").json()["a"]
        assert server.ask("GET", "/streams/a/progress").json()["expectations"] == [fine, x]
        assert [*describe_stream(status)] == [
            "expectation x (it) failed 10 of 100 times, 7 messages dropped"
        ]


def test_failed_messages_are_shown_without_secrets_and_their_readers_are_logged(
    tmp_path: Path,
) -> None:
    failures = {("processor_error", (("label", "it"), ("path", CHECK))): 12}
    said = Stage(now=lambda *_: StreamState(Snapshot(messages=20), failures))
    config = SECRET + "pipeline: { processors: [ { label: it, mapping: root = this } ] }\n"
    with asking(tmp_path, stage=said) as server:
        assert server.ask("POST", "/streams/a", config).status_code == 200
        managed = server.service.manager.registry.get("a")
        sampler = FailureSampler()
        meta = {"kafka_topic": "t", "kafka_partition": 3, "kafka_offset": 41, "k": "url-password"}
        for number in range(2):
            message = Message(b"very-secret-word %d" % number, meta)
            sampler.add("marked", {"label": "it", "path": CHECK}, "very-secret-word!", [message])
        body = sampler.encode_samples()
        assert body is not None
        managed.view.failed_messages.record(4, 1_700_000_000 * SECOND, [body])
        path = "/streams/a/failed-messages"
        answer = server.ask("GET", path)
        assert "very-secret-word" not in answer.text and "url-password" not in answer.text
        first, second = answer.json()["messages"]
        assert first["content"].endswith(" 1") and second["number"] < first["number"]
        assert (first["time"], first["micro_batch"]) == ("2023-11-14T22:13:20Z", 4)
        assert first["source"] == {"topic": "t", "partition": "3", "offset": "41"}
        [count] = answer.json()["components"]
        assert (count["path"], count["error"]) == (CHECK, 12)
        assert len(server.ask("GET", f"{path}?limit=1").json()["messages"]) == 1
        assert server.ask("GET", f"{path}?node=root.output").json()["messages"] == []
        assert server.ask("GET", f"{path}?limit=-1").status_code == 400
        assert server.ask("GET", "/streams/b/failed-messages").status_code == 404
        lines = [line.text for line in managed.log_tail.lines_after(0)]
        assert lines.count("Failed messages are read by the API") == 1
        # A stream that starts again still shows what has failed before.
        assert server.ask("POST", "/streams/a/pause").status_code == 200
        assert server.ask("POST", "/streams/a/resume").status_code == 200
        assert len(server.ask("GET", path).json()["messages"]) == 2
