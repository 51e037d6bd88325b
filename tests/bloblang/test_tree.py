"""Walking a mapping's tree: everything in it is come by, once, in the order of the text."""

import ast
from pathlib import Path

import pytest

from streamer.bloblang import compile_mapping, tree
from streamer.bloblang.parser import parse_mapping

ROOT = Path(tree.__file__).parent

TEXTS = {
    "root = a.b + c": "Assign Binary Path Path",
    "root = a.uppercase().split(b).(c)": "Assign MapInto Method Method Path Path Path",
    "root = if a { b } else if c { d } else { e }": "Assign If Path Path Path Path Path",
    "root = match a { b => c, _ => d }": "Assign Match Path Path Path Path",
    "root = [a, {b: !c}, $d, @e]": "Assign Array Path Object Path Not Path Variable Metadata",
    "root = a | b && c": "Assign Chain Chain Path Path Path",
    "root = range(a, b)": "Assign Call Path Path",
    "root = a.map_each(x -> x.b)": "Assign Method Path Lambda Path",
    "let x = a\nmeta k = $x": "Let Path AssignMeta Variable",
    "if a { root = b } else { meta c = d }": "IfStatement Path Assign Path AssignMeta Path",
    'map m { root = a }\nroot = this.apply("m")': "Assign Method Path Literal NamedMap Assign Path",
}


@pytest.mark.parametrize(("text", "kinds"), TEXTS.items())
def test_all_nodes_are_walked_once_each_before_its_children(text: str, kinds: str) -> None:
    program = compile_mapping(text).program
    nodes = list(tree.walk(program))
    assert " ".join(type(node).__name__ for node in nodes) == kinds
    assert len({id(node) for node in nodes}) == len(nodes)


def test_what_is_walked_is_itself_the_first() -> None:
    (statement,) = compile_mapping("root = a + b").program.statements
    assert isinstance(statement, tree.Assign)
    assert next(tree.walk(statement)) is statement
    assert next(tree.walk([statement.value])) is statement.value
    assert list(tree.walk("a text")) == []


def test_a_long_chain_is_walked_without_recursion() -> None:
    nodes = list(tree.walk(parse_mapping("root = a" + ".string()" * 5000)))
    assert len(nodes) == 5002


def test_children_are_changed_and_nothing_else() -> None:
    (statement,) = compile_mapping("root.x = match a { b => c, _ => d }").program.statements
    assert isinstance(statement, tree.Assign)
    seen = []

    def change(node: tree.Node) -> tree.Node:
        seen.append(node)
        return tree.Variable(node.place, f"v{len(seen)}")

    match = statement.value
    changed = tree.map_children(match, change)
    assert seen == tree.list_children(match)
    assert [node.name for node in tree.list_children(changed)] == ["v1", "v2", "v3", "v4"]
    assert changed.cases[1][0] is None
    assert [type(node) for node in tree.list_children(match)] == [tree.Path] * 4
    assert changed.place is match.place


def test_a_literal_has_no_children_whatever_its_value_is() -> None:
    literal = tree.Literal(tree.Place(1, 1), [tree.Variable(tree.Place(1, 1), "x")])
    assert tree.list_children(literal) == []
    assert tree.map_children(literal, lambda node: pytest.fail("it has none")) is literal


def test_only_the_tree_itself_knows_how_a_tree_is_walked() -> None:
    own = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Attribute) and node.attr == "__dataclass_fields__")
        or (isinstance(node, ast.alias) and node.name == "fields")
    }
    # The shape of a node is made of all its fields, the code's copy of what is no tree.
    assert own <= {"tree.py", "analysis/snippets.py", "compiler/code.py"}
