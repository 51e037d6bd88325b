"""URLs and addresses of servers: whether there can be such a host and such a port."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

_NO_HOST: Final = re.compile(r'[\x00-\x20\x7f"#%/:<>?@\[\\\]^`{|}]')
_IPV4_LIKE: Final = re.compile(r"[0-9]+(\.[0-9]+){3}")
_HOST_PORT: Final = re.compile(
    r"(?:\[(?P<address>[^][]*)\]|(?P<name>[^][:]*))(?::(?P<port>[^][]*))?"
)
_AUTHORITY: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")
_INTERPOLATED: Final = "${!"
_MAX_LABEL_CHARS: Final = 63
_MAX_HOST_CHARS: Final = 253
_BRACKETS_TEXT: Final = (
    "brackets that do not belong together; an IPv6 address is written as in http://[::1]:80, and "
    "brackets of a password as %5B and %5D"
)

_SLASHES_TEXT: Final = (
    "no port that can be; /, ? and # of a password are written as %2F, %3F and %23"
)


def split_url(text: str) -> SplitResult:
    """Return the parts of a URL, whose host and port there can be.

    Args:
        text: the URL; it may have no host.

    Raises:
        ValueError: its host or port is impossible; the text says why, without the URL.
    """
    try:
        url = urlsplit(text)
    except ValueError:
        raise ValueError(_BRACKETS_TEXT) from None
    user, _, place = url.netloc.rpartition("@")
    match = _HOST_PORT.fullmatch(place)
    if match is None or "[" in user or "]" in user:
        raise ValueError(_BRACKETS_TEXT)
    port = match["port"]
    if port and not (port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 65_536):
        if "@" in text.partition(url.netloc)[2]:
            # What looks like a port is the beginning of a password, which nobody may see.
            raise ValueError(_SLASHES_TEXT)
        raise ValueError(f"the port {port!r}; expected a number from 1 to 65535")
    host = match["address"] or match["name"]
    if host and (problem := host_problem(host, match["address"] is not None)):
        raise ValueError(problem)
    return url


def host_problem(host: str, in_brackets: bool = False) -> str | None:
    """Return why no server can have this name or address, or None.

    Args:
        host: a name, or an IPv4 or IPv6 address, the latter without brackets.
        in_brackets: whether it stood in brackets, in which only IPv6 addresses are.
    """
    if in_brackets or ":" in host:
        try:
            ipaddress.IPv6Address(host)
        except ValueError:
            return f"the host {host!r}, which is no IPv6 address"
        return None
    if match := _NO_HOST.search(host):
        return f"the host {host!r}, in which {match[0]!r} cannot be"
    if not host.isascii():
        try:
            host.encode("idna")
        except UnicodeError:
            return f"the host {host!r}, which is no name of the domain name system"
    if _IPV4_LIKE.fullmatch(host) and any(int(part[:4]) > 255 for part in host.split(".")):
        return f"the host {host!r}, which is no IPv4 address"
    labels = host.removesuffix(".").split(".")
    if not all(labels) or len(host) > _MAX_HOST_CHARS or max(map(len, labels)) > _MAX_LABEL_CHARS:
        return (
            f"the host {host!r}; expected a name whose parts, between single points, have 1 to "
            f"{_MAX_LABEL_CHARS} characters"
        )
    return None


def url_problem(text: str) -> str | None:
    """Return what is wrong with host and port of a URL, for a field's `check`.

    What an interpolation may make of them is not known, and what has no `scheme://` is not judged.

    Example:
        >>> url_problem("http://host:99999/path")
        "has the port '99999'; expected a number from 1 to 65535"
    """
    if _INTERPOLATED in text:
        known = text.partition(_INTERPOLATED)[0]
        match = _AUTHORITY.match(known)
        if match is None or match.end() == len(known):
            return None
        text = known
    if "://" not in text:
        return None
    try:
        split_url(text)
    except ValueError as e:
        return f"has {e}"
    return None


def address_problem(text: str) -> str | None:
    """Return what is wrong with host and port of `host:port`, or None; each may be missing."""
    try:
        split_url(f"//{text}")
    except ValueError as e:
        return f"has {e}"
    return None
