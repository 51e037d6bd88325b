"""Templates: what their files may hold, what a config makes of their use, and what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from streamer.components import catalog
from streamer.components.catalog import build_context
from streamer.config import Config, lint_config, load_config
from streamer.config.templates.file import lint_template
from streamer.config.templates.installation import install_templates
from streamer.core.errors import ConfigError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.spec import Kind

SHOUT = """\
name: shout
type: processor
summary: Says it louder.
fields:
  - name: mark
    type: string
    default: '!'
  - name: times
    type: int
mapping: |
  let marks = range(0, this.times).map_each(_ -> this.mark).join("")
  root.try = [
    { "mapping": "root = content().uppercase()" },
    { "mutation": "root = content() + \\"" + $marks + "\\"" },
  ]
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@contextmanager
def templates(*texts: str) -> Iterator[None]:
    files = [f"t{number}.yaml" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        Path(file).write_text(text)
    with install_templates(files):
        yield


def load(text: str) -> Config:
    Path("c.yaml").write_text(dedent(text))
    return load_config("c.yaml", env={})


def findings(text: str) -> list[str]:
    Path("c.yaml").write_text(dedent(text))
    return [str(lint) for lint in lint_config("c.yaml", env={})]


def wrong(text: str) -> list[str]:
    Path("t.yaml").write_text(dedent(text))
    return [str(lint).removeprefix("t.yaml") for lint in lint_template("t.yaml")[1]]


def template(body: str, kind: str = "processor", name: str = "x") -> str:
    return f"name: {name}\ntype: {kind}\n{dedent(body)}"


def test_a_template_is_a_component_like_any_other() -> None:
    with templates(SHOUT):
        config = load("pipeline: { processors: [ { label: a, shout: { times: 2 } } ] }")
    [component] = config.processors
    assert (component.name, component.label, component.path) == (
        "try",
        "a",
        "pipeline.processors.0",
    )
    assert (component.line, component.column) == (1, 39)
    [processor] = build_context().build_all(config.processors)
    [[message]] = processor.process([Message(b"hi")], Execution(lambda: 0))
    assert message.raw == b"HI!!"


def test_it_is_listed_as_long_as_it_is_installed() -> None:
    with templates(SHOUT):
        assert "shout" in catalog.component_names(Kind.PROCESSOR)
        spec = catalog.find_spec(Kind.PROCESSOR, "shout")
        assert spec is not None and spec.summary == "Says it louder."
        assert [(field.name, field.required) for field in spec.fields] == [
            ("mark", False),
            ("times", True),
        ]
        assert spec in list(catalog.all_specs())
    assert "shout" not in catalog.component_names(Kind.PROCESSOR)
    assert catalog.find_spec(Kind.PROCESSOR, "shout") is None


def test_fields_have_their_types_kinds_and_defaults() -> None:
    text = template(
        """\
        fields:
          - { name: s, type: string, default: a }
          - { name: i, type: int, default: 1 }
          - { name: f, type: float, default: 1.5 }
          - { name: b, type: bool, default: true }
          - { name: l, type: string, kind: list, default: [a, b] }
          - { name: m, type: int, kind: map, default: { a: 1 } }
          - { name: u, type: unknown, default: { any: [1, { thing: null }] } }
          - { name: e, type: string_enum, options: [one, two], default: two }
          - { name: n, type: string_annotated_enum, options: { x: the x }, default: x }
          - { name: p, type: bloblang, default: root = this }
        mapping: 'root.log.fields_mapping = "root = " + this.format_json(no_indent: true).string()'
        """
    )
    with templates(text):
        config = load("pipeline: { processors: [ { x: {} }, { x: { l: [c], i: 7 } } ] }")
    first, second = (one.config["fields_mapping"] for one in config.processors)
    everything = (
        'root = {"b":true,"e":"two","f":1.5,"i":1,"l":["a","b"],"m":{"a":1},"n":"x",'
        '"p":"root = this","s":"a","u":{"any":[1,{"thing":null}]}}'
    )
    assert first == everything
    assert second == everything.replace('["a","b"]', '["c"]').replace('"i":1', '"i":7')


def test_the_label_can_be_asked_for_and_one_of_the_mapping_wins() -> None:
    asks = template("fields: []\nmapping: 'root.log.message = @label'")
    sets = template('fields: []\nmapping: \'root = {"label": "mine", "noop": {}}\'', name="y")
    with templates(asks, sets):
        config = load(
            "pipeline: { processors: [ { label: a, x: {} }, { x: {} }, { label: b, y: {} } ] }"
        )
    assert [one.config["message"] for one in config.processors[:2]] == ["a", ""]
    assert [one.label for one in config.processors] == ["a", "", "mine"]


def test_processors_of_an_input_run_after_those_of_its_template_of_an_output_before() -> None:
    source = template(
        'fields: []\nmapping: \'root = {"stdin": {}, "processors": [{"mapping": "root = 2"}]}\'',
        "input",
    )
    target = source.replace("type: input", "type: output").replace("stdin", "stdout")
    use = "{ x: {}, processors: [ { mapping: root = 1 } ] }"
    with templates(source, target):
        config = load(f"input: {use}\noutput: {use}")
    assert (config.input.name, config.output.name) == ("stdin", "stdout")
    assert [one.config for one in config.input.processors] == ["root = 2", "root = 1"]
    assert [one.config for one in config.output.processors] == ["root = 1", "root = 2"]


def test_a_resource_is_known_by_the_label_that_is_written() -> None:
    text = template('fields: []\nmapping: \'root = {"label": "mine", "noop": {}}\'')
    with templates(text):
        config = load(
            "pipeline: { processors: [ { resource: its } ] }\n"
            "processor_resources: [ { label: its, x: {} } ]\n"
        )
    assert list(config.resources) == [(Kind.PROCESSOR, "its")]


def test_a_template_may_use_another_and_what_it_refers_to_is_looked_for() -> None:
    outer = template("fields: []\nmapping: 'root.y = {}'")
    inner = template("fields: []\nmapping: 'root.resource = \"gone\"'", name="y")
    with templates(outer, inner):
        assert findings("pipeline: { processors: [ { x: {} } ] }") == [
            "c.yaml(1,29) there is no processor resource with the label 'gone'; "
            "processor_resources has none"
        ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "fields: []\nmapping: |\n  let a = 1\n  root = this.a.not_null()",
            "its mapping fails: failed assignment (line 2): field `this.a`: value is null, "
            "at t0.yaml(6,3)",
        ),
        (
            "fields: []\nmapping: root = deleted()",
            "its mapping makes nothing, expected an object, at t0.yaml(4,10)",
        ),
        (
            "fields: []\nmapping: root = [1]",
            "its mapping makes an array, expected an object, at t0.yaml(4,10)",
        ),
        (
            "fields: []\nmapping: root = 5",
            "its mapping makes a plain value, expected an object, at t0.yaml(4,10)",
        ),
        (
            "fields: []\nmapping: root.x = {}",
            "of what t0.yaml makes: template x: it uses itself: x → x",
        ),
        (
            "fields: []\nmapping: root.nop = {}",
            "of what t0.yaml makes: processor 'nop' is not known; did you mean noop?",
        ),
        (
            "fields: []\nmapping: root.log.level = 'LOUD'".replace("'", '"'),
            "of what t0.yaml makes: field level is 'LOUD'; expected one of "
            "ERROR, WARN, INFO, DEBUG, TRACE",
        ),
    ],
)
def test_what_goes_wrong_names_the_template_at_the_place_of_its_use(
    text: str, expected: str
) -> None:
    with templates(template(text)):
        found = findings("pipeline:\n  processors:\n    - x: {}\n")
    assert [line.replace("template x, of", "template x: of") for line in found] == [
        f"c.yaml(3,7) template x: {expected}"
    ]


def test_the_fields_of_a_template_are_linted_where_they_are_set() -> None:
    with templates(SHOUT):
        assert findings("pipeline:\n  processors:\n    - shout: { mark: x, tims: 2 }\n") == [
            "c.yaml(3,7) field times is required in shout",
            "c.yaml(3,25) field tims not recognised; did you mean times?",
        ]
        assert findings("pipeline:\n  processors:\n    - shuot: {}\n") == [
            "c.yaml(3,7) processor 'shuot' is not known; did you mean shout?"
        ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", ["(1,1) a template is an object, got an array; begin with `name:`"]),
        (
            "name: x\ntype: processor\nfields: []\n",
            ["(1,1) field mapping is required"],
        ),
        (
            "name: x\ntype: buffer\nfields: []\nmapping: root = this",
            [
                "(2,7) field type: value 'buffer' is not one of "
                "cache, input, output, processor, rate_limit"
            ],
        ),
        (
            template("fields: []\nmapping: |\n  root.a = 1\n  root.b = nope()"),
            ["(6,18) unrecognised function 'nope'"],
        ),
        (
            template("fields: []\nmapping: root = this\nmetrics_mapping: root ="),
            ["(5,24) expected whitespace"],
        ),
        (template("fields: []\nmapping: ''"), ["(4,10) the mapping is empty"]),
        (
            template("fields: []\nmapping: root = this", name="A-b"),
            [
                "(1,7) a template cannot have the name 'A-b'; a name has lower case letters and "
                "digits, in parts with single _ between them"
            ],
        ),
        (
            template("fields: [{ name: a, type: text }]\nmapping: root = this"),
            [
                "(3,27) field type: value 'text' is not one of string, string_enum, "
                "string_annotated_enum, int, float, bool, bloblang, unknown"
            ],
        ),
        (
            template("fields: [{ name: a }, { name: b, type: int, kind: set }]\nmapping: root = 1"),
            [
                "(3,10) field type is required",
                "(3,51) field kind: value 'set' is not one of scalar, map, list",
            ],
        ),
        (
            template("fields: [{ name: a, type: int, default: b }]\nmapping: root = this"),
            ["(3,41) field a: expected int value, got a string 'b'"],
        ),
        (
            template(
                "fields: [{ name: a, type: int }, { name: a, type: int }]\nmapping: root = this"
            ),
            ["(3,42) there are two fields of the name 'a'; rename one of them"],
        ),
        (
            template("fields: [{ name: a, type: string_enum }]\nmapping: root = this"),
            [
                "(3,10) field options of a: a string_enum has a list of texts; "
                "name at least one value"
            ],
        ),
        (
            template(
                "fields: [{ name: a, type: string_enum, options: [1] }]\nmapping: root = this"
            ),
            ["(3,49) field options of a: expected a list of texts; quote what is no text"],
        ),
        (
            template(
                "fields: [{ name: a, type: string_enum, options: [b, b] }]\nmapping: root = this"
            ),
            ["(3,49) field options of a: a value is listed twice"],
        ),
        (
            template(
                "fields: [{ name: a, type: bool, default: b }, { name: b, kind: set }, 5]\n"
                "mapping: root = nope()"
            ),
            [
                "(3,42) field a: expected bool value, got a string 'b'",
                "(3,47) field type is required",
                "(3,64) field kind: value 'set' is not one of scalar, map, list",
                "(3,71) field fields: expected object value, got a number 5",
                "(4,23) unrecognised function 'nope'",
            ],
        ),
        (template("mapping: root.noop = {}"), []),
    ],
)
def test_what_is_wrong_with_a_template_is_placed_in_it(text: str, expected: list[str]) -> None:
    assert wrong(text) == expected


def test_two_templates_of_one_component_are_both_placed() -> None:
    with (
        pytest.raises(ConfigError) as raised,
        templates(SHOUT, "# another\n" + SHOUT),
    ):
        pass
    assert str(raised.value) == (
        "t1.yaml(2,7) the processor 'shout' is made by another template already, at t0.yaml(1,7); "
        "rename one of them"
    )


def test_a_template_that_cannot_be_read_is_refused() -> None:
    template, lints = lint_template("gone.yaml")
    assert template is None
    assert str(ConfigError(lints)).startswith("gone.yaml(1,1) there is no such file")
