"""MessagePack, by the library of that name.

Numbers are written as Connect's encoder writes them: integers with 8 bytes, floats with 8. Those
of an input document count as numbers here; Connect packs them as texts.
"""

from __future__ import annotations

from typing import Any

from streamer.bloblang.declare import CONNECT, Example, declare
from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.convert import text_of
from streamer.core.timestamps import Timestamp
from streamer.core.value import DELETED, INT64_MAX, NOTHING, Number, UInt

_CATEGORY = "Parsing"


def _to_bytes(value: Any) -> bytes:
    if type(value) is bytes:
        return value
    return text_of(value, "bytes").encode(errors="replace")


def _refuse_extension(code: int, data: bytes) -> Any:
    raise QueryError(f"msgpack: unknown ext id={code}")


def _convert_timestamp(value: Any) -> Any:
    """Return a point in time as Bloblang has it, anything else as it is."""
    import msgpack

    return Timestamp(value.to_unix_nano()) if type(value) is msgpack.Timestamp else value


def _build_object(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    return {_check_key(key): _convert_timestamp(item) for key, item in pairs}


def _build_array(items: list[Any]) -> list[Any]:
    return [_convert_timestamp(item) for item in items]


def _check_key(key: Any) -> str:
    if type(key) is str:
        return key
    if key is None:
        return ""
    if type(key) is bytes:
        return key.decode(errors="replace")
    raise QueryError("msgpack: a key of an object must be a string")


@declare(
    "parse_msgpack",
    _CATEGORY,
    examples=(
        Example(
            'root = this.a.decode("hex").parse_msgpack()',
            '{"a":"81a161cb3ff8000000000000"}',
            '{"a":1.5}',
        ),
    ),
    own_errors=True,
    origin=CONNECT,
)
def parse_msgpack(value: Any) -> Any:
    """The value in MessagePack bytes; bytes after it are ignored."""
    import msgpack

    raw = _to_bytes(value)
    # Lengths are announced: no more than what is there is set aside for them.
    unpacker = msgpack.Unpacker(
        max_buffer_size=max(len(raw), 1),
        ext_hook=_refuse_extension,
        object_pairs_hook=_build_object,
        list_hook=_build_array,
        unicode_errors="replace",
        strict_map_key=False,
        timestamp=0,
    )
    unpacker.feed(raw)
    try:
        return _convert_timestamp(unpacker.unpack())
    except msgpack.FormatError:
        raise QueryError("msgpack: unknown code c1 decoding interface{}") from None
    except msgpack.StackError:
        raise QueryError("msgpack: the value is nested too deep") from None
    except (msgpack.OutOfData, ValueError):
        raise QueryError("EOF") from None  # less is there than was announced


def _pack_integer(value: int) -> bytes:
    signed = value <= INT64_MAX
    return (b"\xd3" if signed else b"\xcf") + value.to_bytes(8, "big", signed=signed)


def _pack_value(value: Any, packer: Any) -> bytes:
    kind = type(value)
    if kind is dict:
        parts: list[bytes] = [packer.pack_map_header(len(value))]
        for key in sorted(value):
            parts += (packer.pack(key), _pack_value(value[key], packer))
        return b"".join(parts)
    if kind is list:
        return b"".join(
            (packer.pack_array_header(len(value)), *(_pack_value(item, packer) for item in value))
        )
    if kind is int:
        return _pack_integer(value)
    if kind is UInt:
        return b"\xcf" + int(value).to_bytes(8, "big")
    if kind is Number:
        return _pack_value(float(value), packer)
    if value is DELETED or value is NOTHING:
        value = None
    elif kind is Timestamp:
        import msgpack

        value = msgpack.Timestamp.from_unix_nano(value.ns)
    out: bytes = packer.pack(value)
    return out


@declare(
    "format_msgpack",
    _CATEGORY,
    examples=(
        Example('root = this.format_msgpack().encode("hex")', '{"a":"b"}', "81a161a162"),
        Example('root = this.a.format_msgpack().encode("hex")', '{"a":1.5}', "cb3ff8000000000000"),
    ),
    own_errors=True,
    origin=CONNECT,
)
def format_msgpack(value: Any) -> bytes:
    """The value as MessagePack bytes, keys in order."""
    import msgpack

    try:
        return _pack_value(value, msgpack.Packer(unicode_errors="replace"))
    except (RecursionError, msgpack.StackError):
        raise QueryError("msgpack: the value is nested too deep") from None
