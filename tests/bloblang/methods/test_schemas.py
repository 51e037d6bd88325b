"""json_schema and infer_schema: what fits, and in which words Benthos tells what does not."""
# ruff: noqa: E501 - tables of whole error texts

import json

import pytest

from streamer.bloblang import BloblangError, compile_mapping
from tests.bloblang.running import run


def checked(schema, value):
    text = schema if isinstance(schema, str) else json.dumps(schema)
    found = run(f'root = this.json_schema("""{text}""")', json.dumps(value))
    begin = 'Error("failed assignment (line 1): field `this`: '
    return found[len(begin) : -2] if found.startswith(begin) else found


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (True, {}),
        ({}, 5),
        ({"type": "integer"}, 1e3),
        ({"type": ["number", "null"]}, None),
        ({"enum": ["a", 1, None, {"b": 1}]}, {"b": 1}),
        ({"const": {"a": [1]}}, {"a": [1]}),
        ({"multipleOf": 0.1}, 0.3),
        ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, 1),
        ({"items": [{"type": "string"}], "additionalItems": {"type": "integer"}}, ["a", 1]),
        ({"format": "nothing known"}, "x"),
        ({"format": "uri-reference"}, "/x y"),
        ({"format": "email"}, "A <a@b.c>"),
        ({"format": "date-time"}, "2020-02-29T10:00:00.5+01:00"),
        ({"format": "time"}, "10:00:00Z"),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "minimum": 1}, 2),
        ({"properties": {"a": {"$ref": "#"}}}, {"a": {"a": {}}}),
    ],
)
def test_a_value_that_fits_is_returned(schema, value):
    found = checked(schema, value)
    assert found == value if isinstance(value, str) else json.loads(found) == value


@pytest.mark.parametrize(
    ("schema", "value", "error"),
    [
        (False, {}, "(root) false always fails validation"),
        ({"type": "object"}, 5, "(root) invalid type. expected: object, given: integer"),
        ({"type": ["string", "integer"]}, 1.5, "(root) invalid type. expected: [string,integer], given: number"),
        ({"type": "string", "minimum": 9}, 5, "(root) invalid type. expected: string, given: integer"),
        ({"properties": {"Foo": {"type": "string"}}, "required": ["Bar"]}, {"Foo": 1}, "(root) Bar is required\nFoo invalid type. expected: string, given: integer"),
        ({"items": {"properties": {"b": {"type": "string"}}}}, [{"b": 1}], "0.b invalid type. expected: string, given: integer"),
        ({"properties": {"n": {"minimum": 2, "multipleOf": 2}}}, {"n": 1}, "n must be a multiple of 2\nn must be greater than or equal to 2"),
        ({"maximum": 100000000}, 2000000000, "(root) must be less than or equal to 1e+08"),
        ({"exclusiveMinimum": 1, "exclusiveMaximum": 1}, 1, "(root) must be less than 1\n(root) must be greater than 1"),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True}, 1, "(root) must be greater than 1"),
        ({"minLength": 2}, "é", "(root) string length must be greater than or equal to 2"),
        ({"maxLength": 1}, "ab", "(root) string length must be less than or equal to 1"),
        ({"pattern": "^A"}, "b", "(root) does not match pattern '^a'"),
        ({"minItems": 1}, [], "(root) array must have at least 1 items"),
        ({"maxItems": 1}, [1, 2], "(root) array must have at most 1 items"),
        ({"uniqueItems": True}, [{"a": 1}, 2, {"a": 1.0}], "(root) array items[0,2] must be unique"),
        ({"contains": {"type": "string"}}, [1, 2], "(root) at least one of the items must match\n0 invalid type. expected: string, given: integer"),
        ({"items": [{}], "additionalItems": False}, [1, 2], "(root) no additional items allowed on array"),
        ({"properties": {"e": {"enum": ["A", 1]}}}, {"e": "b"}, 'e e must be one of the following: "a", 1'),
        ({"const": None}, 1, "(root) (root) does not match: null"),
        ({"minProperties": 2}, {}, "(root) must have at least 2 properties"),
        ({"maxProperties": 0}, {"a": 1}, "(root) must have at most 0 properties"),
        ({"propertyNames": {"pattern": "^a"}}, {"B": 1}, "(root) Bproperty name of \\\"b\\\" does not match\n(root) does not match pattern '^a'".replace('\\"', '"')),
        ({"patternProperties": {"^a": {"type": "string"}}, "additionalProperties": False}, {"ab": 1, "Z": 1}, "ab invalid type. expected: string, given: integer\n(root) Zadditional property z is not allowed"),
        ({"additionalProperties": {"type": "string"}}, {"z": 1}, "z invalid type. expected: string, given: integer"),
        ({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}, {"a": 1, "c": 1}, "(root) has a dependency on b\n(root) d is required"),
        ({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 5}]}, 3, "(root) must validate at least one schema (anyof)\n(root) must be greater than or equal to 5"),
        ({"oneOf": [{"type": "string"}, {"type": "object", "required": ["a"]}]}, {}, "(root) must validate one and only one schema (oneof)\n(root) a is required"),
        ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, 3, "(root) must validate one and only one schema (oneof)"),
        ({"allOf": [{"type": "integer"}, {"minimum": 5}]}, 3, "(root) must be greater than or equal to 5\n(root) must validate all the schemas (allof)"),
        ({"not": {"type": "string"}}, "x", "(root) must not validate the schema (not)"),
        ({"if": {"type": "string"}, "then": {"minLength": 3}}, "x", '(root) must validate "then" as "if" was valid\n(root) string length must be greater than or equal to 3'),
        ({"$ref": "#/definitions/a", "definitions": {"a": {"type": "string"}}}, 5, "(root) invalid type. expected: string, given: integer"),
        ({"format": "date"}, 5, "(root) does not match format 'date'"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told_line_by_line(schema, value, error):
    assert checked(schema, value) == error


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("email", "x"), ("date", "2021-02-29"), ("time", "25:00:00"), ("date-time", "x"),
        ("uri", "x"), ("uri", "a\\\\b"), ("ipv4", "1.2.3"), ("ipv6", "::g"), ("uuid", "x"),
        ("hostname", "a_b"), ("regex", "("), ("json-pointer", "a"), ("iri", "x"),
        ("relative-json-pointer", "a"), ("uri-template", "{a"),
    ],
)  # fmt: skip
def test_formats_are_checked(name, text):
    assert checked({"format": name}, text) == f"(root) does not match format '{name}'"


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ("{", "unexpected EOF"),
        ("", "EOF"),
        ("5", "schema is invalid"),
        (
            '{"type":"foo"}',
            "has a primitive type that is NOT VALID -- given: /foo/ Expected valid values are:[array boolean integer number null object string]",
        ),
        ('{"type":5}', "Invalid type. Expected: string/array of strings, given: type"),
        ('{"minimum":"x"}', "minimum must be of a number"),
        ('{"required":"x"}', "required must be of an array"),
        ('{"required":[1]}', "required items must be string"),
        ('{"properties":[]}', "properties must be of type object"),
        ('{"minLength":-1}', "minLength must be greater than or equal to 0"),
        ('{"pattern":"("}', "pattern must be a valid regex"),
        ('{"$ref":"#/definitions/nope"}', "Object has no key 'definitions'"),
    ],
)
def test_what_is_no_schema_is_refused_when_the_mapping_is_read(schema, error):
    with pytest.raises(BloblangError) as caught:
        compile_mapping(f'root = this.json_schema("""{schema}""")')
    assert caught.value.message == f"failed to parse json schema definition: {error}"


def test_schemas_are_not_fetched_from_elsewhere():
    found = checked({"$ref": "http://127.0.0.1:1/x"}, 5)
    assert found == "the schema refers to http://127.0.0.1:1/x, which is not in it"


def test_bytes_and_times_count_as_the_texts_they_are_written_as():
    assert run('root = "hi".bytes().json_schema("""{"type":"string"}""")') == "hi"


def inferred(value, mapping="root = this.infer_schema()"):
    def bare(schema):
        kept = {k: v for k, v in schema.items() if k != "fingerprint"}
        return (
            {**kept, "children": list(map(bare, kept["children"]))} if "children" in kept else kept
        )

    found = run(mapping, value)
    return bare(json.loads(found)) if found.startswith("{") else found


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("{}", {"type": "OBJECT"}),
        ("[1.50]", {"type": "ARRAY", "children": [{"type": "FLOAT64"}]}),
        (
            '{"b":null,"a":[[]]}',
            {
                "type": "OBJECT",
                "children": [
                    {"name": "a", "type": "ARRAY", "children": [{"type": "ARRAY"}]},
                    {"name": "b", "type": "NULL"},
                ],
            },
        ),
        ("12345678901234567890", {"type": "FLOAT64"}),
        ("true", {"type": "BOOLEAN"}),
        ('"x"', {"type": "STRING"}),
    ],
)
def test_a_schema_is_inferred(value, schema):
    assert inferred(value) == schema


def test_the_fingerprint_is_benthos_own():
    assert json.loads(run("root = this.infer_schema()", "5"))["fingerprint"] == (
        "fb07eafc2ac667f3b7998c26b1772903e6ffd400ed114591c79db7fc784ad8e5"
    )


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ('[1,"x"]', ".1 mismatched array types, found INT64 and STRING"),
        ('{"a":[[1,2.5]]}', ".a.0.1 mismatched array types, found INT64 and FLOAT64"),
    ],
)
def test_what_has_no_schema_says_where(value, error):
    assert inferred(value) == f'Error("failed assignment (line 1): {error}")'
