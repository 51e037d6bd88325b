"""Addresses as configs write them."""

from __future__ import annotations

import os
import socket
from typing import Final

from streamer.core.errors import StreamerError

HTTP_ADDRESS_HINT: Final = "set http.address to another one, or http.enabled to false"
"""What to do when the program's own server cannot listen."""


def split_address(address: str) -> tuple[str | None, int]:
    """Return the host and the port of `host:port`; the host is None for all addresses (`:4195`).

    Raises:
        ValueError: it is no address; the text says what is expected.
    """
    host, colon, port = address.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    fits = port.isascii() and port.isdecimal() and int(port) < 65_536
    if not colon or not fits or (":" in bare and bare is host):
        raise ValueError("expected host:port, such as 127.0.0.1:4195, 0.0.0.0:4195 or [::1]:4195")
    return bare or None, int(port)


def address_problem(address: str) -> str | None:
    """Return what is wrong with the text of an address."""
    try:
        split_address(address)
    except ValueError as e:
        return f"is {address!r}; {e}"
    return None


def check_free_address(host: str | None, port: int, hint: str) -> None:
    """Check that an address can be listened on, by listening on it for a moment.

    Args:
        host: the address; None for all of the machine's.
        port: the port; 0 for one that is free, which there always is.
        hint: what to do when it cannot be listened on.

    Raises:
        StreamerError: it cannot.
    """
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in addresses:
            with socket.socket(family, kind, protocol) as probe:
                # As the server does: what is only closing does not count.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind(address)
                probe.listen()
    except OSError as e:
        raise listen_error(host, port, e, hint) from None


def listen_error(host: str | None, port: int, error: OSError, hint: str) -> StreamerError:
    """Return what is wrong with an address that cannot be listened on.

    Args:
        host: the address; None for all of the machine's.
        port: the port.
        error: the system's.
        hint: what to do.
    """
    # An event loop puts words of its own around the system's; a host's name has no number.
    named = os.strerror(error.errno) if error.errno and error.errno > 0 else ""
    reason = named or error.strerror or str(error)
    return StreamerError(
        f"cannot listen on {format_host_for_url(host or '')}:{port}: {reason.lower()}; {hint}"
    )


def format_host_for_url(host: str) -> str:
    """Return a host as URLs write it: IPv6 addresses stand in brackets."""
    return f"[{host}]" if ":" in host else host
