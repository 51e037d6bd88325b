"""MessagePack; expectations without a note were asked of Connect's library."""

import json

import pytest

from tests.bloblang.running import run


def formatted(mapping, given="{}"):
    return run(f'root = ({mapping}).format_msgpack().encode("hex")', given)


def parsed(raw):
    return run('root.v = this.a.decode("hex").parse_msgpack()', json.dumps({"a": raw}))


@pytest.mark.parametrize(
    ("mapping", "raw"),
    [
        ('{"foo":"bar"}', "81a3666f6fa3626172"),
        ("5", "d30000000000000005"),
        ("-5", "d3fffffffffffffffb"),
        ("1.5", "cb3ff8000000000000"),
        ('"18446744073709551615".uint64()', "cfffffffffffffffff"),
        ("[1, null, true]", "93d30000000000000001c0c3"),
        ('"x".bytes()', "c40178"),
        ('"2020-01-01".ts_parse("2006-01-02")', "d6ff5e0be100"),
        ("null", "c0"),
        ("deleted()", "c0"),
    ],
)
def test_a_value_has_its_bytes(mapping, raw):
    assert formatted(mapping) == raw


def test_numbers_of_a_document_are_packed_as_numbers():
    # Connect packs them as texts.
    assert formatted("this", '{"b":1.50,"a":2}') == (
        "82a161d30000000000000002a162cb3ff8000000000000"
    )


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("82a16105a162cb3ff8000000000000", {"a": 5, "b": 1.5}),
        ("9401ccffd1fffecfffffffffffffffff", [1, 255, -2, 18446744073709551615]),
        ("91c403616263", ["YWJj"]),
        ("d6ff5e0be100", "2020-01-01T00:00:00Z"),
        ("92d7ff1d5353005e0be10001", ["2020-01-01T00:00:00.123Z", 1]),
        ("82a16101a16102", {"a": 2}),
        ("81c0a0", {"": ""}),
        ("0505", 5),
        ("c0", None),
    ],
)
def test_bytes_have_their_value(raw, value):
    assert json.loads(parsed(raw)) == {"v": value}


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        ("", "EOF"),
        ("81", "EOF"),
        ("dd00000001", "EOF"),
        ("ddffffffff", "EOF"),  # Connect sets aside the memory that is announced, and dies
        ("c1", "msgpack: unknown code c1 decoding interface{}"),
        ("d40501", "msgpack: unknown ext id=5"),
        ("8101a0", "msgpack: a key of an object must be a string"),
        ("91" * 5000 + "c0", "msgpack: the value is nested too deep"),
    ],
)
def test_what_is_no_messagepack_is_an_error(raw, error):
    assert parsed(raw) == f'Error("failed assignment (line 1): {error}")'


def test_a_number_is_no_messagepack():
    found = run("root = this.a.parse_msgpack()", '{"a":5}')
    assert found == 'Error("failed assignment (line 1): expected bytes value, got number (5)")'


def test_what_is_packed_can_be_read():
    given = '{"a":[1,-2.5,"x",null,{"b":true}],"é":"ü"}'
    assert json.loads(run("root = this.format_msgpack().parse_msgpack()", given)) == json.loads(
        given
    )
