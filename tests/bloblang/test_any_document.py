"""Whatever a mapping meets, it gives a message, deletes it, or fails as Benthos says it fails."""

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamer.bloblang import BloblangError, compile_interpolation, compile_mapping, diagnostics
from streamer.bloblang.errors import PrefixedError, QueryError
from streamer.core.errors import MessageError
from streamer.core.message import Message
from tests.bloblang.generating import DOCUMENTED, expressions, mappings, payloads
from tests.bloblang.running import execution
from tests.examples import examples

slowly = settings(
    max_examples=examples(20, 100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# Errors that somebody wrote; any other is one of Python's that nobody thought of.
MEANT = (QueryError, MessageError, RecursionError)


@pytest.fixture(autouse=True, scope="module")
def unforeseen():
    """Collect the errors behind failures that no code raises on purpose."""
    found = []
    start = diagnostics._start_finding

    def noted(error, table):
        inner = error
        while isinstance(inner, PrefixedError):
            inner = inner.cause
        if not isinstance(inner, MEANT):
            found.append(repr(inner))
        return start(error, table)

    diagnostics._start_finding = noted
    yield found
    diagnostics._start_finding = start


def answer(compiled, payload):
    """Run a mapping in each way that there is; failures are fine if they are messages' errors."""
    for way in (compiled.apply, compiled.mutate, compiled.query):
        message = Message(payload, {"a": "x", "b": 1})
        try:
            result = way([message, Message(b'{"a":1}')], 0, execution())
            if isinstance(result, Message):
                assert type(result.raw) is bytes
        except MessageError as e:
            assert str(e).startswith("failed assignment (line "), e


@slowly
@given(mappings, payloads)
def test_a_mapping_answers_any_payload(unforeseen, text, payload):
    unforeseen.clear()
    try:
        compiled = compile_mapping(text, impure=False)
    except BloblangError:
        return
    answer(compiled, payload)
    assert not unforeseen


@slowly
@given(st.sampled_from(DOCUMENTED), payloads)
def test_a_documented_mapping_answers_any_payload(unforeseen, text, payload):
    unforeseen.clear()
    answer(compile_mapping(text), payload)
    assert not unforeseen


@slowly
@given(expressions(), payloads)
def test_an_interpolation_answers_any_payload(unforeseen, text, payload):
    unforeseen.clear()
    try:
        compiled = compile_interpolation("a${! " + text + " }b", impure=False)
    except BloblangError:
        return
    batch = [Message(payload)]
    try:
        assert type(compiled.text_of(batch, 0, execution())) is str
        assert type(compiled.bytes_of(batch, 0, execution())) is bytes
    except MessageError as e:
        assert str(e)
    assert not unforeseen


@slowly
@given(mappings, payloads)
def test_a_mapping_leaves_the_document_it_was_given_alone(text, payload):
    try:
        compiled = compile_mapping(text, impure=False)
        message = Message(payload)
        before = copy.deepcopy(message.doc)
        metadata = dict(message.meta)
        compiled.apply([message], 0, execution())
    except (BloblangError, MessageError):
        return
    assert message.doc == before and dict(message.meta) == metadata
    assert message.raw == payload


RECURSIVE = [
    "root = this",
    "root.a = this",
    "root = [this].flatten()",
    "root = this.collapse()",
    "root = this.merge(this)",
    "root = this.assign(this)",
    "root = this.squash()",
    'root = this.explode("a")',
    "root = this == this",
    "root = this == this.merge({})",
    "root = [this].contains(this)",
    "root = [this].unique(x -> x.format_json())",
    "root = this.format_json()",
    "root = this.format_yaml()",
    "root = this.format_msgpack().parse_msgpack()",
    "root = this.format_xml()",
    "root = this.string()",
    'root = "%v".format(this)',
    "root = this.string().parse_json()",
    "root = this.string().parse_yaml()",
    "root = this.key_values()",
    'root = this.with("a.b.c")',
    'root = this.without("a.b.c")',
    "root = this.diff({})",
    'root = this.apply("m")\nmap m { root = this.a.apply("m") }',
    "root = [this, this].sort()",
    "root = [this].find(this)",
    'root = match this { {"a":1} => 1, _ => 2 }',
    "root = if this { 1 }",
    "root = throw(this)",
    "root = this + 1",
    "root = this.uppercase()",
    "meta a = this",
]


def nested(depth, closed=True):
    """Return arrays in arrays and objects in objects, without their ends where it says so."""
    return [
        (begin * depth + f"1{end * depth}" * closed).encode()
        for begin, end in (("[", "]"), ('{"a":', "}"))
    ]


@pytest.mark.parametrize("text", RECURSIVE)
def test_documents_nested_without_end_are_answered(unforeseen, text):
    unforeseen.clear()
    try:
        compiled = compile_mapping(text)
    except BloblangError as e:
        pytest.fail(f"{e}")
    for payload in [*nested(200), *nested(900), *nested(200, closed=False)]:
        answer(compiled, payload)
    assert not unforeseen


@pytest.mark.parametrize("text", ["root = this", "root.a = this.b"])
def test_documents_too_deep_to_be_read_are_answered(unforeseen, text):
    # Whatever the mapping: it fails where it asks for the document.
    unforeseen.clear()
    compiled = compile_mapping(text)
    for payload in [*nested(10_000), *nested(10_000, closed=False), *nested(900, closed=False)]:
        with pytest.raises(MessageError, match="failed to parse message as JSON"):
            assert Message(payload).doc
        answer(compiled, payload)
    assert not unforeseen


def test_three_hundred_levels_of_a_document_are_no_trouble():
    deep = '{"a":' * 300 + "1" + "}" * 300
    for text in ("root = this", "root.a = this", "root = this.merge({})", "root = this.collapse()"):
        result = compile_mapping(text).apply([Message(deep.encode())], 0, execution())
        json.loads(result.raw)
