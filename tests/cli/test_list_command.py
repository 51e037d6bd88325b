from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest

from streamer.bloblang.catalog import FUNCTIONS, METHODS
from streamer.cli.listing import LISTS
from streamer.cli.main import invoke
from streamer.components import catalog
from streamer.config.sections import SECTIONS
from streamer.sdk.spec import Kind

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def listed(capfd: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = invoke(["list", *arguments])
        return (code, *capfd.readouterr())

    return run


@pytest.fixture
def data(listed: Run) -> Callable[..., Any]:
    def run(*arguments: str) -> Any:
        code, out, err = listed(*arguments)
        assert (code, err, out.count("\n")) == (0, "", 1)
        return json.loads(out)

    return run


def test_lists_are_printed_as_benthos_prints_them_and_with_a_line_about_each(listed: Run) -> None:
    code, out, err = listed("scanners", "buffers")
    assert (code, err) == (0, "")
    assert out.startswith("Buffers:\n  - count_window     (beta) Divides a stream into windows of")
    assert max(map(len, out.splitlines())) <= 100
    names = re.findall(r"^  - (\S+)  +\S", out, re.M)
    kinds = (Kind.BUFFER, Kind.SCANNER)
    assert names == [name for kind in kinds for name in sorted(catalog.component_names(kind))]


def test_summaries_are_there_for_programs(data: Callable[..., Any]) -> None:
    assert data("rate-limits", "--json") == {
        "rate-limits": [
            {"name": spec.name, "status": spec.status, "summary": spec.summary}
            for spec in sorted(catalog.all_specs(), key=lambda spec: spec.name)
            if spec.kind == Kind.RATE_LIMIT
        ]
    }


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("outputs azure_queue_storage", "it is one of Redpanda Connect's own"),
        ("processors awk", "GoAWK, which has no equal for Python"),
    ],
)
def test_a_component_that_benthos_has_is_known(listed: Run, words: str, error: str) -> None:
    code, out, err = listed(*words.split())
    assert (code, out) == (1, "")
    assert error in err
    assert "`streamer list " in err


def test_without_names_everything_is_listed(listed: Run, data: Callable[..., Any]) -> None:
    _, out, _ = listed()
    titles = [line for line in out.split("\n") if line.endswith(":")]
    assert titles[:2] + titles[-2:] == [
        "Inputs:",
        "Processors:",
        "Bloblang Functions:",
        "Bloblang Methods:",
    ]
    everything = data("--format", "json")
    assert tuple(everything) == LISTS
    assert everything["rate-limits"] == sorted(catalog.component_names(Kind.RATE_LIMIT))


@pytest.mark.parametrize(
    ("name", "declared"), [("bloblang-functions", FUNCTIONS), ("bloblang-methods", METHODS)]
)
def test_functions_and_methods_are_listed_as_they_are_declared(
    data: Callable[..., Any], name: str, declared: Any
) -> None:
    entries = data(name, "--format", "json")[name]
    assert [entry["name"] for entry in entries] == sorted(declared)
    for entry in entries:
        one = declared[entry["name"]]
        assert (entry["category"], entry["summary"]) == (one.category, one.summary)
        assert [param["name"] for param in entry["params"]] == [p.name for p in one.params]
        assert entry["origin"] in ("benthos", "connect", "streamer")
        assert entry["status"] == ("deprecated" if one.deprecated else "stable")


def test_parameters_say_what_they_are_without_an_argument(data: Callable[..., Any]) -> None:
    (found,) = data("bloblang-functions", "range", "--format", "json")["bloblang-functions"]
    assert found["params"] == [
        {"name": "start", "type": "integer", "required": True},
        {"name": "stop", "type": "integer", "required": True},
        {"name": "step", "type": "integer", "required": False, "default": 1},
    ]
    assert found["signature"] == "range(start, stop, step = 1)"
    assert {"mapping": "root = range(4, 0, -2)", "input": "{}", "output": "[4,2]"} in found[
        "examples"
    ]


def test_one_name_is_shown_in_full(listed: Run) -> None:
    code, out, _ = listed("bloblang-methods", "trim_prefix")
    assert code == 0
    assert out.startswith(".trim_prefix(prefix)\n  ")
    assert "\n  prefix: string\n" in out
    assert "\n  # Out: " in out
    code, out, _ = listed("buffers", "memory")
    assert out.startswith("memory\n  ")
    assert "\n  limit: int, 524288000 by default. " in out
    code, out, _ = listed("processors", "log")
    assert "\n  fields_mapping: mapping, optional. " in out
    assert "\n  fields: map of string, optional. " in out
    code, out, _ = listed("inputs", "file")
    assert "\n  paths: list of string, required. " in out


def test_components_come_with_their_fields_when_asked(data: Callable[..., Any]) -> None:
    (spec,) = data("inputs", "file", "--format", "json-full")["inputs"]
    fields = {field["name"]: field for field in spec["config"]["children"]}
    expected = catalog.find_spec(Kind.INPUT, "file")
    assert expected is not None
    assert list(fields) == [field.name for field in expected.fields]
    assert fields["paths"]["kind"] == "array" and "default" not in fields["paths"]
    assert fields["delete_on_finish"]["default"] is False


def test_everything_in_full_has_the_sections_of_a_config_too(data: Callable[..., Any]) -> None:
    full = data("--format", "json-full")
    assert [section["name"] for section in full["config"]] == [one.name for one in SECTIONS]
    assert set(full) == {*LISTS, "config"}


def test_a_scrubbed_list_has_every_field_and_no_prose(data: Callable[..., Any]) -> None:
    full, scrubbed = (data("--format", form) for form in ("json-full", "json-full-scrubbed"))
    prose = ("summary", "description", "examples")

    def names_in(value: Any) -> Iterator[str]:
        parts = value.values() if isinstance(value, dict) else value
        yield from value if isinstance(value, dict) else ()
        if isinstance(value, dict | list):
            for part in parts:
                yield from names_in(part)

    def without_prose(value: Any) -> Any:
        if isinstance(value, list):
            return [without_prose(item) for item in value]
        if isinstance(value, dict):
            return {
                name: item if name == "default" else without_prose(item)
                for name, item in value.items()
                if name not in prose
            }
        return value

    assert scrubbed == without_prose(full)
    assert set(prose) & set(names_in(scrubbed)) == set()


def test_a_status_narrows_the_lists(data: Callable[..., Any]) -> None:
    found = data("bloblang-methods", "--format", "json", "--status", "deprecated")
    names = [entry["name"] for entry in found["bloblang-methods"]]
    assert names == sorted(one.name for one in METHODS.values() if one.deprecated)


def test_the_schema_of_a_config_can_be_had(listed: Run) -> None:
    _, out, _ = listed("--format", "jsonschema")
    jsonschema.Draft7Validator.check_schema(json.loads(out))
    assert json.loads(out)["title"] == "A config of streamer"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["input"], "error: there is no list 'input'; did you mean inputs?\n"),
        (["xyz"], "error: there is no list 'xyz'; the lists are inputs, processors, outputs, "),
        (
            ["bloblang-methods", "upercase"],
            "error: there is no 'upercase' among bloblang-methods; did you mean uppercase?\n",
        ),
        (
            ["inputs", "output"],
            "error: there is no 'output' among inputs; did you mean outputs?\n",
        ),
        (["--format", "cue"], "cue is not available; CUE's own tool makes it of the JSON Schema"),
        (["--format", "xml"], "'xml' is not one of 'text', 'json', 'json-full', "),
    ],
)
def test_what_does_not_exist_is_told(listed: Run, arguments: list[str], said: str) -> None:
    code, out, err = listed(*arguments)
    assert (code, out) == (1, "")
    assert said in err
