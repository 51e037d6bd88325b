"""JSON lines as programs write them, and lines that are nearly such."""

from __future__ import annotations

import random
from collections.abc import Callable

import orjson

Mutation = Callable[[random.Random, bytes], bytes]

_NUMBERS = (
    *("0", "-0", "-1", "1.0", "1.50", "1e3", "1E400", "-1e-400", "01", "1.", ".5", "+1", "0x1F"),
    *("9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775809"),
    *("18446744073709551615", "18446744073709551616", "1" * 25, "0.1", "3.0000000000000004"),
    *("true", "false", "null", "NaN", "Infinity", "[]", "[1]", "{}", '{"a":1}', '"3"', "1 ", " 7"),
    *("[1", "2]", "1,2", "1]", "1}", "", "12345678901", "1234567890", "123456789", "--1", "1-1"),
)
_TEXTS = (
    *('"\\u0041"', '"\\ud800"', '"\\\\"', '"a\\"b"', '""', '"\tx"', '"\x00"', '"\x7f"', '"Ä"'),
    *('"\U0001f600"', "null", "12", "true", '["a"]', '"a,b"', '"a:b}"', '"{"', "'a'"),
)
_TIMES = (
    *('"2026-01-01T00:00:05+01:00"', '"2026-01-01T00:00:05.123456789Z"', '"2026-01-01 00:00:05Z"'),
    *('"2026-01-01T00:00:05"', '"2026-02-30T00:00:05Z"', '"2026-01-01T24:00:00Z"', "1767225605"),
    *('"2026-01-01T00:00:05z"', '"2026-01-01t00:00:05Z"', '"20260101T000005Z"', '"2026-01-01"'),
    *('"2026-01-01T00:00:60Z"', '"2026-01-01T00:00:05,5Z"', '""', "null", "1767225605.25"),
    *('"0001-01-01T00:00:00Z"', '"9999-01-01T00:00:00Z"', '"2026-01-01T00:00:05.Z"'),
)
_PAIRS = ('"passengers":4', '"light":"L1"', '"p\\u0061ssengers":5', '"x":{"light":"L9"}', '"":1')


def make_document(rng: random.Random, second: int, digits: int = 0) -> bytes:
    """Return a line as the program writes it; `second` is of its event time, with more digits."""
    fraction = f".{rng.randrange(10**digits):0{digits}d}" if digits else ""
    event = {
        "light": f"L{rng.randrange(8)}",
        "at": f"2026-01-01T00:{second // 60 % 60:02d}:{second % 60:02d}{fraction}Z",
        "plate": rng.choice(["AB1 CDE", "ÄÖ 1", "X", ""]) + str(rng.randrange(20)),
        "passengers": rng.choice([0, 1, 2, 3, 10, 250]),
        "speed": rng.choice([1.5, 20.25, 0.1, 3, 1e-9, 123456.789]),
        "car": {"mass": rng.randrange(3000), "kind": rng.choice(["car", "lorry"])},
        "tags": ["a", "b"],
        "ok": rng.random() < 0.5,
    }
    return orjson.dumps(event)


def _replace_value(name: bytes, values: tuple[str, ...]) -> Mutation:
    def mutate(rng: random.Random, line: bytes) -> bytes:
        start = line.find(b'"%b":' % name)
        if start < 0:
            return line
        start += len(name) + 3
        ends = [end for end in (line.find(b",", start), line.find(b"}", start)) if end >= 0]
        value = rng.choice(values).encode()
        return line[:start] + value + line[min(ends, default=len(line)) :]

    return mutate


def _change_byte(rng: random.Random, line: bytes) -> bytes:
    place = rng.randrange(len(line) + 1)
    new = bytes([rng.choice(b'"\\{}[]:,0 19.eE-+\t\r\x00\x80\xff\xc3')])
    return line[:place] + rng.choice([b"", new]) + line[place + rng.randrange(2) :]


def _leave_out_field(rng: random.Random, line: bytes) -> bytes:
    parts = line.split(b",")
    del parts[rng.randrange(len(parts))]
    return b",".join(parts)


def _add_pair(rng: random.Random, line: bytes) -> bytes:
    pair = rng.choice(_PAIRS).encode()
    return rng.choice([b"{" + pair + b"," + line[1:], line[:-1] + b"," + pair + b"}"])


def _change_whole(rng: random.Random, line: bytes) -> bytes:
    return rng.choice(
        [
            *(b"", b" ", b"{}", b"[]", b"null", b'"x"', b"5", line + b" ", b" " + line),
            *(
                line + line,
                line + b"x",
                b"\xef\xbb\xbf" + line,
                line[:-1],
                line + b",",
                b"[" * 1100,
            ),
            *(line.replace(b":", b": "), line.replace(b",", b", "), line + b"\r", line[::-1]),
            line.replace(b'"ok"', b'"deep":' + b"[" * 1100 + b"]" * 1100 + b',"ok"'),
            line.replace(b"light", b"L\\u0069ght"),
        ]
    )


def _swap_fields(rng: random.Random, line: bytes) -> bytes:
    try:
        event = orjson.loads(line)
        pairs = list(event.items())
        rng.shuffle(pairs)
        return orjson.dumps(dict(pairs))
    except (ValueError, AttributeError, TypeError):
        return line


MUTATIONS: tuple[Mutation, ...] = (
    *(_replace_value(name, _NUMBERS) for name in (b"passengers", b"speed", b"mass", b"ok")),
    *(_replace_value(name, _TEXTS) for name in (b"light", b"plate", b"kind")),
    _replace_value(b"at", _TIMES),
    *(_change_byte, _change_byte, _leave_out_field, _add_pair, _change_whole, _swap_fields),
)


def make_documents(rng: random.Random, count: int, share: float) -> list[bytes]:
    """Return lines, a share of which is changed; none has a newline in it."""
    lines = []
    digits = rng.choice([0, 0, 3, 6])
    for number in range(count):
        line = make_document(rng, number // 40 + rng.randrange(8), digits)
        if rng.random() < share:
            for _ in range(rng.choice([1, 1, 1, 2, 3])):
                line = rng.choice(MUTATIONS)(rng, line)
        lines.append(line)
    return lines
