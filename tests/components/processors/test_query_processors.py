"""`jmespath`, `jq`, `json_schema`, `xml` and `msgpack` on single messages.

What Benthos was asked for is what it answered; errors of jq and JMESPath are their libraries' own.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.core.errors import ConfigError, StreamerError

from .changes import outcomes
from .conftest import Make, Run, messages

CITIES = '{"locations":[{"name":"Seattle","state":"WA"},{"name":"Reno","state":"NV"}]}'
SCHEMA = '{"type":"object","required":["id"],"properties":{"id":{"type":"integer","minimum":3}}}'
NOT_JSON = "! invalid character 'o' in literal null (expecting 'u')"


@pytest.mark.parametrize(
    ("yaml", "given", "expected"),
    [
        (
            "jmespath: {query: \"locations[?state == 'WA'].name | {Cities: join(', ', @)}\"}",
            [CITIES],
            ['{"Cities":"Seattle"}'],
        ),
        ("jmespath: {query: a}", ['{"a":1.5}', "[]", "nope"], ["1.5", "null", NOT_JSON]),
        ("jq: {query: .a}", ['{"a":"x"}', '{"b":2}', "nope"], ['"x"', "null", NOT_JSON]),
        ("jq: {query: '.[]'}", ["[1,2]", "[]", '[{"z":1,"b":2}]'], ["[1,2]", '{"b":2,"z":1}']),
        ("jq: {query: '. # what it ends with'}", ["[1]"], ["[1]"]),
        ("jq: {query: 'def f: 7; f'}", ["0"], ["7"]),
        ("jq: {query: '[env, $ENV, env.PATH]'}", ["0"], ["[{},{},null]"]),
        ("jq: {query: length, raw: true}", ['ab"d', "é"], ["4", "1"]),
        (
            "jq: {query: '.[]', output_raw: true}",
            ['["a","<b>",{"x":"<&>"},1]', "[]", '[""]'],
            ['a<b>{"x":"\\u003c\\u0026\\u003e"}1', ""],
        ),
        (
            f"json_schema: {{schema: '{SCHEMA}'}}",
            ['{"id":4}', '{"id":"x"}', "{}", '{"id":1}', "nope", "[]"],
            [
                '{"id":4}',
                "! id invalid type. expected: integer, given: string",
                "! (root) id is required",
                "! id must be greater than or equal to 3",
                NOT_JSON,
                "! (root) invalid type. expected: object, given: array",
            ],
        ),
        (
            "xml: {operator: to_json}",
            ['<r><n id="1">2</n><n>x</n><e/></r>', "<r>"],
            [
                '{"r":{"e":"","n":[{"#text":"2","-id":"1"},"x"]}}',
                "! xml.Decoder.Token() - XML syntax error on line 1: unexpected EOF",
            ],
        ),
        ("xml: {operator: to_json, cast: true}", ["<n>2.50</n>"], ['{"n":2.5}']),
        (
            "msgpack: {operator: to_json}",
            [bytes.fromhex("81a161a162"), b"\x05", b""],
            ['{"a":"b"}', "5", "! failed to convert MsgPack document to JSON: EOF"],
        ),
        (
            "msgpack: {operator: from_json}",
            ["nope"],
            ["! failed to parse message as JSON: " + NOT_JSON.removeprefix("! ")],
        ),
    ],
)
def test_a_message_becomes_what_benthos_makes_of_it(
    yaml: str, given: list[str | bytes], expected: list[str], make: Make, a_run: Run
) -> None:
    assert outcomes(make, a_run, yaml, *given) == expected


def test_msgpack_is_written_with_wide_numbers(make: Make, a_run: Run) -> None:
    [[found]] = make("msgpack: {operator: from_json}").process(messages('{"a":5}'), a_run.ex)
    assert found.raw.hex() == "81a161d30000000000000005"


def test_jq_keeps_every_digit_of_numbers_that_it_only_moves(make: Make, a_run: Run) -> None:
    given = '{"a":1234567890123456789,"b":1.10,"c":12345678901234567890123}'
    assert outcomes(make, a_run, "jq: {query: '[.a, .b, .c]'}", given) == [
        "[1234567890123456789,1.10,12345678901234567890123]"
    ]


def test_jq_has_the_metadata(make: Make, a_run: Run) -> None:
    found = outcomes(make, a_run, "jq: {query: '$metadata.k, $metadata'}", "0", meta={"k": 1})
    assert found == ['[1,{"k":1}]']


def test_a_query_that_fails_on_a_message_marks_it(make: Make, a_run: Run) -> None:
    assert outcomes(make, a_run, "jq: {query: '1, error(\"no\")'}", "0") == ["! no"]
    a_run.counted.clear()
    [found] = outcomes(make, a_run, "jmespath: {query: length(a)}", '{"a":1}')
    assert found.startswith("! In function length(), invalid type for value: 1")


@pytest.mark.parametrize(
    ("yaml", "text"),
    [
        ("jmespath: {query: 'a['}", "failed to compile JMESPath query: .*Incomplete expression"),
        ("jq: {query: '.['}", "error parsing jq query: syntax error, unexpected end of file"),
        ("jq: {query: '.) | (.'}", "error parsing jq query: syntax error"),
        ("jq: {query: 'nothing_such'}", "nothing_such/0 is not defined"),
        ("json_schema: {}", "either schema or schema_path must be provided"),
        ("json_schema: {schema_path: a.json}", "must start with file:// or http://"),
        (
            "json_schema: {schema: '{\"type\":1}'}",
            "failed to load JSON schema definition: Invalid type",
        ),
        ("xml: {}", "operator is not set; set it to to_json"),
        ("xml: {operator: from_json}", "operator not recognised: from_json; set to_json"),
        ("msgpack: {operator: x}", "field operator"),
    ],
)
def test_what_cannot_work_is_refused_before_it_runs(yaml: str, text: str, make: Make) -> None:
    with pytest.raises(ConfigError, match=text):
        make(yaml)


def test_a_schema_is_read_from_a_file(make: Make, a_run: Run, tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(SCHEMA)
    yaml = f"json_schema: {{schema_path: 'file://{schema}'}}"
    assert outcomes(make, a_run, yaml, '{"id":3}') == ['{"id":3}']
    schema.unlink()
    with pytest.raises(StreamerError, match="failed to load JSON schema definition: file://"):
        make(yaml)
