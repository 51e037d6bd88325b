"""Places in a config's tree."""

from __future__ import annotations

import pytest

from streamer.config.nodes import Mapping, from_python, to_python
from streamer.config.source_map import Source
from streamer.config.tree_paths import (
    find_label_path,
    find_labelled_paths,
    get_node_at,
    parse_pointer,
    put_at,
)

SOURCE = Source("", "")


def tree() -> Mapping:
    value = {"a": [{"label": "x", "b": 1}, {"c/d": {"e~f": 2}}], "empty": {}}
    found = from_python(value, SOURCE)
    assert isinstance(found, Mapping)
    return found


@pytest.mark.parametrize(
    ("pointer", "value"),
    [("/a/0/b", 1), ("/a/1/c~1d/e~0f", 2), ("/empty", {}), ("/a/0", {"label": "x", "b": 1})],
)
def test_a_pointer_leads_to_a_value(pointer: str, value: object) -> None:
    assert to_python(get_node_at(tree(), parse_pointer(pointer))) == value


@pytest.mark.parametrize(
    ("pointer", "problem"),
    [
        ("/b", "there is no 'b' in the config, which has a, empty"),
        ("/a/2", "there is no '2' in /a, which is a list of 2 items"),
        ("/a/-1", "there is no '-1' in /a, which is a list of 2 items"),
        ("/a/0/b/c", "there is no 'c' in /a/0/b, which is a number"),
        ("/empty/x", "there is no 'x' in /empty, which is empty"),
    ],
)
def test_a_pointer_that_leads_nowhere_says_how_far_it_led(pointer: str, problem: str) -> None:
    with pytest.raises(ValueError) as e:
        get_node_at(tree(), parse_pointer(pointer))
    assert str(e.value) == problem


def test_a_pointer_begins_with_a_slash() -> None:
    with pytest.raises(ValueError, match="begins with a slash, found 'a/b'"):
        parse_pointer("a/b")


@pytest.mark.parametrize("pointer", ["/a/0", "/a", "/a/1/c~1d"])
def test_a_value_is_replaced(pointer: str) -> None:
    root = tree()
    put_at(root, parse_pointer(pointer), from_python("new", SOURCE))
    assert to_python(get_node_at(root, parse_pointer(pointer))) == "new"
    with pytest.raises(ValueError):
        put_at(root, ("nowhere",), from_python("new", SOURCE))


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("/a/-", {"a": [{"label": "x", "b": 1}, {"c/d": {"e~f": 2}}, {"n": 1}], "empty": {}}),
        ("/a", {"a": [{"n": 1}], "empty": {}}),
        ("/pipeline/processors/-", {**to_python(tree()), "pipeline": {"processors": [{"n": 1}]}}),
        ("/pipeline/processors", {**to_python(tree()), "pipeline": {"processors": [{"n": 1}]}}),
        ("/cache_resources/-", {**to_python(tree()), "cache_resources": [{"n": 1}]}),
        ("/input", {**to_python(tree()), "input": {"n": 1}}),
    ],
)
def test_a_value_is_put_where_there_was_none(pointer: str, found: object) -> None:
    root = tree()
    put_at(root, parse_pointer(pointer), from_python({"n": 1}, SOURCE))
    assert to_python(root) == found


@pytest.mark.parametrize(
    "pointer",
    ["/a/2", "/empty/-", "/empty/x", "/pipeline/processors/0", "/pipeline/threads", "/buffer/a/-"],
)
def test_nothing_is_made_for_a_value_that_replaces_nothing(pointer: str) -> None:
    with pytest.raises(ValueError, match="there is no"):
        put_at(tree(), parse_pointer(pointer), from_python({"n": 1}, SOURCE))


def test_a_label_leads_to_its_component() -> None:
    root = tree()
    label = get_node_at(root, ("a", "0", "label"))
    assert find_label_path(root, label) == ("a", "0")  # type: ignore[arg-type]
    assert list(find_labelled_paths(root, "x")) == [("a", "0")]
    assert list(find_labelled_paths(root, "y")) == []
