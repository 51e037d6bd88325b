"""Values of messages as expectations see them: as numbers, as keys that compare, as texts."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.dump import dump_json
from streamer.core.message import Batch
from streamer.core.timestamps import Timestamp
from streamer.core.value import DELETED, MAX_DIGITS, NOTHING, Number, type_name

if TYPE_CHECKING:
    from streamer.bloblang import Mapping

MAX_SHOWN_CHARACTERS: Final = 60
"""Characters of a value that the reason of a failure shows."""

_DIGEST_BYTES: Final = 16
_HALF_DIGEST: Final = "<u8"
_INTEGER: Final = re.compile(r"-?[0-9]+")


def query_batch(mapping: Mapping, batch: Batch, ex: Execution, *, singly: bool) -> list[Any]:
    """Return the value of a query for each message of a batch.

    Args:
        mapping: the query.
        batch: the messages.
        ex: the run.
        singly: whether each message is a batch by itself.

    Returns:
        The values. A `MessageError` takes the place of one where the query failed or deleted the
        message; a query that assigns nothing gives null.
    """
    of_document = mapping.doc_fn
    values: list[Any] = []
    for index, message in enumerate(batch):
        if of_document is not None:
            try:
                values.append(_read_result(of_document(message.doc)))
                continue
            except Exception:  # noqa: BLE001, S110 - the query itself says below what was wrong
                pass
        seen, place = ([message], 0) if singly else (batch, index)
        try:
            values.append(_read_result(mapping.query(seen, place, ex)))
        except MessageError as error:
            values.append(error)
    return values


def query_once(mapping: Mapping, batch: Batch, ex: Execution) -> Any:
    """Return the value of a query for a batch, which it sees from its first message.

    Raises:
        MessageError: the query failed, or deleted the message.
    """
    value = _read_result(mapping.query(batch, 0, ex))
    if isinstance(value, MessageError):
        raise value
    return value


def name_group(value: Any) -> str:
    """Return a text for a group, another one for each value.

    Raises:
        MessageError: the value has no form as JSON.

    >>> name_group("red"), name_group(1), name_group("1")
    ('"red"', '1', '"1"')
    """
    try:
        return dump_json(value).decode()
    except ValueError as error:
        raise MessageError(f"the group cannot be named: {error}") from None


def _read_result(value: Any) -> Any:
    if value is NOTHING:
        return None
    return MessageError("the query deletes the message") if value is DELETED else value


def as_number(value: Any) -> int | float | None:
    """Return a number to compare with, exact where it is whole; None for what is no number.

    >>> as_number(Number("9007199254740993")), as_number(True), as_number("1")
    (9007199254740993, None, None)
    """
    if type(value) is bool or not isinstance(value, (int, float)):
        return None
    if type(value) is Number and len(value.text) <= MAX_DIGITS and _INTEGER.fullmatch(value.text):
        return int(value.text)
    return value


def show_value(value: Any) -> str:
    """Return a value as the reason of a failure shows it: as JSON, cut, with its type if unclear.

    >>> show_value(7), show_value("x" * 80)[:5], show_value(None)
    ('7', '"xxxx', 'null')
    """
    if type(value) is float and not math.isfinite(value):
        return str(value)
    try:
        text = dump_json(value).decode(errors="replace")
    except (ValueError, TypeError, RecursionError):
        return f"a value of the type {type_name(value)}"
    cut = len(text) > MAX_SHOWN_CHARACTERS
    return text[:MAX_SHOWN_CHARACTERS] + "…" * cut


def encode_key(value: Any) -> bytes:
    """Return bytes that are equal for equal values only: 1 and 1.0 are equal, 1 and "1" are not.

    Whole numbers are compared by all of their digits, however many there are. NaN equals NaN.

    Raises:
        RecursionError: the value is nested too deep.

    >>> encode_key(1) == encode_key(1.0), encode_key(1) == encode_key(True)
    (True, False)
    """
    kind = type(value)
    if kind is str:
        return b"s" + str.encode(value, errors="surrogatepass")
    if kind is bool or value is None:
        return b"%r" % value
    if isinstance(value, (int, float)):
        return b"n" + _encode_number(value)
    if kind is bytes:
        return b"y" + bytes(value)
    if kind is Timestamp:
        return b"t%d" % value.ns
    if kind is dict:
        items = [part for name in sorted(value) for part in (name, value[name])]
        return b"{" + _join_keys(items)
    if kind is list:
        return b"[" + _join_keys(value)
    return b"?" + repr(value).encode(errors="surrogatepass")


def _join_keys(values: Iterable[Any]) -> bytes:
    keys = [encode_key(value) for value in values]
    return b"".join(b"%d:%b" % (len(key), key) for key in keys)


def _encode_number(value: int | float) -> bytes:
    if type(value) is Number and _INTEGER.fullmatch(value.text):
        return b"0" if value.text == "-0" else value.text.encode()
    if isinstance(value, int) or (math.isfinite(value) and value.is_integer()):
        return b"%d" % value
    return repr(float(value)).encode()


def find_duplicates(values: Sequence[Any]) -> list[int]:
    """Return the places of values that equal an earlier one, in order; null equals nothing.

    Values are compared by digests of 16 bytes. With what sorts them, about 130 bytes a value are
    held at the most, whatever its size. Two that differ count as equal with a probability of less
    than 1e-20 among a thousand million.

    >>> find_duplicates(["a", 1, "a", 1.0, None, None])
    [2, 3]
    """
    # Imported here: most expectations are about one message.
    import numpy as np

    digests, places = bytearray(), array("q")
    for place, value in enumerate(values):
        if value is None or isinstance(value, MessageError):
            continue
        try:
            key = encode_key(value)
        except RecursionError:
            continue
        digests += blake2b(key, digest_size=_DIGEST_BYTES).digest()
        places.append(place)
    if len(places) < 2:
        return []
    halves = np.frombuffer(digests, _HALF_DIGEST).reshape(-1, 2)
    # Stable: of those that are equal the first comes first.
    order = np.lexsort((halves[:, 1], halves[:, 0]))
    ordered = halves[order]
    is_later = (ordered[1:] == ordered[:-1]).all(axis=1)
    return [places[one] for one in sorted(order[1:][is_later].tolist())]
