"""Methods that look addresses up in MaxMind databases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamer.bloblang.declare import CONNECT, Param, declare
from streamer.bloblang.environment import MappingEnvironment

_CATEGORY: Final = "GeoIP"
Lookup = Callable[[Any], Any]
Method = Callable[[MappingEnvironment, str], Lookup]


def _method(name: str, go_method: str, subject: str) -> Method:
    """Declare a method that looks up one kind of record."""

    @declare(
        name,
        _CATEGORY,
        Param("path", "string"),
        summary=(
            f"An object that describes the {subject} of an IP address, from a file of MaxMind's. "
            "The file is read once; its path is relative to the working directory."
        ),
        binds=True,
        impure=True,
        takes_environment=True,
        own_errors=True,
        origin=CONNECT,
        requires=("maxminddb",),
    )
    def query_record(environment: MappingEnvironment, path: str) -> Lookup:
        from streamer.bloblang.runtime.geoip import make_lookup

        return make_lookup(environment.read_file(path), go_method)

    return query_record


geoip_city: Final = _method("geoip_city", "City", "city")
geoip_country: Final = _method("geoip_country", "Country", "country")
geoip_asn: Final = _method("geoip_asn", "ASN", "ASN")
geoip_enterprise: Final = _method("geoip_enterprise", "Enterprise", "enterprise")
geoip_anonymous_ip: Final = _method("geoip_anonymous_ip", "AnonymousIP", "anonymous IP")
geoip_connection_type: Final = _method("geoip_connection_type", "ConnectionType", "connection type")
geoip_domain: Final = _method("geoip_domain", "Domain", "domain")
geoip_isp: Final = _method("geoip_isp", "ISP", "ISP")
