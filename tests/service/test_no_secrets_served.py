"""No endpoint of the HTTP server tells a secret of the config."""

from __future__ import annotations

from streamer.config import parse_config
from streamer.engine.report.stream_metrics import Snapshot
from streamer.service.api.server import HttpServer
from streamer.service.monitoring.stream_view import StreamState, StreamView

from .serving import Served

SECRET = "hunter2-hunter2"
CONFIG = f"""\
http:
  address: 127.0.0.1:0
  debug_endpoints: true
  basic_auth: {{ password_hash: hash-{SECRET}, salt: "${{X}}" }}
input: {{ label: in, file: {{ paths: ["${{X}}/a", "http://u:url-{SECRET}@h/a"] }} }}
output: {{ file: {{ path: "/${{X}}" }} }}
metrics: {{ prometheus: {{ push_basic_auth: {{ password: push-{SECRET} }} }} }}
spark: {{ conf: {{ spark.password: conf-{SECRET} }} }}
"""
SAID = " ".join(f"{name}-{SECRET}" for name in ("env", "hash", "url", "conf", "push"))


def test_no_endpoint_tells_a_secret() -> None:
    view = StreamView(parse_config(CONFIG, env={"X": f"env-{SECRET}"}))
    problem = f"the source failed: {SAID} amqp://u:{SECRET}@host"
    view.set_running(lambda: StreamState(Snapshot(), {}, problem))
    server = HttpServer.for_stream(view)
    try:
        served = Served(view, server.url)
        paths = sorted(served.json("/endpoints"))
        assert "/debug/config/yaml" in paths
        told = {path: served.get(path)[1] for path in (*paths, "/nope")}
    finally:
        server.stop()
    assert b"the source failed: ${X} " in told["/ready"]
    assert [path for path, body in told.items() if SECRET.encode() in body] == []
