"""`import` and `from`: maps and whole mappings from other files; what they say when that fails."""
# ruff: noqa: E501 - tables of whole error texts

import pytest

from streamer.bloblang import BloblangError, compile_mapping
from streamer.core.message import Message
from tests.bloblang.running import execution, run

FILES = {
    "one.blobl": "map one {\n  root.x = this.v.uppercase()\n}\nroot.ignored = @never\n",
    "sub/two.blobl": 'import "three.blobl"\nmap two {\n  root = this.apply("three")\n}\n',
    "sub/three.blobl": 'map three {\n  root = file_rel("data.txt").string()\n}\n',
    "sub/data.txt": "hello",
    "bad.blobl": "map one {\n  root.x = this.v.nonsense()\n}\n",
    "leads_to_bad.blobl": 'map q {\n  root = 1\n}\nimport "bad.blobl"\n',
    "no_maps.blobl": "root.x = 1\n",
    "whole.blobl": 'import "one.blobl"\n# note\nroot.r = this.apply("one")\n',
    "expression.blobl": "this.foo",
    "a.blobl": 'import "b.blobl"\nmap a {\n  root = 1\n}\n',
    "b.blobl": 'import "a.blobl"\nmap b {\n  root = 1\n}\n',
}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("mapping", "result"),
    [
        ('import "one.blobl"\nroot = this.apply("one")', '{"x":"K"}'),
        ('root = this.apply(this.f)\nimport "one.blobl"', '{"x":"K"}'),
        ('import "one.blobl"', '{"v":"k","f":"one"}'),
        ('import "sub/two.blobl"\nroot = this.apply("two")', "hello"),
        ('import "sub/two.blobl"\nroot = this.apply("three")', "hello"),
        ('from "whole.blobl"', '{"r":{"x":"K"}}'),
        ('# a word\n  from "./whole.blobl" # and one more\n', '{"r":{"x":"K"}}'),
        ("from", "null"),
        ("from = 1", '{"from":1}'),
    ],
)
def test_maps_and_mappings_come_from_files(mapping, result):
    assert run(mapping, '{"v":"k","f":"one"}') == result


@pytest.mark.parametrize(
    ("mapping", "line", "message"),
    [
        ('import "none.blobl"', 1, "failed to read import: open {dir}/none.blobl: no such file or directory"),
        ('import "sub"', 1, "failed to read import: read {dir}/sub: is a directory"),
        ('root = 1\nimport "no_maps.blobl"', 2, "no maps to import from 'no_maps.blobl'"),
        ('import "one.blobl"\nimport "one.blobl"', 2, "map name collisions from import 'one.blobl': [one]"),
        ('import "one.blobl"\nmap one {\n  root = 1\n}', 2, "map name collision: one"),
        ('map one {\n  root = 1\n}\nimport "one.blobl"', 4, "map name collisions from import 'one.blobl': [one]"),
        ('from "whole.blobl"\nroot = 1', 1, "unexpected content after single root import: root = 1"),
        ('from "none.blobl"', 1, "failed to read import: open {dir}/none.blobl: no such file or directory"),
        ('import "a.blobl"', 1, "failed to parse import 'a.blobl': line 1 char 1: failed to parse import 'b.blobl': line 1 char 1: failed to read import: import cycle: 'a.blobl' is being imported already"),
    ],
)  # fmt: skip
def test_an_import_that_fails_says_why(mapping, line, message, files):
    with pytest.raises(BloblangError) as caught:
        compile_mapping(mapping)
    assert caught.value.message == message.replace("{dir}", str(files))
    assert (caught.value.line, caught.value.column) == (line, 1)


@pytest.mark.parametrize(
    ("mapping", "begin"),
    [
        ('import "bad.blobl"', "failed to parse import 'bad.blobl': line 2 char "),
        ('from "bad.blobl"', "failed to parse import 'bad.blobl': line 2 char "),
        ('from "expression.blobl"', "failed to parse import 'expression.blobl': line 1 char 9: "),
        (
            'import "leads_to_bad.blobl"',
            "failed to parse import 'leads_to_bad.blobl': line 4 char 1: "
            "failed to parse import 'bad.blobl': line 2 char ",
        ),
    ],
)
def test_an_error_in_an_imported_file_carries_its_place_there(mapping, begin):
    with pytest.raises(BloblangError) as caught:
        compile_mapping(mapping)
    assert caught.value.message.startswith(begin)


def test_a_failure_at_run_time_counts_lines_of_the_map_and_of_the_imported_file():
    found = run('import "one.blobl"\n\nroot = this.apply("one")', '{"v":1}')
    assert found.startswith(
        'Error("failed assignment (line 3): failed assignment (line 2): expected'
    )
    assert run('from "whole.blobl"', '{"v":1}').startswith('Error("failed assignment (line 3): ')


def test_relative_paths_begin_where_the_caller_says(files, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    mapping = 'import "two.blobl"\nroot = this.apply("two") + file_rel("data.txt").string()'
    compiled = compile_mapping(mapping, directory=str(files / "sub"))
    assert compiled.query([Message(b"{}")], 0, execution()) == "hellohello"


def test_what_only_an_imported_statement_uses_is_not_claimed():
    assert not compile_mapping('import "one.blobl"\nroot = this.apply("one")').uses.meta


def test_a_file_that_changes_is_read_again_by_the_next_compilation(files):
    mapping = 'import "one.blobl"\nroot = this.apply("one")'
    first = compile_mapping(mapping)
    assert compile_mapping(mapping) is first
    (files / "one.blobl").write_text("map one {\n  root = 2\n}\n")
    assert run(mapping) == "2"
    assert compile_mapping(mapping) is not first
