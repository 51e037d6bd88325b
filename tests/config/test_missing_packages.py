"""A package that is not installed is found before anything runs, where it is needed."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from streamer.bloblang.functions import fake
from streamer.cli.main import invoke
from streamer.config import LintOptions, lint_config, load_config, parse_config
from streamer.core.errors import ConfigError
from streamer.service.fleet.config_reader import ConfigReader
from streamer.service.fleet.errors import BadConfigError

CONFIG = """\
input:
  kafka:
    addresses: [localhost:9092]
    topics: [cars]
    consumer_group: counts
buffer:
  tumbling_window:
    size: 1m
    retention: 7d
pipeline:
  processors:
    - mapping: |
        root = this
        root.name = fake("name")
    - sql_raw:
        driver: postgres
        dsn: postgres://localhost/cars
        query: SELECT 1
output:
  drop: {}
tracer:
  open_telemetry_collector:
    grpc: [{ address: localhost:4317 }]
"""


class _Hidden(MetaPathFinder):
    """Makes packages look as if they were not installed."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if any(fullname == name or fullname.startswith(f"{name}.") for name in self._names):
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


@pytest.fixture
def hide(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def hide(*names: str) -> None:
        for module in list(sys.modules):
            if any(module == name or module.startswith(f"{name}.") for name in names):
                monkeypatch.delitem(sys.modules, module)
        monkeypatch.setattr(sys, "meta_path", [_Hidden(names), *sys.meta_path])

    return hide


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    return path


def test_with_all_packages_there_is_nothing_to_find(config: Path) -> None:
    assert lint_config(config) == ()


def test_each_is_found_where_it_is_needed(config: Path, hide: Callable[..., None]) -> None:
    hide("kafka", "duckdb", "faker", "psycopg", "opentelemetry")
    there = [(lint.line, lint.column, lint.code) for lint in lint_config(config)]
    assert there == [
        (line, column, "missing_package")
        for line, column in ((2, 3), (9, 16), (14, 21), (16, 17), (23, 11))
    ]
    texts = [f"{lint.message}; {lint.suggestion}" for lint in lint_config(config)]
    assert texts[0] == (
        "input kafka needs the package kafka, which is not installed here; "
        "pip install 'spark-streamer[kafka]'"
    )
    assert texts[1].startswith("buffer tumbling_window with the field retention needs the package")
    assert texts[2].startswith("function fake needs the package faker")
    assert texts[3].startswith("processor sql_raw with the field driver needs the package psycopg")
    assert "otel-grpc" in texts[4]


def test_what_one_extra_brings_is_one_finding(config: Path, hide: Callable[..., None]) -> None:
    hide("sqlalchemy", "psycopg")
    (lint,) = lint_config(config)
    assert (lint.line, lint.column) == (15, 7)
    assert lint.suggestion == "pip install 'spark-streamer[sql]'"


def test_a_field_that_is_not_set_needs_nothing(tmp_path: Path, hide: Callable[..., None]) -> None:
    hide("duckdb", "psycopg", "pymysql")
    path = tmp_path / "config.yaml"
    path.write_text(
        "input: {stdin: {}}\nbuffer: {tumbling_window: {size: 1m}}\n"
        "output: {sql_raw: {driver: sqlite, dsn: 'file:a.db', query: SELECT 1}}\n"
    )
    assert lint_config(path) == ()


def test_an_interpolation_is_looked_at_too(tmp_path: Path, hide: Callable[..., None]) -> None:
    hide("faker")
    path = tmp_path / "config.yaml"
    path.write_text("pipeline: {processors: [{log: {message: 'so: ${! fake(\"name\") }'}}]}\n")
    (lint,) = lint_config(path)
    assert (lint.code, lint.line) == ("missing_package", 1)


def test_a_value_that_only_the_package_can_check_is_no_finding_of_its_own(
    tmp_path: Path, hide: Callable[..., None]
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("pipeline: {processors: [{avro: {operator: to_json, schema: no schema}}]}\n")
    assert [lint.code for lint in lint_config(path)] == ["bad_value"]
    hide("fastavro")
    assert [lint.code for lint in lint_config(path)] == ["missing_package"]
    assert lint_config(path, options=LintOptions(packages=False)) == ()


def test_run_refuses_what_lint_may_leave_out(config: Path, hide: Callable[..., None]) -> None:
    hide("kafka")
    assert lint_config(config, options=LintOptions(packages=False)) == ()
    for chilled in (False, True):
        with pytest.raises(ConfigError, match="input kafka needs the package kafka"):
            load_config(config, chilled=chilled)


def test_a_comment_silences_lint_and_not_a_run(config: Path, hide: Callable[..., None]) -> None:
    hide("kafka")
    config.write_text(CONFIG.replace("kafka:", "kafka: # streamer:ignore missing_package", 1))
    assert lint_config(config, options=LintOptions(thorough=True)) == ()
    with pytest.raises(ConfigError):
        load_config(config)


@pytest.mark.parametrize("command", ["lint", "explain -c", "dry-run", "run -c"])
def test_commands_say_it(
    command: str, config: Path, hide: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    hide("kafka")
    assert invoke([*command.split(), str(config)]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"{config}(2,3) input kafka needs the package kafka")
    assert "pip install 'spark-streamer[kafka]'" in err


def test_lint_may_leave_it_out(
    config: Path, hide: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    hide("kafka")
    assert invoke(["lint", "--skip-package-check", str(config)]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_template_names_itself(tmp_path: Path, hide: Callable[..., None]) -> None:
    hide("redis")
    template = tmp_path / "kept.yaml"
    template.write_text(
        "name: kept\ntype: cache\nfields: []\n"
        'mapping: |\n  root.redis.url = "tcp://localhost:6379"\n'
    )
    path = tmp_path / "config.yaml"
    path.write_text("cache_resources: [{label: a, kept: {}}]\n")
    from streamer.config.templates.installation import install_templates

    with install_templates([str(template)]):
        (lint,) = lint_config(path)
    assert lint.code == "missing_package"
    assert "template kept" in lint.message and "cache redis needs" in lint.message


def test_a_command_that_needs_a_package_says_so(
    monkeypatch: pytest.MonkeyPatch, hide: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("interactive", "syntax_colours"):
        monkeypatch.delitem(sys.modules, f"streamer.cli.blobl.{name}", raising=False)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{}")))
    hide("prompt_toolkit")
    assert invoke(["blobl", "-I"]) == 1
    assert capsys.readouterr() == (
        "",
        "error: this command needs the package prompt_toolkit, which is not installed here: "
        "pip install 'spark-streamer[editor]'\n",
    )


def test_a_module_that_no_extra_brings_is_a_bug_and_not_hidden(
    monkeypatch: pytest.MonkeyPatch, hide: Callable[..., None]
) -> None:
    monkeypatch.delitem(sys.modules, "streamer.cli.lint", raising=False)
    hide("streamer.cli.lint")
    with pytest.raises(ModuleNotFoundError):
        invoke(["lint", "config.yaml"])


def test_a_mapping_that_is_tried_out_says_so(
    hide: Callable[..., None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{}")))
    fake._make_faker.cache_clear()
    hide("faker")
    invoke(["blobl", 'root = fake("name")'])
    assert "pip install 'spark-streamer[fake]'" in capsys.readouterr().err


def test_a_deploy_by_the_api_is_refused_with_it(hide: Callable[..., None]) -> None:
    reader = ConfigReader(parse_config("{}", env={}))
    text = (
        "input: { generate: { mapping: root = 1 } }\n"
        "output: { redis_list: { url: 'tcp://localhost:6379', key: a } }\n"
    )
    assert reader.read_api_config(text, "cars").output.name == "redis_list"
    hide("redis")
    with pytest.raises(BadConfigError, match=r"output redis_list needs the package redis") as error:
        reader.read_api_config(text, "cars")
    assert "pip install 'spark-streamer[redis]'" in str(error.value)


def test_a_unit_test_needs_only_what_it_runs(
    config: Path, hide: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text("""\
output: { redis_list: { url: 'tcp://localhost:6379', key: a } }
pipeline: { processors: [{ mapping: 'root = fake("uuid_digit").length()' }] }
tests:
  - name: it is as long
    target: processors
    input_batch: [{ content: '{}' }]
    output_batches: [[{ content_equals: '32' }]]
""")
    hide("redis")
    assert invoke(["test", str(config)]) == 0
    hide("redis", "faker")
    assert invoke(["test", str(config)]) == 1
    assert "function fake needs the package faker" in "".join(capsys.readouterr())
