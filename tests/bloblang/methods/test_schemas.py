"""json_schema and infer_schema: what fits, and in which words Benthos tells what does not."""
# ruff: noqa: E501 - tables of whole error texts

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from streamer.bloblang import BloblangError, compile_mapping
from streamer.bloblang.errors import QueryError
from streamer.bloblang.runtime.json_schemas import compile_schema
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


DRAFT_4 = {"$schema": "http://json-schema.org/draft-04/schema#"}
DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}
TWICE = {"definitions": {"a": {"required": ["x", "y"]}}, "allOf": [{"$ref": "#/definitions/a"}] * 2}


@pytest.mark.parametrize(
    ("schema", "value", "error"),
    [
        ({**DRAFT_4, "type": "integer"}, 1.0, None),
        ({**DRAFT_4, "minimum": 1, "exclusiveMinimum": False}, 1, None),
        ({"enum": []}, 5, None),
        ({"items": True, "additionalItems": False}, [1], None),
        ({"const": {"$schema": "x"}}, {"$schema": "x"}, None),
        ({"const": 1}, True, "(root) (root) does not match: 1"),
        ({"enum": [0]}, False, "(root) (root) must be one of the following: 0"),
        ({"minimum": 1e17}, 10**16, "(root) must be greater than or equal to 1e+17"),
        ({"maximum": 2**53}, 2**54, "(root) must be less than or equal to 9007199254740992"),
        ({"multipleOf": 0.01}, 4.355, "(root) must be a multiple of 0.01"),
        ({"uniqueItems": True}, [1, 1, 1.0], "(root) array items[0,1] must be unique\n(root) array items[1,2] must be unique"),
        (TWICE, {}, "(root) x is required\n(root) y is required\n(root) x is required\n(root) y is required\n(root) must validate all the schemas (allof)"),
        # A schema that refers to itself as a whole names its draft again.
        ({**DRAFT_7, "pattern": "^A", "items": {"$ref": "#"}}, ["B"], "0 does not match pattern '^a'"),
        ({**DRAFT_7, "uniqueItems": True, "items": {"$ref": "#"}}, [[2, 2]], "0 array items[0,1] must be unique"),
        ({"anyOf": [False, {"minimum": 5, "multipleOf": 5}]}, 3, "(root) must validate at least one schema (anyof)\n(root) false always fails validation"),
        ({"dependencies": {"a": ["b", "c"], "c": ["d"]}}, {"a": 1, "c": 1}, "(root) has a dependency on b\n(root) has a dependency on d"),
        ({"propertyNames": False}, {"B": 1, "a": 1}, "(root) Bproperty name of \"b\" does not match\n(root) false always fails validation\n(root) aproperty name of \"a\" does not match\n(root) false always fails validation"),
        ({"if": False, "then": False, "else": False}, 1, '(root) must validate "else" as "if" was not valid\n(root) false always fails validation'),
    ],
)  # fmt: skip
def test_what_gojsonschema_does_otherwise_than_the_library(schema, value, error):
    found = checked(schema, value)
    if error is None:
        assert json.loads(found) == value
    else:
        assert found == error


def test_a_long_array_of_objects_is_checked_for_repetitions_in_time():
    items = [{"n": n} for n in range(20_000)]
    began = time.process_time()
    assert json.loads(checked({"uniqueItems": True}, items)) == items
    assert time.process_time() - began < 5


def test_a_message_with_very_many_faults_is_told_all_of_them_in_time():
    check = compile_schema(json.dumps({"items": {"properties": {"a": {"type": "string"}}}}))
    began = time.process_time()
    with pytest.raises(QueryError) as refused:
        check([{"a": 1}] * 20_000)
    assert str(refused.value).count("\n") == 19_999
    assert str(refused.value).endswith("19999.a invalid type. expected: string, given: integer")
    assert time.process_time() - began < 10


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 3),
        st.sampled_from([0.5, 1.0, 2.5, "", "a", "ab", "abc"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)
COUNTS = st.integers(0, 3)


def schemas(inner):
    several = st.lists(inner, min_size=1, max_size=3)
    by_name = st.dictionaries(st.sampled_from("abc"), inner, max_size=2)
    kinds = ["object", "array", "string", "integer", "number", "boolean", "null"]
    names = st.lists(st.sampled_from("abc"), max_size=2, unique=True)
    of = {
        **dict.fromkeys(("anyOf", "oneOf", "allOf"), several),
        **dict.fromkeys(("not", "if", "then", "else", "contains"), inner),
        **dict.fromkeys(("properties", "patternProperties", "definitions"), by_name),
        **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), COUNTS),
        **dict.fromkeys(("minProperties", "maxProperties", "minimum", "maximum"), COUNTS),
        **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), COUNTS),
        **dict.fromkeys(("additionalProperties", "propertyNames", "additionalItems"), inner),
        "items": st.one_of(st.lists(inner, min_size=1, max_size=2), st.dictionaries(st.just("type"), st.sampled_from(kinds))),
        "dependencies": st.dictionaries(st.sampled_from("abc"), st.one_of(inner, names), max_size=2),
        "type": st.sampled_from(kinds),
        "multipleOf": st.integers(1, 3),
        "pattern": st.sampled_from(["^a", "b$", "."]),
        "required": names,
        "const": JSON,
        "enum": st.lists(JSON, min_size=1, max_size=3),
        "uniqueItems": st.booleans(),
    }  # fmt: skip
    pairs = st.sampled_from(sorted(of)).flatmap(lambda k: st.tuples(st.just(k), of[k]))
    return st.lists(pairs, max_size=4).map(dict)


@settings(max_examples=300, deadline=None)
@given(st.recursive(st.booleans(), schemas, max_leaves=6), JSON)
def test_the_verdict_is_the_library_s(schema, value):
    """Nothing here is among what `json_schema_keywords` names, or it comes to the same."""
    fits = Draft7Validator(schema).is_valid(value)
    try:
        compile_schema(json.dumps(schema))(value)
    except QueryError as e:
        assert not fits and str(e)
    else:
        assert fits


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
