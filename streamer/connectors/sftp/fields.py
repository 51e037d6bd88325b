"""The fields of what talks to a server of SFTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.connectors.spool.sockets import split_host
from streamer.core.errors import StreamerError
from streamer.sdk.spec import Access, Field, Package, ParsedFields, duration_field

ADDRESS: Final = "address"
CONNECTION_TIMEOUT: Final = "connection_timeout"
CREDENTIALS: Final = "credentials"
USERNAME: Final = "username"
PASSWORD: Final = "password"
HOST_PUBLIC_KEY_FILE: Final = "host_public_key_file"
HOST_PUBLIC_KEY: Final = "host_public_key"
PRIVATE_KEY_FILE: Final = "private_key_file"
PRIVATE_KEY: Final = "private_key"
PRIVATE_KEY_PASS: Final = "private_key_pass"

PACKAGES: Final = (Package("paramiko"),)
"""What all components need that have these fields."""

DEFAULT_PORT: Final = 22

KNOWN_HOSTS: Final = (
    "The host key of the server must be known: by `credentials.host_public_key`, by a file of it, "
    "or by `~/.ssh/known_hosts` of the user who runs the program, or `/etc/ssh/ssh_known_hosts`. "
    "`ssh-keyscan -p PORT HOST` shows the keys of a server; compare them with those that its "
    "owner tells. On a cluster, set the key in the config, since each machine has its own files."
)
"""The part of a page that says how a server is trusted."""


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of an address; without a port, that of SSH.

    Raises:
        StreamerError: it is none.
    """
    has_port = ":" in address.rpartition("]")[2]
    host, port = split_host(address if has_port else f"{address}:{DEFAULT_PORT}")
    if not host:
        raise StreamerError(f"the address {address!r} has no host; expected host:port")
    return host, port


def _address_problem(address: str) -> str | None:
    try:
        split_address(address)
    except StreamerError as error:
        return str(error)
    return None


def _file_field(name: str, description: str) -> Field:
    return Field(name, "string", description, access=Access.FILE, optional=True)


CLIENT_FIELDS: Final = (
    Field(
        ADDRESS,
        "string",
        "Host and port of the server; the port is 22 without one.",
        access=Access.ADDRESS,
        check=_address_problem,
        examples=("sftp.example.com:22",),
    ),
    duration_field(
        CONNECTION_TIMEOUT,
        "Maximum time of connecting, and of an answer.",
        default="30s",
        advanced=True,
        check=lambda period: None if period > 0 else "expected more than 0s",
    ),
    Field(
        CREDENTIALS,
        "object",
        "The user, and the keys by which the user and the server prove who they are.",
        children=(
            Field(USERNAME, "string", "The user.", default=""),
            Field(PASSWORD, "string", "The password of the user.", default="", secret=True),
            _file_field(HOST_PUBLIC_KEY_FILE, "The file of the server's public key."),
            Field(
                HOST_PUBLIC_KEY,
                "string",
                "The public key of the server, as `/etc/ssh/ssh_host_ed25519_key.pub` has it.",
                optional=True,
                access=Access.NONE,
                examples=("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA…",),
            ),
            _file_field(PRIVATE_KEY_FILE, "The file of the user's private key."),
            Field(
                PRIVATE_KEY,
                "string",
                "The private key of the user.",
                optional=True,
                secret=True,
                access=Access.NONE,
            ),
            Field(
                PRIVATE_KEY_PASS,
                "string",
                "The passphrase of the private key.",
                default="",
                secret=True,
            ),
        ),
    ),
)


def client_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with the fields together, for a spec's `check`."""
    given = parsed[CREDENTIALS]
    for name, file in (
        (HOST_PUBLIC_KEY, HOST_PUBLIC_KEY_FILE),
        (PRIVATE_KEY, PRIVATE_KEY_FILE),
    ):
        if given[name] and given[file]:
            yield f"{CREDENTIALS}.{file}", f"cannot stand beside {name}; use one of them"
    if not (given[PASSWORD] or given[PRIVATE_KEY] or given[PRIVATE_KEY_FILE]):
        yield CREDENTIALS, f"has no secret; expected {PASSWORD}, {PRIVATE_KEY} or its file"
