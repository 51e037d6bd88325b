from __future__ import annotations

import time
from textwrap import dedent

import pytest

from streamer.config.findings import Findings
from streamer.config.nodes import to_python
from streamer.config.source_map import Source
from streamer.config.yaml_reader import MAX_DEPTH, read_yaml


def read(text: str) -> tuple[object, list[str]]:
    found = Findings()
    node = read_yaml(Source("f", text), found)
    return None if node is None else to_python(node), [str(lint) for lint in found.to_sorted()]


def test_maps_lists_and_scalars() -> None:
    text = "a: [1, two, null]\nb:\n  c: |\n    x\n    y\n  1: 'z'\n"
    assert read(text) == ({"a": [1, "two", None], "b": {"c": "x\ny\n", "1": "z"}}, [])


def test_aliases_and_merge_keys() -> None:
    text = """\
        base: &b {x: 1, y: 2}
        more: &m {y: 3, z: 4}
        one: {<<: *b, y: 5}
        both: {<<: [*m, *b]}
        plain: {"<<": 1}
        """
    value, found = read(dedent(text))
    assert found == []
    assert isinstance(value, dict)
    assert value["one"] == {"x": 1, "y": 5}
    assert value["both"] == {"x": 1, "y": 3, "z": 4}
    assert value["plain"] == {"<<": 1}


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("a: 1\nb: 2\na: 3", "f(3,1) field a is already set at line 1; keep one of them"),
        ("a: *x", "f(1,4) this alias has no anchor before it; quote a text that begins with *"),
        ("a: &x [1, *x]", "f(1,11) the anchor of this alias holds itself through it"),
        ("a: {<<: 1}", "f(1,5) << expects a map or a list of maps; check the alias"),
        ("[1]: 2", "f(1,1) a field's name must be a string, found a list or map"),
        ("a: !x {}", "f(1,4) this tag is not supported; remove it"),
        (
            "a: 1\n---\nb: 1",
            "f(2,1) a second YAML document starts here; a config is one document; "
            "move it to a file of its own",
        ),
        (
            "a:\n\tb: 1",
            "f(2,1) YAML: found character that cannot start any token; "
            "YAML is indented with spaces; replace the tab",
        ),
        (
            "a: b: c",
            "f(1,5) YAML: mapping values are not allowed in this context; "
            "quote a text that holds ': ', or check the indentation",
        ),
        ("a: 'b", "f(1,4) YAML: the quote that begins here is never closed"),
        (
            "a: [b\nc: 1",
            "f(2,2) YAML: did not find expected ',' or ']'; "
            "the list [ that begins at line 1 is not closed",
        ),
        (
            "a: {b: 1\nc: 1",
            "f(2,2) YAML: did not find expected ',' or '}'; "
            "the object { that begins at line 1 is not closed",
        ),
        ("a: x\x00", "f(1,5) YAML: the control character U+0000 is not allowed"),
        ("", "f(1,1) the config is empty; write at least `input: …`"),
        ("# only a comment\n", "f(1,1) the config is empty; write at least `input: …`"),
    ],
)
def test_what_is_refused(text: str, finding: str) -> None:
    assert read(text)[1] == [finding]


def bomb() -> str:
    """270 bytes that stand for 9^9 values."""
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    for name, before in zip("bcdefghi", "abcdefgh", strict=True):
        lines.append(f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]")
    return "\n".join(lines)


def test_an_alias_bomb_is_refused_at_once() -> None:
    started = time.process_time()
    assert read(bomb())[1] == ["f(6,11) the config holds, or expands to, over 100,000 values"]
    assert time.process_time() - started < 2


def test_nesting_is_bounded_whether_written_or_by_aliases() -> None:
    assert read("[" * 10_000)[1] == [
        f"f(1,{MAX_DEPTH + 1}) the config is nested deeper than {MAX_DEPTH} levels"
    ]
    assert read("a: 1\na: 2\nb:" + "\n-" + " -" * 10_000)[1] == [
        "f(2,1) field a is already set at line 1; keep one of them",
        f"f(4,{2 * MAX_DEPTH - 1}) the config is nested deeper than {MAX_DEPTH} levels",
    ]
    assert read("{a: " * 10_000)[1] == [
        f"f(1,{4 * MAX_DEPTH + 1}) the config is nested deeper than {MAX_DEPTH} levels"
    ]
    deep = "a: &a " + "[" * 60 + "]" * 60 + "\nb: " + "[" * 50 + "*a" + "]" * 50
    assert read(deep)[1] == [f"f(2,54) the config is nested deeper than {MAX_DEPTH} levels"]
    assert read("[" * MAX_DEPTH + "]" * MAX_DEPTH)[1] == []
