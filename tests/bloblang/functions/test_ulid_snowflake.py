"""ULIDs and Snowflake ids: their form, their time, their order."""

import base64

import pytest
from ulid import ULID

from streamer.bloblang import BloblangError, compile_mapping
from streamer.core.execution import Execution
from streamer.core.message import Message
from tests.bloblang.running import NOW, run

MILLISECONDS = NOW // 1_000_000
SNOWFLAKE_EPOCH = 1_288_834_974_657


def made(mapping, count, now=lambda: NOW):
    compiled, ex = compile_mapping(mapping), Execution(now=now)
    return [compiled.apply([Message(b"{}")], 0, ex).raw.decode() for _ in range(count)]


@pytest.mark.parametrize("source", ["secure_random", "fast_random"])
def test_a_ulid_starts_with_the_time_and_has_no_twin(source):
    ids = made(f'root = ulid(random_source: "{source}")', 200)
    assert {ULID.from_str(text).milliseconds for text in ids} == {MILLISECONDS}
    assert len(set(ids)) == 200


def test_hex_and_crockford_spell_the_same_kind_of_id():
    (text,) = made('root = ulid("hex")', 1)
    assert len(text) == 32
    assert ULID.from_hex(text).milliseconds == MILLISECONDS


def test_fast_ulids_of_one_millisecond_are_sorted_as_they_were_made():
    ids = made('root = ulid("crockford", "fast_random")', 500)
    assert ids == sorted(ids)


@pytest.mark.parametrize(
    ("mapping", "error"),
    [
        ('root = ulid("x")', "line 1 char 13: invalid ulid encoding: x"),
        ('root = ulid("hex", "x")', "line 1 char 20: invalid randomness source: x"),
        ("root = snowflake_id(1024)", "Node number must be between 0 and 1023"),
        ("root = snowflake_id(-1)", "Node number must be between 0 and 1023"),
    ],
)
def test_a_wrong_argument_is_refused_when_the_mapping_is_read(mapping, error):
    with pytest.raises(BloblangError) as refused:
        compile_mapping(mapping)
    assert error.split(": ", 1)[-1] in str(refused.value)


def test_a_wrong_argument_from_a_document_fails_the_message():
    found = run("root = snowflake_id(this.a)", '{"a":5000}')
    assert found == 'Error("failed assignment (line 1): Node number must be between 0 and 1023")'


def test_a_snowflake_id_holds_time_node_and_step():
    now = NOW + 3_600_000_000_000
    number = int(made("root = snowflake_id(523)", 1, lambda: now)[0])
    assert number >> 22 == now // 1_000_000 - SNOWFLAKE_EPOCH
    assert number >> 12 & 1023 == 523
    assert number & 4095 == 0


def test_snowflake_ids_grow_when_the_clock_stands_still_or_goes_back():
    times = iter(range(NOW + 9_000_000, NOW - 9_000_000_000, -1_000_000))
    ids = [int(text) for text in made("root = snowflake_id(17)", 6000, lambda: next(times))]
    assert ids == sorted(set(ids))


def test_two_calls_with_one_node_share_it():
    ids = made("root = [snowflake_id(18), snowflake_id(18)]", 100)
    flat = [text for pair in ids for text in pair.strip("[]").split(",")]
    assert len(set(flat)) == 200


def test_a_schema_registry_header_stands_before_the_bytes():
    encoded = run("root.x = with_schema_registry_header(258, content())", '{"a":1}')
    raw = base64.b64decode(encoded.removeprefix('{"x":"').removesuffix('"}'))
    assert raw == b'\0\0\0\1\2{"a":1}'


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("1.5", "schema ID must be between 0 and 4294967295, got 1.5"),
        ("-1", "schema ID must be between 0 and 4294967295, got -1"),
        ("4294967296", "schema ID must be between 0 and 4294967295, got 4294967296"),
        ('"1"', "schema ID must be a number, got string"),
    ],
)
def test_a_schema_id_is_an_unsigned_number_of_32_bits(given, error):
    found = run('root = with_schema_registry_header(this.a, "")', f'{{"a":{given}}}')
    assert found == f'Error("failed assignment (line 1): {error}")'
