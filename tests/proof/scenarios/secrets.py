"""Secrets that stand in the config: nobody but who needs them gets to see them."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from tests.proof.runner import Run, under_load
from tests.proof.sinks import HttpSink
from tests.proof.verdict import ProofError
from tests.servers import free_port

_PATHS = ("ping", "ready", "version", "metrics", "stats", "endpoints", "debug/config/yaml")
_PATHS += ("debug/config/json", "debug/stack")
_PAGES = ("jobs/", "stages/", "storage/", "environment/", "executors/", "SQL/", "StreamingQuery/")


def canaries(run: Run) -> str:
    """Look for secrets in logs, answers of the API, Spark's pages and the checkpoint."""
    sink = run.sink
    assert isinstance(sink, HttpSink)
    here, pages = free_port(), _Pages(run)
    names = ("password", "variable", "url", "header", "spark")
    secrets = {name: f"canary{name}{run.rng.getrandbits(64):x}" for name in names}
    run.env |= {"PROOF_CANARY": secrets["variable"]}
    sink.url = sink.url.replace("//", f"//proof:{secrets['url']}@")
    sink.fields = f", basic_auth: {{enabled: true, username: a, password: {secrets['password']}}}"
    sink.fields += f", headers: {{X-Api-Key: {secrets['header']}}}"
    sink.fields += ", oauth: {access_token_secret: '${PROOF_CANARY}'}"
    run.options = ("--log.level", "DEBUG")
    run.configure(
        sink=sink.config(),
        http=f'{{address: "127.0.0.1:{here}", debug_endpoints: true}}',
        conf={"spark.ui.enabled": "true", "spark.hadoop.fs.s3a.secret.key": secrets["spark"]},
    )
    pages.move()
    seen: dict[str, bytes] = {}

    def fault(run: Run) -> None:
        for number in range(run.times):
            # An error of the sink is where its fields might be shown.
            sink.refuses = True
            refused = sink.refused
            run.wait_for(lambda before=refused: sink.refused > before, "for the sink to be asked")
            run.pause(2, 4)
            seen.update(_answers(f"refused {number}", here, pages.port))
            sink.refuses = False
            run.wait_for_output()
            run.kill()
            pages.move()
            run.start()
            run.wait_for_output()
            seen.update(_answers(f"started again {number}", here, pages.port))

    figures = under_load(run, fault)
    places = {**seen, **dict(_files(run.checkpoint))}
    places |= {path.name: path.read_bytes() for path in run.directory.glob("log-*.jsonl")}
    _check_reach(seen)
    _look(secrets, places)
    return f"{figures}; {len(secrets)} secrets in none of {len(places)} places"


class _Pages:
    """Where Spark's pages are: another port at each start, since a JVM is slow to die."""

    def __init__(self, run: Run) -> None:
        self.port, self._run = 0, run

    def move(self) -> None:
        self.port = free_port()
        self._run.configure(conf={"spark.ui.port": str(self.port)})


def _answers(when: str, here: int, pages: int) -> Iterator[tuple[str, bytes]]:
    for path in _PATHS:
        yield f"/{path}, {when}", _get(f"http://127.0.0.1:{here}/{path}")
    spark = f"http://127.0.0.1:{pages}"
    for page in _PAGES:
        yield f"Spark's /{page}, {when}", _get(f"{spark}/{page}")
    applications = f"{spark}/api/v1/applications"
    for part in ("environment", "sql", "jobs"):
        yield f"Spark's {part} as JSON, {when}", _get(f"{applications}/{_id(applications)}/{part}")


def _id(url: str) -> str:
    """Return the id of the one application; a page that has just begun may not have it yet."""
    until = time.monotonic() + 30
    while True:
        body = _get(url)
        with suppress(ValueError):
            (application,) = json.loads(body)
            return str(application["id"])
        if time.monotonic() > until:
            raise ProofError(f"{url} names no application: {body[:200]!r}")
        time.sleep(0.5)


def _get(url: str) -> bytes:
    until = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                body: bytes = answer.read()
                return body
        except urllib.error.HTTPError as e:
            return e.read()
        except OSError:
            if time.monotonic() > until:
                raise ProofError(f"{url} does not answer") from None
            time.sleep(0.5)


def _files(directory: Path) -> Iterator[tuple[str, bytes]]:
    for path in directory.rglob("*"):
        if not path.is_file():
            continue
        yield str(path.relative_to(directory)), path.read_bytes()
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                for name in packed.namelist():
                    yield f"{path.name}/{name}", packed.read(name)


def _check_reach(seen: Mapping[str, bytes]) -> None:
    """Hold that what was looked at is where a secret would stand: what is beside it is there."""
    for place, beside in (
        ("/debug/config/yaml", b"access_token_secret"),
        ("/debug/config/json", b"access_token_secret"),
        ("Spark's /environment/", b"spark.ui.port"),
        ("Spark's environment as JSON", b"spark.ui.port"),
    ):
        if not any(beside in body for name, body in seen.items() if name.startswith(place)):
            there = [body[:80] for name, body in seen.items() if name.startswith(place)]
            raise ProofError(f"{place} does not show {beside.decode()}, but {there}")


def _look(secrets: Mapping[str, str], places: Mapping[str, bytes]) -> None:
    found = [
        f"the {name} in {place}"
        for place, body in places.items()
        for name, secret in secrets.items()
        if secret.encode() in body
    ]
    if found:
        raise ProofError(f"{len(found)} places show a secret: {', '.join(sorted(found)[:9])}")
