"""Refuses requests that pages of other sites send to a server on this machine.

A page elsewhere on the web can send requests to a server on this machine, and can give a name of
its own this machine's address (DNS rebinding). So the name that was asked for must be one of ours,
and the page that asks must be ours.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

# RFC 9112, 3.2: a host and perhaps a port, and nothing else that a URL may have around them.
_HOST: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s\[\]:/?#@\\]+))(?::[0-9]{0,5})?")


def server_names(host: str) -> frozenset[str]:
    """Return the names under which a server that listens on a host may be asked for."""
    machine = socket.gethostname().lower()
    return frozenset({"localhost", host.lower(), machine})


def refusal_reason(headers: Mapping[str, str], allowed: frozenset[str]) -> str | None:
    """Return why a request is not taken; None when it is.

    Args:
        headers: the request's.
        allowed: names of the server, see `server_names`; any address is allowed as well, since no
            name was used that could have been given another meaning.
    """
    host_header = headers.get("Host", "")
    host = _host_of_url(host_header)
    if host is None or not (host in allowed or _is_address(host)):
        return (
            f"this server is not called {host_header!r}; ask for it by its address, or name it in "
            "http.allowed_hosts"
        )
    origin = headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc.lower() != host_header.lower():
        return f"pages of {origin} may not use this server"
    if headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        return "pages of other sites may not use this server"
    return None


def _host_of_url(header: str) -> str | None:
    """Return the host of a header Host in small letters; None where it is not one."""
    match = _HOST.fullmatch(header)
    return None if match is None else (match[1] or match[2]).lower()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
