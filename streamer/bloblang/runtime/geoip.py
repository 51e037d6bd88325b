"""Records of MaxMind databases as Go's library geoip2 gives them.

Source: the structs of github.com/oschwald/geoip2-golang 1.11, whose field names are those of the
JSON in which Connect has the records; what a database does not say is 0, "", false or null.
"""

from __future__ import annotations

import io
import ipaddress
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from streamer.bloblang.errors import ArgumentError, QueryError

_GO_NAMES: Final = {
    "geoname_id": "GeoNameID",
    "is_anonymous_vpn": "IsAnonymousVPN",
    "isp": "ISP",
    "static_ip_score": "StaticIPScore",
}
_TEXT: Final = ""
_NUMBER: Final = 0
_FLAG: Final = False

Shape = dict[str, Any]
"""The fields of a record by their names in the database; a value is a default, a shape in a list is
an array of these, and None is a map of texts."""

_CONTINENT: Final[Shape] = {"code": _TEXT, "geoname_id": _NUMBER, "names": None}
_COUNTRY: Final[Shape] = {
    "geoname_id": _NUMBER,
    "is_in_european_union": _FLAG,
    "iso_code": _TEXT,
    "names": None,
}
_REPRESENTED: Final[Shape] = {**_COUNTRY, "type": _TEXT}
_LOCATION: Final[Shape] = {
    "accuracy_radius": _NUMBER,
    "latitude": _NUMBER,
    "longitude": _NUMBER,
    "metro_code": _NUMBER,
    "time_zone": _TEXT,
}
_TRAITS: Final[Shape] = {
    "is_anonymous_proxy": _FLAG,
    "is_anycast": _FLAG,
    "is_satellite_provider": _FLAG,
}
_CONFIDENCE: Final[Shape] = {"confidence": _NUMBER}
_PROVIDER: Final[Shape] = {
    "autonomous_system_number": _NUMBER,
    "autonomous_system_organization": _TEXT,
    "isp": _TEXT,
    "mobile_country_code": _TEXT,
    "mobile_network_code": _TEXT,
    "organization": _TEXT,
}
_PLACE: Final[Shape] = {"geoname_id": _NUMBER, "names": None}
_SUBDIVISION: Final[Shape] = {**_PLACE, "iso_code": _TEXT}

SHAPES: Final[Mapping[str, Shape]] = {
    "City": {
        "city": _PLACE,
        "continent": _CONTINENT,
        "country": _COUNTRY,
        "location": _LOCATION,
        "postal": {"code": _TEXT},
        "registered_country": _COUNTRY,
        "represented_country": _REPRESENTED,
        "subdivisions": [_SUBDIVISION],
        "traits": _TRAITS,
    },
    "Country": {
        "continent": _CONTINENT,
        "country": _COUNTRY,
        "registered_country": _COUNTRY,
        "represented_country": _REPRESENTED,
        "traits": _TRAITS,
    },
    "ASN": {"autonomous_system_number": _NUMBER, "autonomous_system_organization": _TEXT},
    "Enterprise": {
        "city": {**_PLACE, **_CONFIDENCE},
        "continent": _CONTINENT,
        "country": {**_COUNTRY, **_CONFIDENCE},
        "location": _LOCATION,
        "postal": {"code": _TEXT, **_CONFIDENCE},
        "registered_country": {**_COUNTRY, **_CONFIDENCE},
        "represented_country": _REPRESENTED,
        "subdivisions": [{**_SUBDIVISION, **_CONFIDENCE}],
        "traits": {
            **_TRAITS,
            **_PROVIDER,
            "connection_type": _TEXT,
            "domain": _TEXT,
            "is_legitimate_proxy": _FLAG,
            "static_ip_score": _NUMBER,
            "user_type": _TEXT,
        },
    },
    "AnonymousIP": {
        "is_anonymous": _FLAG,
        "is_anonymous_vpn": _FLAG,
        "is_hosting_provider": _FLAG,
        "is_public_proxy": _FLAG,
        "is_residential_proxy": _FLAG,
        "is_tor_exit_node": _FLAG,
    },
    "ConnectionType": {"connection_type": _TEXT},
    "Domain": {"domain": _TEXT},
    "ISP": _PROVIDER,
}
"""The shape of the record of each method of Go's library."""

_PLACES: Final = frozenset({"City", "Country"})


def _list_methods(database: str) -> frozenset[str]:
    """Return the methods that a type of database supports; none for an unknown type."""
    if "compat=Enterprise" in database or database == "GeoIP2-Enterprise":
        return _PLACES | {"Enterprise"}
    if database.startswith(("GeoLite2-", "GeoIP2-", "GeoIP2-Precision-", "DBIP-")):
        kind = database.partition("-")[2].removeprefix("Precision-")
        if kind.startswith(("City", "Country", "Location")):
            return _PLACES
        return {
            "Anonymous-IP": frozenset({"AnonymousIP"}),
            "ASN": frozenset({"ASN"}),
            "Connection-Type": frozenset({"ConnectionType"}),
            "Domain": frozenset({"Domain"}),
            "ISP": frozenset({"ISP", "ASN"}),
        }.get(kind, frozenset())
    return frozenset()


@lru_cache(maxsize=8)
def _open_database(content: bytes) -> Any:
    import maxminddb

    return maxminddb.open_database(io.BytesIO(content), maxminddb.MODE_FD)


def make_lookup(content: bytes, method: str) -> Callable[[Any], Any]:
    """Return a function from an address as text to its record.

    Args:
        content: the database.
        method: a method of Go's library, such as `City`.

    Raises:
        ArgumentError: it is no database, or one that does not support the method.
    """
    import maxminddb

    try:
        reader = _open_database(content)
    except (maxminddb.InvalidDatabaseError, ValueError) as e:
        raise ArgumentError(f"error opening database: {e}") from None
    database = reader.metadata().database_type
    methods = _list_methods(database)
    if not methods:
        raise ArgumentError(f'geoip2: reader does not support the "{database}" database type')
    if method not in methods:
        raise ArgumentError(f"geoip2: the {method} method does not support the {database} database")
    shape = SHAPES[method]

    def query_record(address: Any) -> Any:
        if not isinstance(address, str):
            raise QueryError("expected string value")
        try:
            record = reader.get(ipaddress.ip_address(address))
        except (ValueError, maxminddb.InvalidDatabaseError) as e:
            if isinstance(e, maxminddb.InvalidDatabaseError):
                raise QueryError(str(e)) from None
            raise QueryError(
                f"value {address} does not appear to be a valid v4 or v6 IP address"
            ) from None
        return _shape_record(record, shape)

    return query_record


def _shape_record(record: Any, shape: Shape) -> dict[str, Any]:
    """Return a record with the names of Go's fields, and all of them."""
    given = record if isinstance(record, dict) else {}
    return {_go_name(name): _shape_value(given.get(name), kind) for name, kind in shape.items()}


def _shape_value(value: Any, kind: Any) -> Any:
    if isinstance(kind, dict):
        return _shape_record(value, kind)
    if isinstance(kind, list):
        return [_shape_record(one, kind[0]) for one in value] if value else None
    if value is None:
        return kind
    if isinstance(value, float) and value.is_integer():
        # JSON of Go has no fraction there.
        return int(value)
    return dict(value) if isinstance(value, dict) else value


@lru_cache(maxsize=128)
def _go_name(name: str) -> str:
    return _GO_NAMES.get(name) or "".join(part.capitalize() for part in name.split("_"))
