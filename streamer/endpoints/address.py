"""Addresses as configs write them."""

from __future__ import annotations


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
