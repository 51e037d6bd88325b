"""Secrets of a run are in no log, file, command line or environment of other processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from streamer.cli.main import cli
from streamer.cli.options import Options
from streamer.cli.submit.driver_bundle import bundle_config
from streamer.cli.submit.job import write_job
from streamer.cli.submit.sealed_variables import open_variables
from streamer.config import load_config
from streamer.connectors.secrets.lookup import install_lookup
from tests.processes import descendants
from tests.servers import free_port
from tests.servers.vault import vault_server

ROOT = Path(__file__).parents[2]
TOKEN = "hvs.t0ken-canary"
SECRETS = {
    "file": "f1le-canary-7",
    "line": "l1ne-canary-8",
    "env": "env-canary-9",
    "lookup": "l00kup-canary-6",
}


def config(directory: Path, port: int) -> str:
    return f"""
http: {{address: "127.0.0.1:{port}", debug_endpoints: true}}
logger: {{level: DEBUG}}
input: {{generate: {{mapping: 'root.a = 1', interval: 200ms}}}}
pipeline:
  processors:
    - mapping: |
        root = this
        root.b = if this.a == 2 {{ "${{file:{directory}/pem}}" }}
        root.c = ("${{secrets.db.password}}" + "x").number()
output:
  http_client:
    url: http://u:${{file:{directory}/secret}}@127.0.0.1:1/x?k=${{env:CANARY}}
    headers: {{Authorization: 'Bearer ${{secrets.db.password}}'}}
    retries: 0
spark:
  master: local[1]
  conf:
    spark.eventLog.enabled: "true"
    spark.eventLog.dir: {directory}/events
    spark.local.dir: {directory}/local
"""


def processes(name: str) -> Iterator[tuple[int, bytes]]:
    for path in Path("/proc").glob(f"[0-9]*/{name}"):
        with suppress(OSError):
            yield int(path.parent.name), path.read_bytes()


def leaks(places: Iterator[tuple[str, bytes]], *names: str) -> list[str]:
    return [
        f"{name} in {place}"
        for place, content in places
        for name in names or SECRETS
        if SECRETS[name].encode() in content
    ]


def files(directory: Path) -> Iterator[tuple[str, bytes]]:
    for path in directory.rglob("*"):
        if path.is_file() and path.name not in ("secret", "pem"):
            with suppress(OSError):
                yield str(path), path.read_bytes()


def answers(port: int) -> Iterator[tuple[str, bytes]]:
    for path in ("metrics", "debug/config/yaml", "debug/config/json", "debug/stack"):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=20) as answer:
            yield path, answer.read()


def wait_for(program: subprocess.Popen[bytes], seconds: float, is_met: Callable[[], bool]) -> None:
    """Wait for a condition, or for the end of the program or of the time."""
    until = time.monotonic() + seconds
    while not is_met() and time.monotonic() < until and program.poll() is None:
        time.sleep(0.3)


@pytest.mark.spark
def test_secrets_of_a_run_are_nowhere_even_when_it_is_killed(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "secret").write_text(f"{SECRETS['file']}\n")
    (tmp_path / "pem").write_text(f'{SECRETS["line"]}\n"x: y"\n')
    port = free_port()
    (tmp_path / "config.yaml").write_text(config(tmp_path, port))
    with vault_server() as vault, (tmp_path / "log").open("wb") as log:
        vault.tokens.add(TOKEN)
        vault.secrets["secret/db"] = {"password": SECRETS["lookup"]}
        env = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "CANARY": SECRETS["env"],
            "VAULT_TOKEN": TOKEN,
            "XDG_STATE_HOME": str(tmp_path / "state"),
        }
        urn = f"{vault.url.replace('http', 'vault+http', 1)}/secret/"
        command = [sys.executable, "-m", "streamer.cli.main", "run", "config.yaml"]
        command += ["--secrets", "env:", "--secrets", urn, "-w", "--on-reset", "drain"]
        command += ["--checkpoint", str(tmp_path / "checkpoint")]
        program = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=log, stderr=log)
        try:
            plan = tmp_path / "checkpoint" / "running.plan"
            wait_for(program, 240, plan.exists)
            # The mapping fails with a secret in its value, and the output with one in its URL.
            wait_for(program, 120, lambda: b"invalid syntax" in (tmp_path / "log").read_bytes())
            said = (tmp_path / "log").read_text()
            assert program.poll() is None, said[-2000:]
            assert "Connection refused" in said and "invalid syntax" in said, said[-2000:]
            members = descendants(program.pid)
            # More than this program: Spark's JVM, and Python's workers.
            assert len(members) > 2
            lines = ((f"{pid}", text) for pid, text in processes("cmdline"))
            assert leaks(lines) == []
            environs = ((f"{p}", text) for p, text in processes("environ") if p in members)
            assert leaks(environs, "file", "line", "lookup") == []
            seen = dict(answers(port))
            assert b"Authorization" in seen["debug/config/yaml"] and seen["metrics"]
            assert leaks(iter(seen.items())) == []
            assert leaks(files(tmp_path)) == []
        finally:
            program.kill()
            program.wait(30)
    assert (tmp_path / "checkpoint" / "running.plan").exists()
    assert any((tmp_path / "events").iterdir())
    assert leaks(files(tmp_path)) == []


def test_no_command_about_configs_and_no_bundle_of_a_driver_has_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text(SECRETS["file"])
    (tmp_path / "pem").write_text(SECRETS["line"])
    monkeypatch.setenv("CANARY", SECRETS["env"])
    monkeypatch.setenv("VAULT_TOKEN", TOKEN)
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    text = config(tmp_path, 1)
    old.write_text(text)
    # The URL, a header and the mapping differ beside their secrets.
    new.write_text(
        text.replace("/x?k=", "/y?k=").replace("Bearer ", "Basic ").replace('+ "x"', '+ "y"')
    )
    shown: list[tuple[str, bytes]] = []
    with vault_server() as vault:
        vault.tokens.add(TOKEN)
        vault.secrets["secret/db"] = {"password": SECRETS["lookup"]}
        urns = ("env:", f"{vault.url.replace('http', 'vault+http', 1)}/secret/")
        options = [word for urn in urns for word in ("--secrets", urn)]
        for words in (
            *(["diff", str(old), str(new)], ["diff", "--json", str(old), str(new)]),
            *(["explain", str(new)], ["echo", str(new)], ["echo", "--show-env", str(new)]),
            *(["graph", str(new)], ["lint", str(new)], ["test", str(new)]),
        ):
            done = CliRunner().invoke(cli, [*options, *words])
            shown.append((" ".join(words[:2]), (done.output + repr(done.exception)).encode()))
        assert b"/y?k=" in shown[0][1] and b"file:" in shown[0][1], shown[0]
        assert b"Basic ${secrets.db.password}" in shown[0][1]
        with install_lookup(urns):
            loaded = load_config(str(new))
            assert loaded.outputs[0].config["headers"]["Authorization"].endswith(SECRETS["lookup"])
            bundle = bundle_config(loaded, Options(), "cars")
            job = write_job(bundle, tmp_path / "checkpoint", None)
        requests = len(vault.requests)
    assert requests > 8, "the secrets were not read"
    assert leaks(iter(shown)) == []
    made = [one for one in files(job.directory) if "job.json" in one[0] or "/files/" in one[0]]
    assert leaks(iter(made), "file", "line", "lookup") == []
    assert not [name for name, content in made if TOKEN.encode() in content]
    # A variable that the config names is for the driver, which gets the key in another way.
    assert leaks(iter(made), "env") == []
    sealed = json.loads((job.directory / "job.json").read_text())["sealed"]
    assert open_variables(sealed, job.key)["CANARY"] == SECRETS["env"]
    assert not [name for name, content in made if job.key.encode() in content]
    assert job.directory.stat().st_mode & 0o077 == 0


def test_a_traceback_of_the_program_shows_no_secret() -> None:
    code = (
        "import threading\n"
        "from streamer.core.crash_output import hide_in_crash_output\n"
        "hide_in_crash_output({'p@ss canary': '${file:x}'})\n"
        "def fail(): raise ValueError('http://u:p%40ss%20canary@h p@ss canary')\n"
        "thread = threading.Thread(target=fail); thread.start(); thread.join()\n"
        "class Bad:\n"
        "    def __del__(self): fail()\n"
        "Bad()\n"
        "try:\n"
        "    fail()\n"
        "except ValueError as e:\n"
        "    raise KeyError('p@ss canary') from e\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 1 and "canary" not in done.stderr
    assert done.stderr.count("ValueError") == 3 and "${file:x}" in done.stderr
