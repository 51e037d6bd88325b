"""Secrets of a deployed config are in no answer of the service, of which the console is made."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2

from streamer.connectors.secrets.lookup import install_lookup
from streamer.service.fleet.api_permissions import ApiPermissions
from tests.service.api.asking import Asking, asking

FIRST, SECOND = "f1rst-canary-1", "s3cond-canary-2"
CONFIG = """\
input: { generate: { mapping: 'root.a = 1', interval: 1s } }
pipeline:
  processors:
    - mapping: 'root.b = "${file:PATH}".number()'
output:
  http_client:
    url: http://u:${file:PATH}@127.0.0.1:1/NAME
    headers: { Authorization: 'Bearer ${file:PATH}' }
"""


def read_all(server: Asking) -> dict[str, httpx2.Response]:
    """Return the answers to all questions about the stream that the service documents."""
    answers = {}
    for path, methods in server.ask("GET", "/openapi.json").json()["paths"].items():
        if "get" not in methods or "events" in path or "/live" in path:
            continue
        asked = path.replace("{id}", "one").replace("{number}", "1").replace("{revision}", "1")
        if "{" in asked:
            continue
        try:
            answers[path] = server.client.get(asked, timeout=5)
        except httpx2.TimeoutException:
            continue  # it goes on as long as somebody listens
    return answers


def test_no_answer_has_a_secret_of_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    text = CONFIG.replace("PATH", str(secret))
    allowed = ApiPermissions(local=True)
    with install_lookup(["env:"]), asking(tmp_path / "s", allowance=allowed) as server:
        secret.write_text(FIRST)
        made = [server.ask("POST", "/streams/one", text.replace("NAME", "x"))]
        secret.write_text(SECOND)
        made.append(server.ask("PUT", "/streams/one", text.replace("NAME", "y")))
        assert [one.status_code for one in made] == [200, 200], [one.text for one in made]
        config = server.service.manager.registry.get("one").view.config
        assert SECOND in config.output.config["url"]
        bad = text.replace("interval: 1s", "interval: 1s, nothing: 1")
        trials = {
            "bad": server.ask("PUT", "/streams/one", bad),
            "lint": server.ask("POST", "/lint", bad),
            "change": server.ask("POST", "/streams/one/judgement", text.replace("NAME", "z")),
            "dry run": server.ask("POST", "/streams/two?dry_run=true", text),
        }
        answers = {**read_all(server), **trials}
    assert b"/z" in trials["change"].content
    assert {"/streams", "/streams/{id}"} <= answers.keys() and len(answers) > 12
    assert "${file:" in json.dumps(answers["/streams/{id}"].json())
    told = {
        name
        for name, one in {**answers, "first": made[0], "second": made[1]}.items()
        if FIRST in one.text or SECOND in one.text
    }
    assert told == set()
    kept = [path for path in (tmp_path / "s").rglob("*") if path.is_file()]
    assert kept and not [
        path
        for path in kept
        if FIRST.encode() in path.read_bytes() or SECOND.encode() in path.read_bytes()
    ]
