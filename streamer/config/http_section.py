"""The `http` section: the server's fields, as in Benthos, and what is wrong with them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Final

from streamer.connectors.http_server.address import address_problem
from streamer.sdk.spec import Field, ParsedFields

_SHA256_BYTES: Final = 32


def _check_root_path(path: str) -> str | None:
    fits = not path or path.startswith("/")
    return None if fits else f"is {path!r}; expected a path that begins with /"


def _check_positive(value: int) -> str | None:
    return None if value > 0 else f"is {value}; expected 1 or more"


def _check_host_names(names: Sequence[str]) -> str | None:
    for name in names:
        if not name or any(letter in name for letter in "/:*@ "):
            return f"has {name!r}; expected the name of a host without a port: streams.example.com"
    return None


def _check_cors(parsed: ParsedFields) -> str | None:
    if parsed["enabled"] and not parsed["allowed_origins"]:
        return "is enabled; name at least one origin in allowed_origins"
    return None


def _check_basic_auth(parsed: ParsedFields) -> str | None:
    """Check all fields together; no value is shown."""
    if not parsed["enabled"]:
        return None
    if not parsed["username"] or not parsed["password_hash"]:
        return "is enabled; expected both username and password_hash"
    if parsed["algorithm"].lower() == "scrypt" and not parsed["salt"]:
        return "has algorithm scrypt; expected a salt"
    for name in ("password_hash", "salt"):
        try:
            base64.b64decode(parsed[name], validate=True)
        except (binascii.Error, ValueError):
            return f"has a {name} that is not base64"
    return None


def _check_bearer_auth(parsed: ParsedFields) -> str | None:
    """Check all tokens; no value is shown."""
    if not parsed["enabled"]:
        return None
    if not parsed["tokens"]:
        return "is enabled; expected at least one token in tokens"
    for token in parsed["tokens"]:
        try:
            digest = base64.b64decode(token["token_hash"], validate=True)
        except (binascii.Error, ValueError):
            digest = b""
        if len(digest) != _SHA256_BYTES or not token["name"]:
            return "has a token without a name, or whose token_hash is no base64 of a SHA-256 hash"
    return None


def _check_http(parsed: ParsedFields) -> str | None:
    if bool(parsed["cert_file"]) != bool(parsed["key_file"]):
        return "needs both cert_file and key_file, or neither"
    return None


HTTP_SECTION: Final = Field(
    "http",
    "object",
    "The HTTP server: health checks, metrics, and what components serve.",
    check=_check_http,
    children=(
        Field("enabled", "bool", "Whether it is started.", default=True),
        Field(
            "address",
            "string",
            "Address of the server. Only this machine can reach it unless the address says "
            "otherwise; Benthos's default is 0.0.0.0:4195.",
            default="127.0.0.1:4195",
            check=address_problem,
            examples=("0.0.0.0:4195",),
        ),
        Field(
            "root_path",
            "string",
            "A prefix under which all paths are served too.",
            default="/benthos",
            check=_check_root_path,
        ),
        Field(
            "debug_endpoints",
            "bool",
            "Whether paths are served that show the program from inside.",
            default=False,
        ),
        Field(
            "allowed_hosts",
            "string",
            "Names by which the server may be asked for where nobody has to say who they are, "
            "beside addresses, `localhost` and the machine's own name. A page of another site can "
            "give a name of its own this machine's address, and would be taken for the server's "
            "own page.",
            default=(),
            shape="array",
            check=_check_host_names,
            advanced=True,
            examples=(("streams.example.com",),),
        ),
        Field(
            "max_connections",
            "int",
            "How many connections all servers of the program take together, those of `http_server` "
            "and `socket_server` at addresses of their own among them, also where `enabled` is "
            "`false`. Without it, as many as leave streams a reserve of the descriptors that the "
            "process may open (`ulimit -n`): 768 of 1024, and 10,000 at most.",
            optional=True,
            check=_check_positive,
            advanced=True,
        ),
        Field(
            "max_connections_per_address",
            "int",
            "How many of them may come from one address; without it, half of all. Raise it where a "
            "proxy stands before the program.",
            optional=True,
            check=_check_positive,
            advanced=True,
        ),
        Field("cert_file", "string", "A TLS certificate, PEM.", default="", advanced=True),
        Field("key_file", "string", "The certificate's key, PEM.", default="", advanced=True),
        Field(
            "cors",
            "object",
            "Cross-origin requests.",
            advanced=True,
            check=_check_cors,
            children=(
                Field("enabled", "bool", "True to allow them.", default=False),
                Field(
                    "allowed_origins",
                    "string",
                    "The origins that are allowed.",
                    default=(),
                    shape="array",
                ),
            ),
        ),
        Field(
            "basic_auth",
            "object",
            "Basic authentication for all paths.",
            advanced=True,
            check=_check_basic_auth,
            children=(
                Field("enabled", "bool", "Whether it is required.", default=False),
                Field("realm", "string", "The realm.", default="restricted"),
                Field("username", "string", "The user's name.", default=""),
                Field("password_hash", "string", "Base64 of the hash.", default="", secret=True),
                Field(
                    "algorithm",
                    "string",
                    "How the password is hashed.",
                    default="sha256",
                    options=("md5", "sha256", "bcrypt", "scrypt", "argon2"),
                ),
                Field("salt", "string", "Base64 of scrypt's salt.", default="", secret=True),
            ),
        ),
        Field(
            "bearer_auth",
            "object",
            "Tokens for programs, beside `basic_auth` or instead of it.",
            advanced=True,
            check=_check_bearer_auth,
            children=(
                Field("enabled", "bool", "Whether they are taken.", default=False),
                Field(
                    "tokens",
                    "object",
                    "The tokens that are taken.",
                    default=(),
                    shape="array",
                    children=(
                        Field("name", "string", "Whose it is, for logs."),
                        Field(
                            "token_hash",
                            "string",
                            "Base64 of the SHA-256 hash of the token, which is to be long and "
                            "random.",
                            secret=True,
                        ),
                    ),
                ),
            ),
        ),
    ),
)
