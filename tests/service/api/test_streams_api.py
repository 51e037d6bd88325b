"""The API of many streams: Benthos's paths, bodies and codes, and ours beside them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from streamer.engine.report.batch_progress import BatchProgress
from streamer.engine.report.start_progress import StartPhase
from streamer.engine.report.stream_metrics import Snapshot
from streamer.service.console.pages import ConsolePages
from streamer.service.fleet.stream_ids import RESERVED_IDS
from streamer.service.monitoring.stream_view import StreamState
from tests.service.api.asking import asking
from tests.service.fleet.pretending import GENERATE, Stage, config_text

WINDOWS = "buffer: { system_window: { timestamp_mapping: root = now(), size: %s } }\n"


def test_streams_are_made_read_changed_and_removed_with_the_codes_of_benthos(
    tmp_path: Path,
) -> None:
    with asking(tmp_path) as server:
        ask = server.ask
        assert ask("GET", "/streams").json() == {}
        assert (ask("GET", "/streams/a").status_code, ask("GET", "/streams/a").text) == (
            404,
            "Stream not found\n",
        )
        made = ask("POST", "/streams/a", config_text("one"))
        assert made.status_code == 200
        again = ask("POST", "/streams/a", config_text("one"))
        assert (again.status_code, again.text) == (400, "Stream already exists\n")
        [(name, status)] = ask("GET", "/streams").json().items()
        assert name == "a" and status["active"] is True and status["uptime"] > 0
        assert status["uptime_str"].endswith("s") and status["state"] == "running"
        read = ask("GET", "/streams/a").json()
        assert read["config"]["pipeline"]["processors"] == [{"mapping": 'root = "one"'}]
        assert {"active", "uptime", "uptime_str", "config"} <= set(read)
        put = ask("PUT", "/streams/a", config_text("two"))
        assert put.json()["revision"] == 2
        assert put.json()["judgement"]["effect"] == "in place"
        patch = ask("PATCH", "/streams/a", {"pipeline": {"processors": [{"noop": {}}]}})
        assert patch.status_code == 200
        config = ask("GET", "/streams/a").json()["config"]
        assert config["pipeline"]["processors"] == [{"noop": {}}]
        assert "generate" in config["input"]
        assert ask("DELETE", "/streams/a?timeout=5s").status_code == 200
        assert server.stage.stopped[-1] == ("a", 5.0)
        for method in ("GET", "PUT", "PATCH", "DELETE"):
            body = config_text("x") if method in ("PUT", "PATCH") else None
            assert ask(method, "/streams/a", body).status_code == 404
        for method, path in (("HEAD", "/streams"), ("PUT", "/streams"), ("TRACE", "/streams/a")):
            assert ask(method, path).status_code == 400


def test_findings_are_a_list_and_what_does_not_start_is_a_bad_gateway(tmp_path: Path) -> None:
    with asking(tmp_path, stage=Stage(fails={"bad"})) as server:
        ask = server.ask
        wrong = ask("POST", "/streams/a", "inptu: {}\n" + GENERATE)
        assert (wrong.status_code, wrong.json()) == (
            400,
            {"lint_errors": ["(1,1) field inptu not recognised; did you mean input?"]},
        )
        assert ask("POST", "/streams/a?chilled=true", "inptu: {}\n" + GENERATE).status_code == 200
        assert ask("PUT", "/streams/a", "{").json()["lint_errors"]
        bad = ask("PUT", "/streams/a", config_text("bad"))
        assert bad.status_code == 502 and "it cannot be started" in bad.text
        assert ask("GET", "/streams/a").json()["active"] is True
        assert ask("POST", "/streams/b", config_text("bad")).status_code == 502
        assert ask("POST", "/streams/a.b", config_text("a")).status_code == 400
        assert set(ask("GET", "/streams").json()) == {"a"}


def test_a_set_of_streams_replaces_all(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        one, two = (
            {
                "input": {"generate": {"mapping": "root = 1"}},
                "pipeline": {"processors": [{"mapping": f"root = {n}"}]},
            }
            for n in (1, 2)
        )
        assert server.ask("POST", "/streams", {"a": one, "b": one}).status_code == 200
        assert server.ask("POST", "/streams", {"b": two, "c": one}).status_code == 200
        assert set(server.stage.on) == {"b", "c"}
        wrong = server.ask("POST", "/streams", {"b": {"inptu": 1}})
        assert wrong.status_code == 400
        assert wrong.json()["lint_errors"][0].startswith("stream 'b': (1,1) field inptu")
        for body in ("[]", "1", "{a: [1]}", "{a: 1}", "{a.b: {}}"):
            assert server.ask("POST", "/streams", body).status_code == 400
        assert set(server.stage.on) == {"b", "c"}


def test_the_first_words_of_the_services_own_paths_are_no_ids(tmp_path: Path) -> None:
    fields = "debug_endpoints: true, root_path: /proxy/streamer"
    with asking(tmp_path, fields) as server:
        own = {one.path.split("/")[1] for one in server.api.list_endpoints()} - {"{id}"}
        own |= {path.split("/")[1] for path in ConsolePages().make_routes("/proxy/streamer")} - {""}
        assert own - {"openapi.json"} == RESERVED_IDS | {"proxy"}
        for name in sorted(own):
            refused = server.ask("POST", f"/streams/{name}", config_text("one"))
            assert refused.status_code == 400
            assert refused.text.startswith(f"Error: '{name}' ")
            assert server.ask("POST", "/streams", {"a": {}, name: {}}).status_code == 400
        assert (
            "the service has paths of its own at /metrics"
            in server.ask("POST", "/streams/metrics", config_text("one")).text
        )
        assert not server.stage.on
        for name in ("metrics_", "Streams", "streamer"):
            assert server.ask("POST", f"/streams/{name}", config_text("one")).status_code == 200


def test_a_change_that_loses_windows_says_what_and_waits_to_be_asked_for(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        assert server.ask("POST", "/streams/a", GENERATE + WINDOWS % "10s").status_code == 200
        refused = server.ask("PUT", "/streams/a", GENERATE + WINDOWS % "20s")
        assert refused.status_code == 409
        assert refused.json()["judgement"]["effect"] == "reset"
        assert "windows of 10s" in refused.json()["error"]
        path = "/streams/a?on_reset="
        assert server.ask("PUT", f"{path}maybe", GENERATE + WINDOWS % "20s").status_code == 400
        assert server.ask("PUT", f"{path}discard", GENERATE + WINDOWS % "20s").status_code == 200


def test_pause_resume_and_going_back(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        ask = server.ask
        ask("POST", "/streams/a", config_text("one"))
        ask("PUT", "/streams/a", config_text("two"))
        assert ask("POST", "/streams/a/pause").status_code == 200
        assert ask("GET", "/streams/a").json()["state"] == "paused"
        assert ask("GET", "/ready").text == "OK"
        assert ask("POST", "/streams/a/resume").status_code == 200
        assert ask("POST", "/streams/a/rollback").json()["revision"] == 3
        assert '"one"' in server.stage.on["a"]
        assert ask("POST", "/streams/a/rollback?revision=2").json()["revision"] == 4
        for wrong in ("9", "x", "-1", "1e3", ""):
            assert ask("POST", f"/streams/a/rollback?revision={wrong}").status_code == 400
        revisions = ask("GET", "/streams/a/revisions").json()
        assert [one["number"] for one in revisions] == [4, 3, 2, 1]
        assert [one["current"] for one in revisions] == [True, False, False, False]
        first = ask("GET", "/streams/a/revisions/1").json()
        assert first["config"]["pipeline"]["processors"] == [{"mapping": 'root = "one"'}]
        assert ask("GET", "/streams/a/revisions/9").status_code == 400
        assert ask("GET", "/streams/b/revisions").status_code == 404


def test_what_a_stream_does_can_be_seen(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        ask = server.ask
        ask("POST", "/streams/a", GENERATE + WINDOWS % "10s")
        assert ask("GET", "/streams/a/windows").json()["open"] == 0
        progress = ask("GET", "/streams/a/progress").json()
        assert (progress["state"], progress["messages"]) == ("running", 7)
        plan = ask("GET", "/streams/a/plan").json()
        assert plan["window"] == "windows of 10s" and "stage 1" in plan["text"]
        assert ask("GET", "/streams/a/lint").json() == {"lint_errors": []}
        stats = ask("GET", "/streams/a/stats").json()
        assert stats['input_received{label="",path="root.input"}'] == 7
        assert stats["uptime_ns"] > 0
        metrics = ask("GET", "/metrics").text
        assert 'input_received{label="",path="root.input",stream="a"} 7.0' in metrics
        assert ask("GET", "/a/ready").status_code in (200, 503)
        server.service.manager.registry.get("a").log("WARN", "look", {"n": 1})
        [line] = ask("GET", "/streams/a/logs").json()
        assert (line["msg"], line["level"], line["fields"]) == ("look", "WARN", {"n": 1})
        assert ask("GET", f"/streams/a/logs?after={line['number']}").json() == []
        assert ask("GET", "/streams/a/logs?after=x").status_code == 400
        assert ask("GET", "/benthos/streams/a").status_code == 200
        assert ask("GET", "/version").json()["version"]
        assert "/streams/{id}" in ask("GET", "/endpoints").json()


def test_results_are_asked_for_by_url(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        server.ask("POST", "/streams/a", config_text("one"))
        assert server.ask("GET", "/streams/a/results").status_code == 404
        assert server.ask("GET", "/streams/b/results").status_code == 404
        assert server.ask("GET", "/streams/a/results?nope=1").status_code == 400
        assert server.ask("GET", "/streams/a/results?limit=x").status_code == 400


def test_without_the_api_there_is_health_and_nothing_that_changes(tmp_path: Path) -> None:
    with asking(tmp_path, enabled=False) as server:
        for path in ("/ping", "/ready", "/version", "/metrics", "/stats", "/endpoints"):
            assert server.ask("GET", path).status_code == 200
        for path in ("/streams", "/streams/a", "/resources/cache/a", "/a/ready"):
            assert server.ask("GET", path).status_code == 404
            assert server.ask("POST", path, config_text("a")).status_code == 404


def test_streams_of_files_cannot_be_changed(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text(config_text("one"))
    with asking(tmp_path / "c", files={"f": str(tmp_path / "f.yaml")}) as server:
        assert server.ask("GET", "/streams/f").json()["source"].endswith("f.yaml")
        for method in ("PUT", "PATCH", "DELETE"):
            body = None if method == "DELETE" else config_text("two")
            answer = server.ask(method, "/streams/f", body)
            assert answer.status_code == 409 and "change the file" in answer.text


def test_the_document_names_every_path_that_is_served(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        document = server.ask("GET", "/openapi.json").json()
        assert document["openapi"] == "3.1.0"
        assert set(document["paths"]) == {one.path for one in server.api.list_endpoints()}
        names = [
            operation["operationId"]
            for methods in document["paths"].values()
            for operation in methods.values()
        ]
        assert len(names) == len(set(names))


def test_others_are_answered_at_once_while_a_deploy_takes_its_time(tmp_path: Path) -> None:
    gate = threading.Event()
    with asking(tmp_path, stage=Stage(wait=gate)) as server, ThreadPoolExecutor(8) as pool:
        try:
            made = [
                pool.submit(server.ask, "POST", f"/streams/s{n}", config_text("one"))
                for n in range(6)
            ]
            times = []
            for _ in range(100):
                began = time.monotonic()
                assert server.ask("GET", "/streams").status_code == 200
                times.append(time.monotonic() - began)
            assert not any(one.done() for one in made)
        finally:
            gate.set()
        assert {one.result().status_code for one in made} == {200}
    assert sorted(times)[98] < 0.3


def test_what_is_deployed_says_who_has_done_it(tmp_path: Path) -> None:
    import base64
    import hashlib

    digest = base64.b64encode(hashlib.sha256(b"token").digest()).decode()
    http = f"bearer_auth: {{ enabled: true, tokens: [ {{ name: ci, token_hash: {digest} }} ] }}"
    with asking(tmp_path, http) as server:
        assert server.ask("POST", "/streams/a", config_text("one")).status_code == 401
        assert server.ask("GET", "/openapi.json").status_code == 401
        assert server.ask("GET", "/ping").text == "pong"
        # Which streams there are is for those who may ask.
        assert server.ask("GET", "/ready").text == "OK"
        assert server.ask("GET", "/a/ready").status_code == 401
        token = {"Authorization": "Bearer token"}
        assert server.ask("POST", "/streams/a", config_text("one"), **token).status_code == 200
        server.stage.now = lambda _, polls: StreamState(Snapshot(), {}, "no answer")
        ready = [server.ask("GET", "/ready", **who) for who in ({}, token)]
        assert [one.status_code for one in ready] == [503, 503]
        assert [one.text for one in ready] == ["not ready\n", "streams a are not ready: retrying\n"]
        # A stream that does not flow takes the API out of no load balancer.
        assert server.ask("GET", "/ready?of=service").text == "OK"
        paths = server.ask("GET", "/openapi.json", **token).json()["paths"]
        assert [paths[one]["get"]["security"] for one in ("/ping", "/ready")] == [
            [],
            [{}, {"bearer": []}],
        ]
        [revision] = server.ask("GET", "/streams/a/revisions", **token).json()
        assert revision["author"] == "ci"
    audit = (tmp_path / ".service" / "audit.jsonl").read_text()
    assert [json.loads(line)["author"] for line in audit.splitlines()] == ["ci"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Sec_Fetch_Site": "same-origin", "Content_Type": "text/plain"}, 415),
        ({"Sec_Fetch_Site": "same-origin", "Content_Type": "multipart/form-data"}, 415),
        ({"Sec_Fetch_Site": "same-origin", "Content_Type": "application/json"}, 200),
    ],
    ids=str,
)
def test_pages_of_other_sites_cannot_deploy(
    headers: dict[str, str], status: int, tmp_path: Path
) -> None:
    with asking(tmp_path) as server:
        assert server.ask("POST", "/streams/a", config_text("one"), **headers).status_code == status
        assert ("a" in server.stage.on) is (status == 200)
        server.ask("POST", "/streams/b", config_text("one"))
        gone = server.ask("DELETE", "/streams/b", None, **headers).status_code
        assert gone == (200 if status == 415 else status)


def test_bodies_are_bounded_and_text(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        assert server.ask("POST", "/streams/a", "#" * 1_000_001).status_code == 413
        parts = (b"#" * 100_000 for _ in range(11))
        assert server.client.post("/streams/a", content=parts).status_code == 413
        assert server.ask("POST", "/streams/a", b"\xff").status_code == 400
        laughs = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]\n"
            for a, b in zip("abcdefgh", "bcdefghi", strict=True)
        )
        for path, body in (("/streams/a", laughs), ("/streams", laughs), ("/streams", "[" * 9999)):
            assert server.ask("POST", path, body).status_code == 400
        assert server.ask("GET", "/ping").text == "pong"


def test_secrets_are_in_no_answer(tmp_path: Path) -> None:
    text = GENERATE.replace("drop: {}", "http_client: { url: 'http://u:s3same@h/', timeout: 1x }")
    good = text.replace("1x", "1s")
    with asking(tmp_path, stage=Stage(fails={"nothing"})) as server:
        answers = [
            server.ask("POST", "/streams/a", text),
            server.ask("POST", "/streams/a", good),
            server.ask("PATCH", "/streams/a", {"output": {"http_client": {"verb": "PUT"}}}),
            server.ask("PATCH", "/streams/a", {"output": {"http_client": {"verb": [1]}}}),
        ]
        for name in ("", "/plan", "/lint", "/revisions", "/revisions/1", "/logs", "/stats"):
            answers.append(server.ask("GET", f"/streams/a{name}"))
        answers.append(server.ask("GET", "/a/ready"))
        assert all("s3same" not in one.text for one in answers)
    assert "s3same" not in str(server.service.log)


@pytest.mark.parametrize("prefixed", [True, False])
def test_what_components_serve_stands_behind_the_streams_id_unless_told_otherwise(
    prefixed: bool, tmp_path: Path
) -> None:
    async def handle(request: web.BaseRequest, named: Mapping[str, str]) -> web.StreamResponse:
        return web.Response(text=f"for {named['what']}")

    with asking(tmp_path, prefixed=prefixed) as server:
        for name in ("a", "b"):
            server.ask("POST", f"/streams/{name}", config_text("one"))
        view = server.service.manager.registry.get("a").view
        assert view.endpoints.served
        view.endpoints.add("the input", {"/post/{what}": ("Takes things.", handle)})
        mine, others = ("/a/post/x", "/b/post/x") if prefixed else ("/post/x", "/a/post/x")
        assert server.ask("POST", mine, "body").text == "for x"
        assert server.ask("POST", f"/benthos{mine}", "body").text == "for x"
        assert server.ask("POST", others, "body").status_code == 404
        listed = "/a/post/{what}" if prefixed else "/post/{what}"
        assert server.ask("GET", "/endpoints").json()[listed] == "Takes things."
        server.ask("POST", "/streams/a/pause")
        assert server.ask("POST", mine, "body").status_code == 404


def test_what_a_shared_resource_serves_has_no_prefix(tmp_path: Path) -> None:
    def answers(text: str) -> Any:
        async def handle(request: web.BaseRequest, _: Mapping[str, str]) -> web.StreamResponse:
            return web.Response(text=text)

        return handle

    with asking(tmp_path) as server:
        server.ask("POST", "/streams/shop", config_text("one"))
        endpoints = server.service.manager.registry.get("shop").view.endpoints
        own = {"/orders": ("Own.", answers("own"))}
        endpoints.add("the input", own, file="shop")
        endpoints.add("the resource", {"/orders": ("Shared.", answers("shared"))}, file="r.yaml")
        endpoints.add("another", {"/shop/more": ("More.", answers("more"))}, file="r.yaml")
        assert server.ask("POST", "/orders", "body").text == "shared"
        assert server.ask("POST", "/benthos/orders", "body").text == "shared"
        assert server.ask("POST", "/shop/orders", "body").text == "own"
        # A stream that is called like the beginning of the path does not hide it.
        assert server.ask("POST", "/shop/more", "body").text == "more"
        assert server.ask("POST", "/shop/shop/more", "body").status_code == 404
        listed = server.ask("GET", "/endpoints").json()
        assert (listed["/orders"], listed["/shop/orders"]) == ("Shared.", "Own.")


def test_a_stream_that_starts_says_what_it_waits_for(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        assert server.ask("POST", "/streams/a", GENERATE).status_code == 200

        def said() -> list[str]:
            one = server.ask("GET", "/streams").json()["a"]
            return [one["waits_for"], server.ask("GET", "/streams/a/progress").json()["waits_for"]]

        assert said() == ["", ""]
        view = server.service.manager.registry.get("a").view
        view.start.begin(StartPhase.CONNECT, "orders")
        assert said() == ["connecting to orders"] * 2
        view.start.begin(StartPhase.FIRST_BATCH)
        assert said() == ["first micro-batch"] * 2
        view.batch_progress = lambda: BatchProgress(2.0, 1_500, "cars.jsonl", 0.41)
        assert said() == ["first micro-batch: 41 % of cars.jsonl, 1,500 messages read"] * 2
        assert server.ask("POST", "/streams/a/pause").status_code == 200
        assert said() == ["", ""], "it waits for nothing any more"
        assert server.ask("POST", "/streams/a/resume").status_code == 200
        server.service.manager.registry.get("a").view.start.finish()
        assert said() == ["", ""]


def test_before_spark_is_there_it_says_that_it_lives_and_asks_for_another_try(
    tmp_path: Path,
) -> None:
    with asking(tmp_path) as server:
        ask, api = server.ask, server.api
        ask("POST", "/streams/a", config_text("one"))
        api.streams_available.clear()
        api.streams_restored.clear()
        for path in ("/ping", "/version", "/metrics", "/endpoints"):
            assert ask("GET", path).status_code == 200
        assert (ask("GET", "/ready").status_code, ask("GET", "/ready").text) == (
            503,
            "Spark is starting\n",
        )
        for method, path in (("GET", "/streams"), ("POST", "/streams/b"), ("POST", "/a/post")):
            refused = ask(method, path, config_text("one") if method == "POST" else None)
            assert (refused.status_code, refused.headers["Retry-After"]) == (503, "2")
            assert "Spark is starting" in refused.text
        api.streams_available.set()
        assert list(ask("GET", "/streams").json()) == ["a"]
        # What was deployed before is not there yet.
        assert (ask("GET", "/ready").status_code, ask("GET", "/ready").text) == (
            503,
            "streams are starting\n",
        )
        assert ask("GET", "/ready?of=service").status_code == 503
        missing = ask("GET", "/b/post")
        assert (missing.status_code, missing.headers["Retry-After"]) == (503, "1")
        api.streams_restored.set()
        assert ask("GET", "/b/post").status_code == 404
        stop = time.monotonic() + 10
        while (answer := ask("GET", "/ready")).status_code != 200:
            assert time.monotonic() < stop, answer.text


def test_a_service_that_stops_says_so_at_once_and_asks_for_another_try(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        ask, api = server.ask, server.api
        ask("POST", "/streams/a", config_text("one"))
        assert ask("GET", "/b/post").status_code == 404
        api.stopping.set()
        for path in ("/ready", "/ready?of=service"):
            answer = ask("GET", path)
            assert (answer.status_code, answer.text) == (503, "the service is stopping\n")
        missing = ask("GET", "/b/post")
        assert (missing.status_code, missing.headers["Retry-After"]) == (503, "1")
        server.service.manager.stop()
        # What it was doing can be asked for while the streams stop, and nothing is changed.
        assert ask("GET", "/streams/a").status_code == 200
        refused = ask("POST", "/streams/b", config_text("one"))
        assert (refused.status_code, "the service is stopping" in refused.text) == (409, True)


def test_streams_that_drain_or_stop_are_not_ready_for_that_reason(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        ask, registry = server.ask, server.service.manager.registry
        for name in ("a", "b", "c"):
            ask("POST", f"/streams/{name}", config_text("one"))
        server.stage.now = lambda _, polls: StreamState(Snapshot(batch=1), {})
        assert ask("GET", "/ready").text == "OK"
        reason = "a deploy lets the open windows out"
        for name in ("a", "b"):
            registry.get(name).view.unready_reason = lambda: reason
        answer = ask("GET", "/ready")
        assert (answer.status_code, answer.text) == (503, f"streams a, b are not ready: {reason}\n")
        answer = ask("GET", "/a/ready")
        assert (answer.status_code, answer.json()["error"]) == (503, reason)
        assert all(one["connected"] for one in answer.json()["statuses"])
        assert ask("GET", "/c/ready").status_code == 200
