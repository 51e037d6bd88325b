"""Queries that are functions beside the mapping's give what they give within it."""

import pytest

from streamer.bloblang.environment import MappingEnvironment
from streamer.bloblang.mapping import Mapping
from tests.bloblang.running import run

QUERIES = [
    ("this.l.sort_by(x -> x.a)", '{"l":[{"a":2},{"a":1}]}'),
    ("this.l.sort_by(x -> x.a * $b)", '{"l":[{"a":1},{"a":2}],"x":1}'),
    ('this.l.any(x -> x.a == this.x && $t == "t1")', '{"l":[{"a":1}],"x":1}'),
    ('this.l.all(x -> x.a.string() != "var0 \' \\\\ \\" t1")', '{"l":[{"a":"t1"}]}'),
    (
        "this.l.any(x -> x.l.any(y -> y.l.any(z -> z == x.a + $b)))",
        '{"l":[{"a":1,"l":[{"l":[0]}]}]}',
    ),
    ('this.l.any(x -> x.apply("m"))', '{"l":[{"a":true}]}'),
    ("this.l.any(x -> var(x.a) == -1)", '{"l":[{"a":"b"}]}'),
    ("this.l.any(x -> @k == x.a && root.b == null)", '{"l":[{"a":"b"}]}'),
    ("this.l.any(x -> x.a.uppercase())", '{"l":[{"a":1}]}'),
]
HEAD = 'map m { root = this.a }\nlet t = "t1"\nlet b = -1\nmeta k = "b"\n'


@pytest.mark.parametrize(("query", "document"), QUERIES)
def test_a_query_is_the_same_among_many(query: str, document: str) -> None:
    alone = run(f"{HEAD}root = {query}", document)
    many = "".join(f"root.b{i} = this.l.any(x -> $b == 0)\n" for i in range(200))
    among = run(f"{HEAD}{many}root = {query}", document)
    assert among == alone.replace("line 5", "line 205")
    assert "argument" not in alone


def test_a_query_that_needs_nothing_is_no_function_within_a_function() -> None:
    source = Mapping("root = this.sort_by(x -> x.a)", MappingEnvironment(False, "")).source
    assert "    def " not in source
