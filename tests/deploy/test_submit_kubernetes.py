"""`streamer submit` to Kubernetes: what Spark's client sends to an API server, a simulated one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import kubernetes_validate
import pytest

from streamer.cli.main import cli, invoke
from streamer.config import lint_config
from tests.deploy.restricted import assert_restricted

CONFIG = """\
input: { redpanda: { seed_brokers: ["kafka:9092"], topics: [cars] } }
output: { redpanda: { seed_brokers: ["kafka:9092"], topic: "${TOPIC}" } }
spark:
  checkpoint: /data/checkpoint
  conf:
    spark.kubernetes.namespace: traffic
    spark.kubernetes.container.image: streamer:0.2.0
    spark.kubernetes.authenticate.driver.serviceAccountName: spark
    spark.kubernetes.driver.volumes.persistentVolumeClaim.data.mount.path: /data
    spark.kubernetes.driver.volumes.persistentVolumeClaim.data.options.claimName: traffic
    spark.kubernetes.driver.secretKeyRef.TOPIC: "kafka:topic"
    spark.hadoop.fs.s3a.secret.key: n0t-for-command-lines
"""


class Api(ThreadingHTTPServer):
    """An API server that takes what it is sent, and keeps it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.made: list[tuple[str, dict[str, Any]]] = []

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [made for _, made in self.made if made["kind"] == kind]


class _Handler(BaseHTTPRequestHandler):
    def _take(self) -> None:
        assert isinstance(self.server, Api)
        text = self.rfile.read(int(self.headers.get("content-length", 0)))
        made = json.loads(text)
        made["metadata"]["uid"] = "8b3c7d6e-0000-4000-8000-000000000000"
        self.server.made.append((urlsplit(self.path).path, made))
        answer = json.dumps(made).encode()
        self.send_response(201)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_PATCH = do_PUT = _take

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def api() -> Iterator[Api]:
    with Api() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


@pytest.mark.spark
def test_what_is_made_is_a_restricted_pod_that_runs_the_config(tmp_path: Path) -> None:
    config = tmp_path / "lights.yaml"
    config.write_text(CONFIG)
    with api() as server:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "streamer.cli.main", "submit", config),
                *("--master", f"k8s://http://127.0.0.1:{server.server_port}"),
            ],
            env={**os.environ, "TOPIC": "counts"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    name = done.stdout.strip()
    (pod,) = server.of_kind("Pod")
    assert pod["metadata"]["name"] == name and name.startswith("lights-")
    assert f"kubectl -n traffic logs -f {name}" in done.stderr
    assert {path for path, _ in server.made if path.endswith("/pods")} == {
        "/api/v1/namespaces/traffic/pods"
    }
    kubernetes_validate.validate(pod, "1.34", strict=True)
    spec = pod["spec"]
    (container,) = spec["containers"]
    local = [m for m in container["volumeMounts"] if m["mountPath"].startswith("/var/data/spark-")]
    written = [m for m in container["volumeMounts"] if m not in local]
    config_maps = {volume["name"] for volume in spec["volumes"] if "configMap" in volume}
    for mount in written:
        # The kubelet mounts ConfigMaps read-only, whatever a pod asks for.
        if mount["name"] in config_maps:
            mount["readOnly"] = True
    assert_restricted({**spec, "containers": [{**container, "volumeMounts": written}]})
    assert spec["serviceAccountName"] == "spark"
    assert container["command"][-1] == "/opt/streamer/share/spark.sh"
    (topic,) = [one for one in container["env"] if one["name"] == "TOPIC"]
    assert topic["valueFrom"]["secretKeyRef"]["name"] == "kafka"
    assert "n0t-for-command-lines" not in json.dumps(pod)
    # What Spark's client has been told comes back as the arguments of `spark.sh`.
    arguments = container["args"]
    assert arguments[0] == "driver"
    program = arguments[arguments.index("local:///opt/streamer/share/main.py") + 1 :]
    context = cli.make_context("streamer", list(program))
    assert program[:2] == ["run", "/opt/spark/conf/lights.yaml"] and context
    assert "spark.environment=installed" in program
    (mount,) = [m for m in container["volumeMounts"] if m["mountPath"] == "/opt/spark/conf"]
    (volume,) = [v for v in spec["volumes"] if v["name"] == mount["name"]]
    (files,) = [
        made["data"]
        for made in server.of_kind("ConfigMap")
        if made["metadata"]["name"] == volume["configMap"]["name"]
    ]
    assert files["lights.yaml"] == CONFIG
    path = tmp_path / "shipped.yaml"
    path.write_text(files["lights.yaml"].replace("${TOPIC}", "counts"))
    assert lint_config(str(path)) == ()
    properties = files["spark.properties"]
    assert "-Xss4m" in properties


@pytest.mark.parametrize(
    ("without", "said"),
    [
        ("    spark.kubernetes.container.image: streamer:0.2.0\n", "the program's image"),
        ('    spark.kubernetes.driver.secretKeyRef.TOPIC: "kafka:topic"\n', "variable TOPIC"),
    ],
)
def test_what_a_config_lacks_is_said_before_anything_is_sent(
    without: str,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOPIC", "counts")
    config = tmp_path / "lights.yaml"
    assert without in CONFIG
    config.write_text(CONFIG.replace(without, ""))
    assert invoke(["submit", str(config), "--master", "k8s://http://127.0.0.1:9"]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--supervise", "--supervise is for standalone clusters"),
        ("--wait", "--wait is for standalone clusters"),
        ("--name=Lights_1", "Kubernetes does not take as a pod's name"),
    ],
)
def test_options_that_pods_cannot_have_are_refused(
    option: str,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOPIC", "counts")
    config = tmp_path / "lights.yaml"
    config.write_text(CONFIG)
    assert invoke(["submit", str(config), "--master", "k8s://http://127.0.0.1:9", option]) == 1
    assert said in capsys.readouterr().err


CLIENT = """\
#!/bin/sh
printf '%s\\n' "$@" >'{to}/arguments'
cp -r "$SPARK_CONF_DIR" '{to}/conf'
while [ "$1" != --properties-file ]; do shift; done
cp "$2" '{to}/properties' && stat -c %a "$2" >'{to}/mode'
echo 'Exception in thread "main" java.lang.IllegalStateException: of no use' >&2
echo 'Caused by: java.net.ConnectException: Connection refused' >&2
echo '	at java.base/sun.nio.ch.Net.connect' >&2
exit 1
"""


def test_sparks_client_gets_settings_in_a_file_and_its_deepest_cause_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    client = tmp_path / "bin" / "spark-submit"
    client.write_text(CLIENT.format(to=tmp_path))
    client.chmod(0o755)
    monkeypatch.setattr("streamer.spark.jvm.gateway.spark_home", lambda: tmp_path)
    monkeypatch.setenv("TOPIC", "counts")
    config = tmp_path / "lights.yaml"
    config.write_text(CONFIG)
    assert invoke(["submit", str(config), "--master", "k8s://http://127.0.0.1:9"]) == 1
    said = capsys.readouterr().err
    assert "does not take the driver: java.net.ConnectException: Connection refused" in said
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[:4] == ["--master", "k8s://http://127.0.0.1:9", "--deploy-mode", "cluster"]
    assert not [one for one in arguments if "n0t-for-command-lines" in one]
    properties = (tmp_path / "properties").read_text()
    assert "spark.hadoop.fs.s3a.secret.key n0t-for-command-lines\n" in properties
    assert (tmp_path / "mode").read_text() == "600\n"
    assert (tmp_path / "conf" / "lights.yaml").read_text() == CONFIG
