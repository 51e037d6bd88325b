"""The parser's tables in the package: those of the grammar, and used only when they are."""

import json

import pytest

from streamer.bloblang import parser_tables
from streamer.bloblang.tree_builder import TreeBuilder
from tests.bloblang.generating import DOCUMENTED


def test_the_tables_in_the_package_are_those_of_the_grammar():
    assert parser_tables.read_stored_tables() is not None, "run: python -m streamer.bloblang"


def test_both_parsers_read_the_documented_examples_alike():
    kept, made = parser_tables.load_parser(TreeBuilder()), parser_tables.build_parser(TreeBuilder())
    read = 0
    for text in DOCUMENTED:
        try:
            wanted = made.parse(text + "\n", start="mapping")
        except Exception as e:
            with pytest.raises(type(e)):
                kept.parse(text + "\n", start="mapping")
        else:
            assert kept.parse(text + "\n", start="mapping") == wanted
            read += 1
    assert read > 100


@pytest.mark.parametrize("spoil", ["from another grammar", "no JSON", "no file"])
def test_tables_that_do_not_fit_are_made_anew_and_nothing_is_written(tmp_path, monkeypatch, spoil):
    grammar = parser_tables._read_grammar()
    (tmp_path / "grammar.lark").write_text(grammar)
    made = json.loads(parser_tables.serialize_tables())
    if spoil != "no file":
        text = json.dumps({**made, "from": "x"}) if spoil != "no JSON" else "{"
        (tmp_path / "grammar.tables.json").write_text(text)
    monkeypatch.setattr(parser_tables.resources, "files", lambda package: tmp_path)
    before = sorted((path, path.read_bytes()) for path in tmp_path.iterdir())
    assert parser_tables.read_stored_tables() is None
    assert len(parser_tables.load_parser(TreeBuilder()).parse("root = 1\n", start="mapping")) == 1
    assert sorted((path, path.read_bytes()) for path in tmp_path.iterdir()) == before


def test_another_lark_has_other_tables(monkeypatch):
    assert parser_tables.read_stored_tables() is not None
    monkeypatch.setattr(parser_tables.lark, "__version__", "0")
    assert parser_tables.read_stored_tables() is None
