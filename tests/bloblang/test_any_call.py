"""Every function and method answers arguments and values of any kind, each time as it should."""

import random

import pytest

from streamer.bloblang import BloblangError, compile_mapping, diagnostics
from streamer.bloblang.catalog import FUNCTIONS, METHODS
from streamer.bloblang.declare import REQUIRED
from streamer.bloblang.errors import PrefixedError, QueryError
from streamer.core.errors import MessageError
from streamer.core.message import Message
from tests.bloblang.running import execution

VALUES = [
    *('""', '"a"', '"\\xff"', '"a\\x80"', '"\\u0000"', '"%"', '"(("', '"~"', '"a.b.*"', '"é😀"'),
    *('"2020-01-01T00:00:00Z"', '"9999999999999999999999999"', '"1e999"', '"[1"', '"{"', '"<a"'),
    *("0", "1", "-1", "1.5", "-0.5", "9223372036854775807", "99999999999999.5", "0 - 2000000000"),
    *("[]", "{}", '["\\xff"]', '{"\\xff":"\\xff"}', "[[1,2],[3]]", '["a","b"]', '{"a":{"b":null}}'),
    *("true", "null", "content()", "this", "this.a", "this.big", "this.long", "this.tiny"),
    *(
        '"2020-01-01T00:00:00Z".ts_parse("2006-01-02T15:04:05Z")',
        "x -> x",
        "x -> [x]",
        '(_ -> "a")',
    ),
    *("deleted()", "nothing()", 'throw("no")'),
]
DOCUMENT = (
    b'{"a":{"b":[1,"x",null,{"c":1e300}]},"big":1e308,"tiny":5e-324,'
    b'"long":99999999999999999999999999999}'
)
# These look outside or take as long as they are told to.
NOT_CALLED = {"file", "file_rel", "env", "compare_argon2", "compare_bcrypt"}
CALLS = [
    *((f"{name}()", name, declared) for name, declared in FUNCTIONS.items()),
    *((f"_.{name}()", name, declared) for name, declared in METHODS.items()),
]


def calls(kind, name, declaration, count):
    choice = random.Random(kind)
    least = sum(param.default is REQUIRED for param in declaration.params)
    most = len(declaration.params) or 2 * declaration.variadic
    for _ in range(count):
        given = [choice.choice(VALUES) for _ in range(choice.randint(least, most))]
        target = f"({choice.choice(VALUES)})." if kind.startswith("_") else ""
        yield f"root = {target}{name}({', '.join(given)})"


@pytest.fixture
def unforeseen(monkeypatch):
    """Collect the errors behind failures that no code raises on purpose."""
    found = []
    start = diagnostics._start_finding

    def noted(error, table):
        inner = error
        while isinstance(inner, PrefixedError):
            inner = inner.cause
        if not isinstance(inner, QueryError | MessageError):
            found.append(repr(inner))
        return start(error, table)

    monkeypatch.setattr(diagnostics, "_start_finding", noted)
    return found


@pytest.mark.parametrize(
    ("kind", "name", "declaration"),
    [call for call in CALLS if call[1] not in NOT_CALLED],
    ids=[call[0] for call in CALLS if call[1] not in NOT_CALLED],
)
def test_a_call_gives_a_value_or_says_why_not(unforeseen, kind, name, declaration):
    compiled = 0
    for text in calls(kind, name, declaration, 25):
        try:
            mapping = compile_mapping(text)
        except BloblangError as e:
            assert e.line == 1 and 1 <= e.column <= len(text) + 1, text
            continue
        compiled += 1
        try:
            result = mapping.apply([Message(DOCUMENT)], 0, execution())
            assert result is None or type(result.raw) is bytes
        except MessageError as e:
            assert str(e).startswith("failed assignment (line 1): "), text
        assert not unforeseen, text
    assert compiled, "every call was refused"
