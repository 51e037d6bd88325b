from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mmdb_writer import MMDBWriter
from netaddr import IPSet

from streamer.bloblang import compile_mapping, forbid_impure
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message

NAMES = {"en": "London", "de": "London"}
RECORDS: dict[str, dict[str, Any]] = {
    "GeoIP2-City": {
        "city": {"geoname_id": 2643743, "names": NAMES},
        "country": {"iso_code": "GB", "is_in_european_union": False},
        "location": {"latitude": 51.5142, "longitude": -1.0, "time_zone": "Europe/London"},
        "subdivisions": [{"iso_code": "ENG"}],
    },
    "GeoLite2-ASN": {"autonomous_system_number": 721, "autonomous_system_organization": "DoD"},
    "GeoIP2-Enterprise": {
        "city": {"confidence": 11},
        "traits": {"isp": "Verizon", "static_ip_score": 1.5},
    },
    "GeoIP2-Anonymous-IP": {"is_tor_exit_node": True, "is_anonymous_vpn": True},
    "GeoIP2-Connection-Type": {"connection_type": "Cellular"},
    "GeoIP2-Domain": {"domain": "bbox.fr"},
    "GeoIP2-ISP": {"isp": "AT&T", "mobile_country_code": "310"},
    "My-Own": {"a": 1},
}


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("geoip")
    for kind, record in RECORDS.items():
        writer = MMDBWriter(6, kind, ipv4_compatible=True, float_type="f64")
        writer.insert_network(IPSet(["81.2.69.0/24"]), record)
        writer.insert_network(IPSet(["2001:220::/32"]), record)
        writer.to_db_file(str(directory / f"{kind}.mmdb"))
    return directory


def look_up(databases: Path, method: str, kind: str, address: Any = "81.2.69.192") -> Any:
    mapping = compile_mapping(f'root = this.ip.{method}("{databases}/{kind}.mmdb")')
    return mapping.query([Message(None, {}, None, {"ip": address})], 0, Execution(lambda: 0))


def test_a_record_has_all_fields_of_go(databases: Path) -> None:
    nothing = {"GeoNameID": 0, "IsInEuropeanUnion": False, "IsoCode": "", "Names": None}
    assert look_up(databases, "geoip_city", "GeoIP2-City") == {
        "City": {"GeoNameID": 2643743, "Names": NAMES},
        "Continent": {"Code": "", "GeoNameID": 0, "Names": None},
        "Country": {**nothing, "IsoCode": "GB"},
        "Location": {
            "AccuracyRadius": 0,
            "Latitude": 51.5142,
            "Longitude": -1,
            "MetroCode": 0,
            "TimeZone": "Europe/London",
        },
        "Postal": {"Code": ""},
        "RegisteredCountry": nothing,
        "RepresentedCountry": {**nothing, "Type": ""},
        "Subdivisions": [{"GeoNameID": 0, "IsoCode": "ENG", "Names": None}],
        "Traits": {"IsAnonymousProxy": False, "IsAnycast": False, "IsSatelliteProvider": False},
    }


@pytest.mark.parametrize(
    ("method", "kind", "path", "value"),
    [
        ("geoip_country", "GeoIP2-City", "Country.IsoCode", "GB"),
        ("geoip_asn", "GeoLite2-ASN", "AutonomousSystemOrganization", "DoD"),
        ("geoip_asn", "GeoIP2-ISP", "AutonomousSystemNumber", 0),
        ("geoip_enterprise", "GeoIP2-Enterprise", "Traits.ISP", "Verizon"),
        ("geoip_enterprise", "GeoIP2-Enterprise", "Traits.StaticIPScore", 1.5),
        ("geoip_enterprise", "GeoIP2-Enterprise", "City.Confidence", 11),
        ("geoip_anonymous_ip", "GeoIP2-Anonymous-IP", "IsTorExitNode", True),
        ("geoip_anonymous_ip", "GeoIP2-Anonymous-IP", "IsAnonymousVPN", True),
        ("geoip_connection_type", "GeoIP2-Connection-Type", "ConnectionType", "Cellular"),
        ("geoip_domain", "GeoIP2-Domain", "Domain", "bbox.fr"),
        ("geoip_isp", "GeoIP2-ISP", "MobileCountryCode", "310"),
    ],
)
def test_each_method(databases: Path, method: str, kind: str, path: str, value: Any) -> None:
    for address in ("81.2.69.192", "2001:220::80"):
        found = look_up(databases, method, kind, address)
        for name in path.split("."):
            found = found[name]
        assert found == value


def test_an_address_that_is_not_in_it_has_nothing(databases: Path) -> None:
    found = look_up(databases, "geoip_city", "GeoIP2-City", "10.0.0.1")
    assert (found["City"]["GeoNameID"], found["Subdivisions"]) == (0, None)


@pytest.mark.parametrize("address", ["nonsense", "1.2.3", ""])
def test_what_is_no_address(databases: Path, address: str) -> None:
    text = f"value {address} does not appear to be a valid v4 or v6 IP address"
    with pytest.raises(MessageError, match=text):
        look_up(databases, "geoip_city", "GeoIP2-City", address)
    with pytest.raises(MessageError, match="expected string"):
        look_up(databases, "geoip_city", "GeoIP2-City", 7)


def test_databases_that_do_not_fit(databases: Path) -> None:
    (databases / "broken.mmdb").write_bytes(b"x" * 100)
    for kind, text in {
        "GeoIP2-ISP": "geoip2: the City method does not support the GeoIP2-ISP database",
        "My-Own": 'geoip2: reader does not support the "My-Own" database type',
        "broken": "error opening database",
        "none": "no such file",
    }.items():
        with pytest.raises(StreamerError, match=text):
            look_up(databases, "geoip_city", kind)


def test_files_may_be_out_of_reach(databases: Path) -> None:
    with forbid_impure(), pytest.raises(StreamerError, match="geoip_city"):
        look_up(databases, "geoip_city", "GeoIP2-City")
