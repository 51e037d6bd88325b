"""The messages of Qdrant's API over gRPC, as far as they are needed here.

Source: the definitions in Qdrant's repository. A field is a number, a type and a name; `*` stands
for a list, `map` for a map with text keys. Fields behind `|` exclude one another.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

_PACKAGE: Final = "qdrant"

_FIELDS: Final = {
    "PointId": "| 1 uint64 num, 2 string uuid",
    "ListValue": "1 *Value values",
    "Struct": "1 map:Value fields",
    "Value": (
        "| 1 null null_value, 2 double double_value, 3 int64 integer_value, "
        "4 string string_value, 5 bool bool_value, 6 Struct struct_value, 7 ListValue list_value"
    ),
    "DenseVector": "1 *float data",
    "SparseVector": "1 *float values, 2 *uint32 indices",
    "MultiDenseVector": "1 *DenseVector vectors",
    "Vector": "| 101 DenseVector dense, 102 SparseVector sparse, 103 MultiDenseVector multi_dense",
    "NamedVectors": "1 map:Vector vectors",
    "Vectors": "| 1 Vector vector, 2 NamedVectors vectors",
    "PointStruct": "1 PointId id, 3 map:Value payload, 4 Vectors vectors",
    "UpsertPoints": "1 string collection_name, 2 bool wait, 3 *PointStruct points",
    "PointsOperationResponse": "2 double time",
    "HealthCheckRequest": "",
    "HealthCheckReply": "1 string title, 2 string version",
    "VectorInput": (
        "| 1 PointId id, 2 DenseVector dense, 3 SparseVector sparse, 4 MultiDenseVector multi_dense"
    ),
    "Query": "| 1 VectorInput nearest",
    "PayloadIncludeSelector": "1 *string fields",
    "PayloadExcludeSelector": "1 *string fields",
    "WithPayloadSelector": (
        "| 1 bool enable, 2 PayloadIncludeSelector include, 3 PayloadExcludeSelector exclude"
    ),
    "QueryPoints": (
        "1 string collection_name, 3 Query query, 4 string using, 5 Filter filter, "
        "8 uint64 limit, 11 WithPayloadSelector with_payload"
    ),
    "ScoredPoint": "1 PointId id, 2 map:Value payload, 3 float score, 5 uint64 version",
    "QueryResponse": "1 *ScoredPoint result, 2 double time",
    "Filter": (
        "1 *Condition should, 2 *Condition must, 3 *Condition must_not, 4 MinShould min_should"
    ),
    "MinShould": "1 *Condition conditions, 2 uint64 min_count",
    "Condition": (
        "| 1 FieldCondition field, 2 IsEmptyCondition is_empty, 3 HasIdCondition has_id, "
        "4 Filter filter, 5 IsNullCondition is_null, 6 NestedCondition nested, "
        "7 HasVectorCondition has_vector"
    ),
    "IsEmptyCondition": "1 string key",
    "IsNullCondition": "1 string key",
    "HasIdCondition": "1 *PointId has_id",
    "NestedCondition": "1 string key, 2 Filter filter",
    "HasVectorCondition": "1 string has_vector",
    "FieldCondition": (
        "1 string key, 2 Match match, 3 Range range, 4 GeoBoundingBox geo_bounding_box, "
        "5 GeoRadius geo_radius, 6 ValuesCount values_count, 7 GeoPolygon geo_polygon, "
        "8 DatetimeRange datetime_range, 9 bool is_empty, 10 bool is_null"
    ),
    "RepeatedStrings": "1 *string strings",
    "RepeatedIntegers": "1 *int64 integers",
    "Match": (
        "| 1 string keyword, 2 int64 integer, 3 bool boolean, 4 string text, "
        "5 RepeatedStrings keywords, 6 RepeatedIntegers integers, "
        "7 RepeatedIntegers except_integers, 8 RepeatedStrings except_keywords, "
        "9 string phrase, 10 string text_any"
    ),
    "Range": "1 double? lt, 2 double? gt, 3 double? gte, 4 double? lte",
    "ValuesCount": "1 uint64? lt, 2 uint64? gt, 3 uint64? gte, 4 uint64? lte",
    "DatetimeRange": "1 Timestamp lt, 2 Timestamp gt, 3 Timestamp gte, 4 Timestamp lte",
    "GeoPoint": "1 double lon, 2 double lat",
    "GeoBoundingBox": "1 GeoPoint top_left, 2 GeoPoint bottom_right",
    "GeoRadius": "1 GeoPoint center, 2 float radius",
    "GeoLineString": "1 *GeoPoint points",
    "GeoPolygon": "1 GeoLineString exterior, 2 *GeoLineString interiors",
}

_SCALARS: Final = {
    **{"double": 1, "float": 2, "int64": 3, "uint64": 4, "bool": 8, "string": 9, "uint32": 13}
}
_MESSAGE_TYPE: Final = 11
_ENUM_TYPE: Final = 14
_OPTIONAL, _REPEATED = 1, 3
_TIMESTAMP: Final = "google.protobuf.Timestamp"


@cache
def message_class(name: str) -> Any:
    """Return the class of a message, such as `UpsertPoints`."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_make_pool().FindMessageTypeByName(f"qdrant.{name}"))


@cache
def _make_pool() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, timestamp_pb2

    file = descriptor_pb2.FileDescriptorProto(
        name="qdrant.proto", package=_PACKAGE, syntax="proto3"
    )
    file.dependency.append("google/protobuf/timestamp.proto")
    file.enum_type.add(name="NullValue").value.add(name="NULL_VALUE", number=0)
    for name, fields in _FIELDS.items():
        _add_fields(file.message_type.add(name=name), fields)
    pool = descriptor_pool.DescriptorPool()
    timestamp = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(timestamp)
    pool.Add(timestamp)
    pool.Add(file)
    return pool


def _add_fields(message: Any, fields: str) -> None:
    plain, _, exclusive = fields.partition("|")
    for number, text in enumerate((plain, exclusive)):
        if number == 1 and text:
            message.oneof_decl.add(name="variant")
        for field in filter(None, map(str.strip, text.split(","))):
            _add_field(message, field, in_oneof=number == 1)
    # What protobuf makes of an optional scalar is a choice of one; those come last.
    for field in message.field:
        if field.proto3_optional:
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")


def _add_field(message: Any, text: str, *, in_oneof: bool) -> None:
    number, kind, name = text.split()
    field = message.field.add(name=name, number=int(number), label=_OPTIONAL)
    if kind.startswith("map:"):
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        _set_type(entry.field.add(name="key", number=1, label=_OPTIONAL), "string")
        _set_type(entry.field.add(name="value", number=2, label=_OPTIONAL), kind[4:])
        field.label, field.type = _REPEATED, _MESSAGE_TYPE
        field.type_name = f".{_PACKAGE}.{message.name}.{entry.name}"
        return
    if kind.startswith("*"):
        field.label = _REPEATED
    field.proto3_optional = kind.endswith("?")
    if in_oneof:
        field.oneof_index = 0
    _set_type(field, kind.strip("*?"))


def _set_type(field: Any, kind: str) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    elif kind == "null":
        field.type, field.type_name = _ENUM_TYPE, f".{_PACKAGE}.NullValue"
    else:
        name = _TIMESTAMP if kind == "Timestamp" else f"{_PACKAGE}.{kind}"
        field.type, field.type_name = _MESSAGE_TYPE, f".{name}"
