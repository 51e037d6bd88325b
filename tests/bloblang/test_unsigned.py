"""Go's uint64 beside int64 and float64: what an operation on both is, and how it overflows."""
# ruff: noqa: E501 - tables of whole error texts

import pickle

import pytest

from streamer.core.value import UInt
from streamer.window.pack.metadata_codec import decode_meta, encode_meta
from tests.bloblang.running import run

MOST = '"18446744073709551615".uint64()'
HALF = '"9223372036854775808".uint64()'
DOCUMENT = '{"n":7,"f":1.50,"big":18446744073709551615}'


# As Benthos answers.
@pytest.mark.parametrize(
    ("query", "result"),
    [
        ("1.uint64() - 2.uint64()", "18446744073709551615"),
        (f"{MOST} + 2.uint64()", "1"),
        (f"{MOST} * {MOST}", "1"),
        ("3.uint8() - 5.uint64()", "18446744073709551614"),
        ("1.uint64() - 2", "-1"),
        ("1 - 2.uint64()", "-1"),
        (f"{MOST} + 1", "0"),
        (f"{MOST} + 0.5", "18446744073709552000"),
        (f"{HALF} - 1", "9223372036854775807"),
        ("0 - 5.uint64()", "-5"),
        (f"{HALF} - 0.uint64()", "9223372036854775808"),
        (f"{MOST} / 2", "9223372036854776000"),
        (f"{MOST} % 10", "-1"),
        ("7.uint64() % 4.uint64()", "3"),
        (f"{MOST} > 5", "false"),
        (f"{MOST} > 5.uint64()", "true"),
        (f"{MOST} > 5.0", "true"),
        (f"{MOST} == this.big", "true"),
        (f"{HALF} == (0 - 9223372036854775807 - 1)", "true"),
        (f"{HALF} < (0 - 1)", "true"),
        ("7.uint64() == this.n", "true"),
        ("7.uint64() == 7.0", "true"),
        ("[5, 7.uint64()].contains(this.n)", "true"),
        ("match 7.uint64() { 7 => 1, _ => 2 }", "1"),
        (f"{MOST}.type()", "number"),
        (f"{MOST}.string()", "18446744073709551615"),
        (f'"%v %d %T %x".format({MOST}, 5.uint64(), 5.uint64(), {MOST})', "18446744073709551615 5 uint64 ffffffffffffffff"),
        (f"{MOST}.floor()", "18446744073709551615"),
        ("5.uint64().int64() - 6", "-1"),
        ("[1,2,3].index(1.uint64())", "2"),
        ("{\"a\": 1.uint64()}", '{"a":1}'),
        ("1.uint64().ts_unix()", "1"),
        (f"[3, {MOST}, 1.uint64()].sum()", "18446744073709552000"),
        ("if 5.uint64() > 4 { 1 }", "1"),
    ],
)  # fmt: skip
def test_unsigned_integers_meet_others_as_in_go(query, result):
    assert run(f"root = {query}", DOCUMENT) == result


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (f"{MOST}.int64()", "unsigned integer value is too large to be cast as a signed integer"),
        ("(0 - 1).uint64()", "signed integer value is negative and cannot be cast as an unsigned integer"),
        ("5.uint64() + \"x\"", "cannot add types number (from method uint64) and string (from string literal)"),
        ("5.uint64() / 0", "number literal: attempted to divide by zero"),
        ("5.uint64().infer_schema()", " unsupported data type: uint64"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_an_error(query, error):
    assert run(f"root = {query}") == f'Error("failed assignment (line 1): {error}")'


@pytest.mark.parametrize(
    ("query", "result"),
    [
        ("9223372036854775807 + 1", "-9223372036854775808"),
        ("(0 - 9223372036854775807) - 2", "9223372036854775807"),
        ("4611686018427387904 * 4", "0"),
        ("this.big + 0", "18446744073709552000"),
        ("9007199254740993 / 1", "9007199254740992"),
        ("1000000.0.string()", "1e+06"),
        ("this.f.string()", "1.50"),
        ("(this.f + 0).string()", "1.5"),
    ],
)
def test_signed_integers_wrap_and_floats_are_written_as_in_go(query, result):
    assert run(f"root = {query}", DOCUMENT) == result


def test_they_stay_unsigned_through_variables_metadata_windows_and_pickling():
    mapping = "let a = 1.uint64()\nmeta m = $a\nroot = @m - 2.uint64()"
    assert run(mapping) == "18446744073709551615"
    for copy in (
        pickle.loads(pickle.dumps(UInt(5))),
        decode_meta(encode_meta({"a": UInt(5)}))[0]["a"],
    ):
        assert (type(copy), copy) == (UInt, 5)


def test_yaml_gives_an_unsigned_integer_beyond_the_signed_ones():
    given = '{"a":"18446744073709551615"}'
    assert run("root = this.a.parse_yaml() + 1.uint64()", given) == "0"
    assert run("root = this.a.parse_yaml() + 1", given) == "0"
