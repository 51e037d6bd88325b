from __future__ import annotations

import pickle

import pytest

from streamer.sdk.spec import REQUIRED, Field, Kind, Spec


def test_a_type_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="no type 'str'"):
        Field("x", "str", "")


def test_a_field_of_a_component_kind_holds_a_component() -> None:
    assert Field("x", "rate_limit", "").kind is Kind.RATE_LIMIT
    assert Field("x", "string", "").kind is None


@pytest.mark.parametrize(
    ("field", "required"),
    [
        (Field("x", "string", ""), True),
        (Field("x", "string", "", default=""), False),
        (Field("x", "string", "", default=None), False),
        (Field("x", "string", "", optional=True), False),
        (Field("x", "string", "", shape="array"), True),
        (Field("x", "object", "", children=(Field("y", "int", ""),)), False),
        (Field("x", "object", "", shape="array", children=(Field("y", "int", ""),)), True),
        (Field("x", "object", ""), True),
    ],
)
def test_what_must_be_written(field: Field, required: bool) -> None:
    assert field.required is required


def test_the_mark_of_a_required_field_is_one_value_everywhere() -> None:
    assert pickle.loads(pickle.dumps(REQUIRED)) is REQUIRED


def test_the_body_of_a_component_is_its_fields_or_one_field() -> None:
    fields = (Field("a", "int", ""),)
    body = Spec(Kind.INPUT, "x", "", fields=fields).body
    assert (body.type, body.children) == ("object", fields)
    config = Field("", "string", "", mapping=True)
    assert Spec(Kind.PROCESSOR, "x", "", config=config).body is config
