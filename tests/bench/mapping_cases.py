"""Five mappings, the documents they are run on, and the same thing written by hand over orjson.

The hand-written functions are what a good Python programmer would write for documents that are
known to be as they should; they may change the document that they are given.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

Make = Callable[[random.Random, int], dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """A mapping, what it is fed with, and what it is measured against."""

    name: str
    mapping: str
    document: Make
    by_hand: Callable[[dict[str, Any]], dict[str, Any]]

    def documents(self, count: int) -> list[bytes]:
        """Documents of about 500 bytes; always the same ones."""
        chance = random.Random(self.name)
        return [orjson.dumps(self.document(chance, n)) for n in range(count)]


_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbor", "island", "jade")


def _text(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(_WORDS, k=words))


_RENAME = """root = this
root.user_id = this.id
root.id = deleted()
root.name = this.full_name
root.full_name = deleted()
root.address.postcode = this.address.zip
root.address.zip = deleted()
root.internal = deleted()
root.source = "web"
"""


def _user(chance: random.Random, n: int) -> dict[str, Any]:
    return {
        "id": n,
        "full_name": _text(chance, 2).title(),
        "email": f"user{n}@example.com",
        "address": {
            "street": f"{chance.randint(1, 200)} {_text(chance, 2)}",
            "city": _text(chance, 1),
            "zip": f"{chance.randint(10000, 99999)}",
            "country": "DE",
        },
        "tags": chance.sample(_WORDS, 4),
        "active": chance.random() < 0.5,
        "score": round(chance.random(), 4),
        "internal": {"shard": n % 16, "trace": f"{chance.getrandbits(128):032x}"},
        "notes": _text(chance, 24),
    }


def _rename(document: dict[str, Any]) -> dict[str, Any]:
    document["user_id"] = document.pop("id")
    document["name"] = document.pop("full_name")
    address = document["address"]
    address["postcode"] = address.pop("zip")
    del document["internal"]
    document["source"] = "web"
    return document


_ARITHMETIC = """root.id = this.id
root.total = this.price * this.quantity
root.taxed = this.price * this.quantity * 1.19
root.share = this.quantity / this.stock
root.left = this.stock - this.quantity
root.large = this.quantity > 50 && this.stock >= 200
root.name = this.name.uppercase()
root.slug = this.name.lowercase().replace_all(" ", "-")
root.sku = this.sku.trim()
root.label = this.brand + " " + this.name
root.start = this.description.slice(0, 40)
root.words = this.description.split(" ").length()
"""


def _order(chance: random.Random, n: int) -> dict[str, Any]:
    return {
        "id": f"order-{n}",
        # An eighth off a whole number: no product is whole, which Python would print as `1.0`.
        "price": chance.randint(1, 500) + 0.0625,
        "quantity": chance.randrange(1, 99, 2),
        "stock": chance.randint(100, 999),
        "name": _text(chance, 3).title(),
        "brand": _text(chance, 1).title(),
        "sku": f"  {chance.getrandbits(40):x} ",
        "description": _text(chance, 46),
    }


def _arithmetic(document: dict[str, Any]) -> dict[str, Any]:
    price, quantity, stock = document["price"], document["quantity"], document["stock"]
    name, description = document["name"], document["description"]
    total = price * quantity
    return {
        "id": document["id"],
        "total": total,
        "taxed": total * 1.19,
        "share": quantity / stock,
        "left": stock - quantity,
        "large": quantity > 50 and stock >= 200,
        "name": name.upper(),
        "slug": name.lower().replace(" ", "-"),
        "sku": document["sku"].strip(),
        "label": f"{document['brand']} {name}",
        "start": description[:40],
        "words": len(description.split(" ")),
    }


_ARRAYS = """root.device = this.device
root.high = this.readings.filter(r -> r.v > 50).map_each(r -> {"id": r.id, "value": r.v * 2})
root.ids = this.readings.map_each(r -> r.id)
root.levels = this.readings.map_each(r -> if r.v > 90 { "alarm" } else { "fine" })
"""


def _readings(chance: random.Random, n: int) -> dict[str, Any]:
    readings = [{"id": i, "v": round(chance.randint(0, 999) / 10 + 0.05, 2)} for i in range(20)]
    return {"device": f"device-{n}", "readings": readings}


def _arrays(document: dict[str, Any]) -> dict[str, Any]:
    readings = document["readings"]
    return {
        "device": document["device"],
        "high": [{"id": r["id"], "value": r["v"] * 2} for r in readings if r["v"] > 50],
        "ids": [r["id"] for r in readings],
        "levels": ["alarm" if r["v"] > 90 else "fine" for r in readings],
    }


_TIMES = """root.id = this.id
let created = this.created.ts_parse("2006-01-02T15:04:05Z07:00")
root.unix = $created.ts_unix()
root.day = $created.ts_strftime("%Y-%m-%d")
root.seen = this.seen.ts_strptime("%d/%b/%Y:%H:%M:%S %z").ts_format("2006-01-02T15:04:05Z07:00")
root.age = $created.ts_unix() - this.updated.ts_unix()
"""


def _times_document(chance: random.Random, n: int) -> dict[str, Any]:
    def moment() -> datetime:
        return datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=chance.randrange(31_000_000))

    return {
        "id": n,
        "created": f"{moment():%Y-%m-%dT%H:%M:%SZ}",
        "updated": f"{moment():%Y-%m-%dT%H:%M:%SZ}",
        "seen": f"{moment():%d/%b/%Y:%H:%M:%S} +0000",
        "text": _text(chance, 55),
    }


def _times(document: dict[str, Any]) -> dict[str, Any]:
    created = datetime.fromisoformat(document["created"])
    updated = datetime.fromisoformat(document["updated"])
    seen = datetime.strptime(document["seen"], "%d/%b/%Y:%H:%M:%S %z")
    unix = int(created.timestamp())
    return {
        "id": document["id"],
        "unix": unix,
        "day": created.strftime("%Y-%m-%d"),
        "seen": seen.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "age": unix - int(updated.timestamp()),
    }


_PATTERN = (
    r'^(?P<ip>\S+) \S+ (?P<user>\S+) \[(?P<at>[^\]]+)\] "(?P<method>[A-Z]+) (?P<path>\S+) '
    r'[^"]*" (?P<status>\d{3}) (?P<bytes>\d+)'
)
_EXTRACT = f'''let m = this.message.re_find_object("""{_PATTERN}""")
root.host = this.host
root.ip = $m.ip
root.user = $m.user
root.request = {{"method": $m.method, "path": $m.path}}
root.status = $m.status.int64()
root.failed = this.message.re_match("""" 5\\d\\d """)
'''
_LINE = re.compile(_PATTERN)
_FAILED = re.compile(r'" 5\d\d ')


def _line(chance: random.Random, n: int) -> dict[str, Any]:
    message = (
        f"10.{n % 250}.3.{chance.randint(1, 250)} - user{n % 97} [07/Aug/2021:10:00:07 +0000] "
        f'"GET /{"/".join(chance.choices(_WORDS, k=8))}?n={n} HTTP/1.1" '
        f"{chance.choice((200, 404, 503))} {chance.randint(1, 90000)}"
    )
    return {"host": f"web-{n % 8}", "message": message, "agent": _text(chance, 36)}


def _extract(document: dict[str, Any]) -> dict[str, Any]:
    message = document["message"]
    found = _LINE.search(message)
    return {
        "host": document["host"],
        "ip": found["ip"],
        "user": found["user"],
        "request": {"method": found["method"], "path": found["path"]},
        "status": int(found["status"]),
        "failed": _FAILED.search(message) is not None,
    }


CASES = (
    Case("rename and drop fields", _RENAME, _user, _rename),
    Case("arithmetic and string methods", _ARITHMETIC, _order, _arithmetic),
    Case("map_each and filter over 20 elements", _ARRAYS, _readings, _arrays),
    Case("timestamps parsed and formatted", _TIMES, _times_document, _times),
    Case("fields extracted by a regex", _EXTRACT, _line, _extract),
)
