"""The generated source, as a person reads it."""

import ast

from streamer.bloblang import compile_mapping

MAPPING = """map bigger {
  root = this * 1000
}
# a comment between statements
root.id = this.id.
  uppercase()

if this.n > 3 {
  root.n = this.n.apply("bigger")
}
root.p = this.q.re_match("^a+$")
"""


def test_every_statement_stands_before_its_code():
    source = compile_mapping(MAPPING).source
    after = source.partition("def run")[2]
    places = [after.index(f"# {line}") for line in ("5: root.id", "8: if this.n", "11: root.p")]
    assert places == sorted(places)
    assert "# 6:   uppercase()" in after
    assert "# 9:   root.n" in after
    assert "a comment" not in source
    assert source.index("# 2:   root = this * 1000") < source.index("def run")


def test_the_listing_is_python_and_names_its_constants():
    source = compile_mapping(MAPPING).source
    names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    document = next(name for name in names if name.startswith("document_"))
    assert f"# {document} = streamer.bloblang.runtime.document.get_document" in source
