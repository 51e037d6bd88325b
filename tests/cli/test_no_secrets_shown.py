"""A secret that stands anywhere in a config is in nothing that a command prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from streamer.cli import run_stream as run_module
from streamer.cli.main import invoke
from streamer.components import catalog
from streamer.config.sections import SECTIONS
from streamer.core.errors import StreamerError
from streamer.sdk.spec import Field, Kind

SECRET: Final = "hunter2-hunter2"
COMMANDS: Final = (
    ("lint",),
    ("lint", "--format", "json", "--labels", "--deprecated"),
    ("lint", "--format", "sarif"),
    ("lint", "--verbose"),
    ("explain",),
    ("echo",),
    ("echo", "--show-env"),
    ("graph",),
    ("graph", "--format", "svg"),
    ("test",),
    ("dry-run",),
)
LINTS: Final = COMMANDS[:4]

_SECTIONS: Final = {
    Kind.INPUT: ("input",),
    Kind.BUFFER: ("buffer",),
    Kind.OUTPUT: ("output",),
    Kind.METRICS: ("metrics",),
    Kind.TRACER: ("tracer",),
}
Place = tuple[str, Field, Any]
"""A dotted path, the secret field there, and a config as nested objects that ends in a hole."""


class _Hole:
    """Where the secret goes."""


def _places(fields: Iterable[Field], path: str) -> Iterator[tuple[str, Field, dict[str, Any]]]:
    for field in fields:
        here = f"{path}.{field.name}" if path else field.name
        if field.secret:
            yield here, field, {field.name: _shaped(field, _Hole)}
        for inner, secret, value in _places(field.children, here):
            yield inner, secret, {field.name: _shaped(field, value)}


def _shaped(field: Field, value: Any) -> Any:
    return {
        "scalar": value,
        "array": [value],
        "map": {"some.password": value},
        "2darray": [[value]],
    }[field.shape]


def _secret_fields() -> Iterator[tuple[str, Any]]:
    for path, _, value in _places(SECTIONS, ""):
        yield path, value
    for spec in catalog.all_specs():
        for path, _, value in _places(spec.fields, spec.name):
            body = {spec.name: value}
            if spec.kind in _SECTIONS:
                yield path, {_SECTIONS[spec.kind][0]: body}
            elif spec.kind == Kind.PROCESSOR:
                yield path, {"pipeline": {"processors": [body]}}
            elif spec.kind == Kind.SCANNER:
                yield path, {"input": {"stdin": {"scanner": body}}}
            else:
                yield path, {f"{spec.kind}_resources": [{"label": "a", **body}]}


SECRET_FIELDS: Final = tuple(_secret_fields())


def _filled(value: Any, secret: Any) -> Any:
    if value is _Hole:
        return secret
    if isinstance(value, dict):
        return {key: _filled(item, secret) for key, item in value.items()}
    return [_filled(item, secret) for item in value] if isinstance(value, list) else value


def printed(
    capsys: pytest.CaptureFixture[str], path: Path, *commands: tuple[str, ...], arguments: Any = ()
) -> str:
    """Run commands on a config; returns everything that they print."""
    texts = []
    for command in commands:
        invoke([*command, *arguments, str(path)])
        texts += [*capsys.readouterr()]
    assert any(texts)
    return "".join(texts)


def test_fields_that_hold_secrets_are_known() -> None:
    names = {path for path, _ in SECRET_FIELDS}
    assert {
        "http.basic_auth.password_hash",
        "http.basic_auth.salt",
        "spark.conf",
        "prometheus.push_basic_auth.password",
    } <= names


FORMS: Final = {
    "text": SECRET,
    "quotes": f"{SECRET} 'quoted' \"too\" \\",
    "list": [SECRET],
    "key": {SECRET: 1},
    "object": {"a": SECRET},
    "url": f"x://u:{SECRET}@h",
}


def _forms_of_fields() -> Iterator[Any]:
    """Give each field with each form of a secret.

    Components share what declares `tls` or `sasl`: the first of a kind has every form at once, and
    the others have theirs in the long run.
    """
    seen = set()
    for path, config in SECRET_FIELDS:
        declared = next(iter(config)), path.partition(".")[2]
        for name, secret in FORMS.items():
            again = name != "text" and declared in seen
            marks = [pytest.mark.slow] if again else []
            yield pytest.param(path, config, secret, id=f"{name}-{path}", marks=marks)
        seen.add(declared)


@pytest.mark.parametrize(("path", "config", "secret"), [*_forms_of_fields()])
def test_a_secret_field_is_not_shown(
    path: str,
    config: Any,
    secret: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(yaml.safe_dump(_filled(config, secret)))
    assert SECRET not in printed(capsys, file, *COMMANDS)


URL: Final = f"amqp://user:{SECRET}@host:5672/x"


@pytest.mark.parametrize(
    "text",
    [
        f"input: {{file: {{paths: ['{URL}']}}}}",
        f"output: {{file: {{path: '{URL}'}}}}",
        f"output: {{file: {{path: '{URL}', codec: '{URL}'}}}}",
        f"spark: {{master: '{URL}', checkpoint: '{URL}'}}",
        f"input: {{label: '{URL}', stdin: {{}}}}",
        f"logger: {{level: '{URL}', static_fields: {{a: '{URL}'}}}}",
        f"shutdown_timeout: {URL}",
        f"pipeline: {{processors: [{{mapping: 'root = \"{URL}\" ('}}]}}",
        f"pipeline: {{threads: '{URL}'}}",
        f"input: {{generate: {{mapping: 'root = 1', interval: '{URL}'}}}}",
        f"pipeline: {{processors: [{{log: {{message: '{URL}'}}}}]}}",
        f"pipeline: {{processors: [{{resource: '{URL}'}}]}}",
    ],
)
def test_the_password_of_a_url_is_not_shown(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    assert SECRET not in printed(capsys, file, *COMMANDS)


ENVIRONMENT: Final = (
    "input: {file: {paths: ['${X}/a']}}",
    "output: {file: {path: '${X}', codec: '${X}'}}",
    "spark: {master: '${X}', checkpoint: '/tmp/${X}'}",
    "input: {label: '${X}', stdin: {}}",
    "${X}: 1",
    "input: {'${X}': {}}",
    "input: ${X}",
    "logger: {level: '${X}', static_fields: {'${X}': '${X}'}}",
    "logger: {static_fields: {'${X}': '${X}'}}",
    "buffer: {system_window: {size: '${X}', late_output: '${X}'}}",
    "pipeline: {processors: [{mapping: 'root = \"${X}\"'}]}",
    "pipeline: {processors: [{mapping: 'root = ${X}('}]}",
    "pipeline: {processors: [{group_by_value: {value: '${X}'}}]}",
    "pipeline: {processors: [{log: {message: '${X}'}}, {resource: '${X}'}]}",
    "pipeline: {threads: '${X}'}",
    "tests: [{name: '${X}', input_batch: [{content: '${X}'}], output_batches: [[{x: 1}]]}]",
    "a: '${X|base64decode}'",
    "http: {basic_auth: {salt: '${X}', algorithm: '${X}'}}",
)


@pytest.mark.parametrize("text", ENVIRONMENT)
@pytest.mark.parametrize(
    "value", [SECRET, SECRET * 5, f"{SECRET}'\"\\ü", f"a\n{SECRET}", f"- {SECRET}", f"{{{SECRET}"]
)
def test_what_a_variable_holds_is_not_shown(
    text: str,
    value: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("X", value)
    file = tmp_path / "c.yaml"
    file.write_text(text)
    hides = [command for command in COMMANDS if "--show-env" not in command]
    assert SECRET not in printed(capsys, file, *hides)


@pytest.mark.parametrize("expression", [f"spark.conf={SECRET}", f"spark.conf.password={SECRET}"])
def test_what_the_command_line_sets_is_not_shown(
    expression: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("input: {stdin: {}}")
    arguments = ("--set", expression)
    shown = printed(capsys, file, ("explain",), ("echo",), ("graph",), arguments=arguments)
    assert SECRET not in shown


def test_secrets_of_a_resource_file_are_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("X", SECRET)
    (tmp_path / "r.yaml").write_text(
        "output_resources: [{label: '${X}', file: {path: '${X}'}}, {label: b, file: {pth: '${X}'}}]"
    )
    file = tmp_path / "c.yaml"
    file.write_text("output: {resource: '${X}'}")
    arguments = ("-r", str(tmp_path / "r.yaml"))
    assert SECRET not in printed(capsys, file, *LINTS, ("explain",), arguments=arguments)


TESTED: Final = """\
buffer: {system_window: {timestamp_mapping: 'root = this.at.or("${X}")', size: 10s}}
pipeline:
  processors:
    - label: '${X}'
      mapping: |
        root = content().string() + "${X}"
        meta asked = env("X")
    - log: { message: 'logged ${X} ${! @asked }' }
    - mapping: root = throw("thrown ${X}")
    - '${X}': {}
"""


@pytest.mark.parametrize(
    "case",
    [
        "target_processors: /pipeline/processors/0",
        "target_processors: /pipeline/processors/1",
        "target_processors: /pipeline/processors/2",
        "target_processors: /pipeline/processors/3",
        "target_processors: /pipeline/processors/3/a",
        "target_processors: missing",
        "mocks: { missing: { noop: {} } }",
        "mocks: { /pipeline/processors/3/a: { noop: {} } }",
        "target: stream, clock: 2026-01-01T00:00:00Z, steps: [{ send: [{ content: a }] }]",
        "target: stream, clock: 2026-01-01T00:00:00Z, steps: [{ send: [{ content: a }] }], "
        "dropped: {}, mocks: { /pipeline/processors/3: { noop: {} } }",
    ],
)
def test_what_tests_print_is_without_secrets(
    case: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("X", SECRET)
    file, junit = tmp_path / "c.yaml", tmp_path / "out.xml"
    batch = "" if "stream" in case else ", input_batch: [{ content: a }]"
    file.write_text(f"{TESTED}tests:\n  - {{ name: x, {case}{batch} }}\n")
    assert invoke(["test", "--log", "all", "--junit", str(junit), str(file)]) == 1
    out, err = capsys.readouterr()
    assert "${X}" in out
    assert SECRET not in out + err + junit.read_text()


def test_a_variable_that_a_test_sets_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(
        "pipeline: { processors: [{ mapping: 'root = \"${X}\"' }] }\n"
        "tests: [{ name: x, environment: { X: as written }, input_batch: [{ content: a }] }]\n"
    )
    assert invoke(["test", str(file)]) == 1
    assert "received: as written" in capsys.readouterr().out
    # Not even where another config's test has had it in a variable.
    other = tmp_path / "d.yaml"
    other.write_text(
        "pipeline: { processors: [{ mapping: root = env('X') }] }\n".replace("'", '"')
        + "tests:\n  - { name: x, environment: { X: as written }, input_batch: [{ content: a }] }\n"
        "  - { name: y, input_batch: [{ content: b }], mocks: { /pipeline/processors/0: "
        "{ mapping: 'root = \"as written\"' } } }\n"
    )
    assert invoke(["test", str(other), str(file)]) == 1
    assert capsys.readouterr().out.count("received: as written") == 3


RUN: Final = f"""\
pipeline: {{processors: [mapping: 'root = env("ASKED")']}}
input: {{file: {{paths: ["${{X}}"]}}}}
output: {{file: {{path: "http://u:url-{SECRET}@h"}}}}
logger: {{static_fields: {{who: "${{X}}"}}}}
spark: {{checkpoint: "DIR/${{X}}", conf: {{spark.password: conf-{SECRET}}}}}
"""


@pytest.mark.parametrize(
    "command",
    [
        ("tap", "--input", "in.txt"),
        ("tap", "--input", "in.txt", "--format", "json"),
        *(("timeline", "--input", "in.txt", "--format", form) for form in ("text", "json", "svg")),
    ],
    ids=" ".join,
)
def test_what_is_shown_of_messages_has_variables_by_their_names(
    command: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("X", SECRET + "<&>")
    monkeypatch.setenv("ASKED", f"asked-{SECRET}")
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text(f"1\n2 {SECRET}<&>\n3\n")
    Path("c.yaml").write_text(
        "input:\n  label: in\n  stdin: {}\n  processors:\n"
        '    - mapping: root = if content() == "3" { throw("${X}" + env("ASKED")) }\n'
        "    - log: { message: '${X} ${! @asked }' }\n"
        "buffer: { system_window: { size: 10s } }\n"
        "pipeline: { processors: [mapping: 'root = \"${X}\"'] }\n"
    )
    assert invoke([*command, "c.yaml"]) == 0
    out, err = capsys.readouterr()
    assert "${X}" in out
    assert "${ASKED}" in out
    assert SECRET not in out + err


def test_tap_shows_what_variables_hold_when_it_is_asked_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("X", "of a variable")
    file, sample = tmp_path / "c.yaml", tmp_path / "in.txt"
    sample.write_text("a\n")
    file.write_text(f"{{pipeline: {{processors: [mapping: 'root = \"${{X}} {URL}\"']}}}}")
    assert invoke(["tap", str(file), "--input", str(sample), "--show-env"]) == 0
    out = capsys.readouterr().out
    assert "of a variable" in out
    assert SECRET not in out


@pytest.mark.parametrize("form", ["logfmt", "json"])
def test_the_log_and_the_errors_of_a_run_are_without_secrets(
    form: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("X", f"env-{SECRET}")
    monkeypatch.setenv("ASKED", f"asked-{SECRET}")
    said = f"asked-{SECRET} env-{SECRET} url-{SECRET} conf-{SECRET} ftp://u:{SECRET}@h"

    def fails(run: Any) -> int:
        run.log("WARN", f"in a message: {said}", {"a": said, "deep": {"list": [said]}})
        raise StreamerError(f"in an error: {said}")

    monkeypatch.setattr(run_module, "_run_stream", fails)
    file = tmp_path / "c.yaml"
    file.write_text(RUN.replace("DIR", str(tmp_path)))
    assert invoke(["run", str(file), "-s", f"logger.format={form}"]) == 1
    out, err = capsys.readouterr()
    assert "in a message" in err
    assert "in an error" in err
    assert SECRET not in out + err


@pytest.mark.parametrize(
    "text",
    [
        "logger: {file: {path: '/dev/null/${X}/log'}}",
        "spark: {checkpoint: '/dev/null/${X}'}",
        "spark: {master: '${X}', checkpoint: '/dev/null/${X}'}",
    ],
)
def test_a_run_that_cannot_begin_says_so_without_secrets(
    text: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("X", SECRET)
    file = tmp_path / "c.yaml"
    file.write_text(text)
    assert invoke(["run", str(file)]) == 1
    out, err = capsys.readouterr()
    assert "${X}" in err
    assert SECRET not in out + err
