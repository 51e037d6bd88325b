"""Streams whose paths are URLs of objects, from the command line and by the API's rules."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from streamer.cli.main import invoke
from streamer.components.caches.file import LocationCache
from streamer.config import parse_config
from streamer.connectors.locations import location_files, stores
from streamer.connectors.locations.location_files import LocationFiles, read_path
from streamer.connectors.locations.pattern_store import PatternStore
from streamer.connectors.locations.table_file import TableFile
from streamer.core.execution import Execution
from streamer.core.permissions import ALL, NONE, NotPermittedError
from streamer.service.fleet.api_permissions import ApiPermissions
from tests.components.inputs.reading import built
from tests.connectors.locations.conftest import run_s3
from tests.connectors.objects.reading import everything

CONFIG = """
input:
  file: {{ paths: [ '{root}in/**/*.jsonl' ] }}
pipeline:
  processors:
    - mapping: |
        root = this.assign({{"from": @path}})
output:
  file: {{ path: '{root}out/of=${{! json("kind") }}/' }}
"""

URLS = ("s3://b/k", "s3a://b/k", "gs://b/k", "abfss://c@abc.dfs.core.windows.net/k", "hdfs://n/k")

FIELDS = (
    "input: {file: {paths: ['URL']}}",
    "input: {csv: {paths: ['URL']}}",
    "input: {parquet: {paths: ['URL']}}",
    "output: {file: {path: 'URL', codec: all-bytes}}",
    "output: {parquet: {path: 'URL'}}",
    "cache_resources: [{label: a, file: {directory: 'URL'}}]",
    "table_resources: [{label: a, csv: {path: 'URL', key: x}}]",
    "table_resources: [{label: a, json_lines: {path: 'URL', key: x}}]",
    "table_resources: [{label: a, parquet: {path: 'URL', key: x}}]",
    "pipeline: {processors: [{json_schema: {schema_path: 'URL'}}]}",
    "pipeline: {processors: [{avro: {operator: to_json, schema_path: 'URL'}}]}",
)


TESTED = """
pipeline:
  processors:
    - mapping: root = this.n * 2
tests:
  - name: it doubles
    target_processors: /pipeline/processors
    input_batch: [{ content: '{"n": 2}' }]
    output_batches: [[{ content_equals: "%d" }]]
"""


def test_the_unit_tests_of_a_config_in_a_store_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with run_s3(tmp_path) as store:
        for name, text in store.environ.items():
            monkeypatch.setenv(name, text)
        root, files = store.make_root(), LocationFiles(ALL)
        for name, doubled in (("right", 4), ("wrong", 5)):
            files.put(f"{root}{name}.yaml", (TESTED % doubled).encode())
        assert invoke(["test", f"{root}right.yaml"]) == 0
        assert "1 test: 1 passed" in capsys.readouterr().out
        assert invoke(["test", f"{root}wrong.yaml", f"{root}right.yaml"]) == 1
        assert "2 tests: 1 passed, 1 failed" in capsys.readouterr().out
        assert invoke(["test", f"{root}missing.yaml"]) == 1


@pytest.mark.slow
def test_a_stream_reads_objects_and_writes_objects_by_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_s3(tmp_path) as store:
        for name, text in store.environ.items():
            monkeypatch.setenv(name, text)
        root, files = store.make_root(), LocationFiles(ALL)
        for part in range(3):
            rows = [{"n": part * 100 + n, "kind": "ab"[n % 2]} for n in range(100)]
            body = "".join(json.dumps(row) + "\n" for row in rows)
            files.put(f"{root}in/{part}/rows.jsonl", body.encode())
        # The config is an object as well.
        config = f"{root}configs/rows.yaml"
        files.put(config, CONFIG.format(root=root).encode())
        command = [sys.executable, "-m", "streamer.cli.main", "--checkpoint", str(tmp_path / "c")]
        ran = subprocess.run(
            [*command, "-c", config],
            capture_output=True, text=True, timeout=240, cwd=tmp_path, env=dict(os.environ),
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        assert store.environ["AWS_SECRET_ACCESS_KEY"] not in ran.stdout + ran.stderr
        for number, kind in enumerate("ab"):
            of = built(f"input: {{file: {{paths: ['{root}out/of={kind}/*']}}}}\n")
            rows = [json.loads(line) for line in everything(of)]
            assert sorted(row["n"] for row in rows) == list(range(number, 300, 2))
            assert all(row["from"] == f"{root}in/{row['n'] // 100}/rows.jsonl" for row in rows)


@pytest.mark.slow
def test_a_config_is_an_object_for_each_command_that_reads_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with run_s3(tmp_path) as store:
        for name, text in store.environ.items():
            monkeypatch.setenv(name, text)
        root, files = store.make_root(), LocationFiles(ALL)
        files.put(f"{root}good.yaml", b"input: {generate: {count: 1, mapping: root = 1}}")
        files.put(f"{root}bad.yaml", b"input: {generat: {}}")
        files.put(f"{root}large.yaml", b"#" * 1_000_001)

        def run(*arguments: str) -> tuple[int, str]:
            code = invoke([*arguments])
            said = capsys.readouterr()
            return code, said.out + said.err

        assert run("lint", f"{root}good.yaml") == (0, "")
        code, text = run("lint", f"{root}bad.yaml")
        assert code == 1 and f"{root}bad.yaml(1,9) input 'generat' is not known" in text
        assert "there is no such file" in run("lint", f"{root}none.yaml")[1]
        assert "expected at most 1,000,000" in run("lint", f"{root}large.yaml")[1]
        assert f"checkpoint  {os.environ['HOME']}" in run("explain", f"{root}good.yaml")[1]
        code, text = run("run", "-w", f"{root}good.yaml")
        assert code == 1 and "is the URL of an object, which is read once" in " ".join(text.split())


@pytest.mark.parametrize("text", FIELDS)
@pytest.mark.parametrize("url", URLS)
def test_lint_refuses_the_urls_of_a_config_that_comes_by_api(text: str, url: str) -> None:
    config = parse_config(text.replace("URL", url), "one.yaml")
    messages = [one.message for one in ApiPermissions().lint_config(config)]
    assert len(messages) == 1 and "off for configs that come by API" in messages[0], messages
    assert not list(ApiPermissions(local=True).lint_config(config))


@pytest.mark.parametrize("url", URLS)
def test_a_component_of_a_stranger_opens_no_store(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: object) -> None:
        raise AssertionError("a client was made")

    monkeypatch.setattr(stores, "make_client", refuse)
    monkeypatch.setattr(location_files, "make_client", refuse)
    execution = Execution(lambda: 0)
    files, cache = LocationFiles(NONE), LocationCache(url, NONE)
    table = TableFile(url, NONE, lambda raw: [])
    listing = PatternStore([f"{url}*"], NONE) if not url.startswith("hdfs") else None
    attempts: list[Callable[[], object]] = [
        lambda: files.read(url),
        lambda: files.put(url, b""),
        lambda: files.delete(url),
        lambda: files.version(url),
        lambda: files.check(url),
        lambda: cache.get("a", execution),
        lambda: cache.set("a", b"", None, execution),
        lambda: table.read_rows(execution),
        table.change_sign,
        lambda: read_path(url, NONE),
    ]
    if listing is not None:
        attempts += [
            lambda: listing.list_page("", ""),
            lambda: listing.open(url),
            lambda: listing.head(url),
            lambda: listing.delete([url]),
        ]
    for attempt in attempts:
        with pytest.raises(NotPermittedError, match="out of reach for configs that come by API"):
            attempt()
