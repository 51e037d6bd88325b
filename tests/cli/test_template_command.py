"""`streamer template lint`, and `-t` of the commands around a config."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.cli.main import invoke

SHOUT = """\
name: shout
type: processor
summary: Says it louder.
fields: [ { name: mark, type: string } ]
mapping: 'root.mapping = "root = content().uppercase() + \\"" + this.mark + "\\""'
tests:
  - name: it is loud
    config: { mark: '!' }
    expected: { mapping: 'root = content().uppercase() + "!"' }
"""
CONFIG = """\
pipeline: { processors: [ { shout: { mark: '?' } } ] }
tests:
  - name: it asks
    input_batch: [ { content: a } ]
    output_batches: [ [ { content_equals: 'A?' } ] ]
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shout.yaml").write_text(SHOUT)
    Path("c.yaml").write_text(CONFIG)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = invoke(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def test_a_template_without_findings_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "template", "lint", "shout.yaml") == (0, "", "")
    assert run(capsys, "template", "lint", "--verbose", "shout.yaml") == (0, "shout.yaml: OK\n", "")


NUMBERED = """\
name: numbered
type: processor
fields:
  - { name: n, type: int, default: 7 }
  - { name: f, type: float, default: 2.5 }
  - { name: many, type: int, kind: list, default: [1, 2] }
  - { name: named, type: float, kind: map, default: { a: 2 } }
  - { name: any, type: unknown, default: { count: 9 } }
mapping: |
  map one { root = "%d".format(this.many.index(0)) }
  let f = this.f
  root.mapping = "root = \\"%d %.1f %v %s %T %.2f %.1f %d %v\\"".format(
    this.n, this.f, this.n, this.apply("one"), this.n, this.named.a, $f, this.any.count, this.any)
tests:
  - name: set
    config: { n: 768, f: 3, many: [3], named: { a: 0.5 }, any: { count: 4 } }
    expected: { mapping: 'root = "768 3.0 768 3 int64 0.50 3.0 4 map[count:4]"' }
  - name: defaults
    config: {}
    expected: { mapping: 'root = "7 2.5 7 1 int64 2.00 2.5 9 map[count:9]"' }
"""


def test_fields_of_a_template_are_numbers_and_not_those_of_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("n.yaml").write_text(NUMBERED)
    assert run(capsys, "template", "lint", "n.yaml") == (0, "", "")


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ("$label", ""),
        ("$lable", "the variable 'lable' is never set before this; did you mean 'label'?"),
    ],
)
def test_the_label_is_a_variable_of_a_metrics_mapping(
    variable: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mapped = f'metrics_mapping: |\n  meta label = {variable} | ""\n  root = this\n'
    Path("shout.yaml").write_text(SHOUT + mapped)
    code, _, err = run(capsys, "template", "lint", "shout.yaml")
    assert (code, bool(err), expected in err) == (int(bool(expected)), bool(expected), True)
    # It is none of the mapping's own.
    Path("shout.yaml").write_text(SHOUT.replace("this.mark", "$label"))
    assert "'label' is never set" in run(capsys, "template", "lint", "shout.yaml")[2]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("type: processor", "type: thing", "shout.yaml(2,7) field type: value 'thing' is not one "),
        (
            "expected: { mapping: 'root =",
            "expected: { mapping: 'root  =",
            "shout.yaml(9,15) test 'it is loud': it makes something else:\n  at mapping:\n"
            '    expected: "root  = content().uppercase() + \\"!\\""\n'
            '    received: "root = content().uppercase() + \\"!\\""\n',
        ),
        (
            "config: { mark",
            "config: { mrk",
            "shout.yaml(8,13) test 'it is loud': field mark is required\n"
            "shout.yaml(8,15) test 'it is loud': field mrk not recognised; did you mean mark?\n",
        ),
        (
            "mark: '!'",
            "mark: '\"'",
            "shout.yaml(7,11) test 'it is loud': template shout, of what shout.yaml makes: ",
        ),
        (
            "+ this.mark",
            "+ this.mark.number()",
            "shout.yaml(7,11) test 'it is loud': its mapping fails: failed assignment (line 1): ",
        ),
    ],
)
def test_what_is_wrong_is_placed_in_the_file(
    capsys: pytest.CaptureFixture[str], old: str, new: str, expected: str
) -> None:
    Path("shout.yaml").write_text(SHOUT.replace(old, new))
    code, out, err = run(capsys, "template", "lint", ".")
    assert (code, out) == (1, "")
    assert expected in err


def test_a_template_goes_before_or_after_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "lint", "-t", "sh*.yaml", "c.yaml") == (0, "", "")
    assert run(capsys, "-t", "shout.yaml", "lint", "c.yaml") == (0, "", "")
    code, _, err = run(capsys, "lint", "c.yaml")
    assert code == 1 and "processor 'shout' is not known" in err


def test_a_template_is_unit_tested_with_its_config(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "test", "-t", "shout.yaml", "c.yaml")
    assert (code, err) == (0, "")
    assert "1 passed" in out


def test_a_template_is_listed_and_in_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "list", "-t", "shout.yaml", "processors", "shout")
    assert code == 0 and "Says it louder." in out
    code, out, _ = run(capsys, "list", "-t", "shout.yaml", "--format", "jsonschema")
    assert code == 0 and '"Says it louder."' in out


def test_a_template_that_is_wrong_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    Path("shout.yaml").write_text(SHOUT.replace("type: processor", "type: thing"))
    code, out, err = run(capsys, "lint", "-t", "shout.yaml", "c.yaml")
    assert (code, out) == (1, "") and err.startswith("shout.yaml(2,7) field type: ")


def test_what_never_works_in_a_template_is_told_beside_its_tests(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("bad.yaml").write_text(
        "name: bad\ntype: processor\nmapping: |\n  root.mapping = $nope\n"
        "tests: [{name: one, config: {}}]\n"
    )
    code, out, err = run(capsys, "template", "lint", "bad.yaml")
    assert (code, out) == (1, "")
    assert err == (
        "bad.yaml(4,18) the variable 'nope' is never set before this\n"
        "bad.yaml(5,16) test 'one': its mapping fails: failed assignment (line 1): "
        "variable 'nope' undefined, at bad.yaml(4,3)\n"
    )


def test_a_directory_without_templates_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    said = "error: there is no .yaml or .yml file in empty\n"
    assert run(capsys, "template", "lint", "empty") == (1, "", said)
