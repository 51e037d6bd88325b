"""The field `tls` of everything that talks to a server, and what Python makes of it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streamer.core.errors import StreamerError
from streamer.sdk.spec import Access, Field, ParsedFields

if TYPE_CHECKING:
    import ssl

TLS: Final = "tls"
ENABLED: Final = "enabled"
SKIP_CERT_VERIFY: Final = "skip_cert_verify"
ROOT_CAS: Final = "root_cas"
ROOT_CAS_FILE: Final = "root_cas_file"
CLIENT_CERTS: Final = "client_certs"
RENEGOTIATION: Final = "enable_renegotiation"

_CLIENT_CERT: Final = (
    Field("cert", "string", "The certificate, as text.", default=""),
    Field("key", "string", "Its key, as text.", default="", secret=True),
    Field("cert_file", "string", "The file of the certificate.", access=Access.FILE, default=""),
    Field("key_file", "string", "The file of its key.", access=Access.FILE, default=""),
    Field(
        "password",
        "string",
        "The password of the key, when it is encrypted.",
        default="",
        secret=True,
        examples=("${KEY_PASSWORD}",),
    ),
)

_FIELDS: Final = (
    Field(SKIP_CERT_VERIFY, "bool", "Do not verify the server's certificate.", default=False),
    Field(
        RENEGOTIATION,
        "bool",
        "Must be left at false: OpenSSL answers no renegotiation that a server asks for.",
        default=False,
        advanced=True,
        check=lambda on: (
            "is true, which OpenSSL cannot do; leave it out and let the server use TLS 1.3"
            if on
            else None
        ),
    ),
    Field(
        ROOT_CAS,
        "string",
        "The authorities to trust instead of the system's, as text.",
        default="",
        secret=True,
        examples=("-----BEGIN CERTIFICATE-----\n...\n-----END CERTIFICATE-----",),
    ),
    Field(
        ROOT_CAS_FILE,
        "string",
        "A file of the authorities to trust instead of the system's.",
        access=Access.FILE,
        default="",
        examples=("./root_cas.pem",),
    ),
    Field(
        CLIENT_CERTS,
        "object",
        "Certificates to show to the server: `cert` and `key`, or `cert_file` and `key_file`.",
        default=(),
        shape="array",
        children=_CLIENT_CERT,
        examples=([{"cert_file": "./example.pem", "key_file": "./example.key"}],),
    ),
)

TLS_FIELD: Final = Field(
    TLS,
    "object",
    "TLS settings of the connection.",
    advanced=True,
    children=(
        Field(ENABLED, "bool", "True to enable these settings.", default=False),
        *_FIELDS,
    ),
)
"""The field where TLS is turned on by `enabled`."""


SERVER_TLS_FIELD: Final = Field(
    TLS, "object", "TLS settings, for an `https` URL.", advanced=True, children=_FIELDS
)
"""The field of clients whose URL says whether there is TLS."""


def tls_problems(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    """Return what is wrong with a field `tls`, for the `check` of a spec that has it."""
    tls: ParsedFields = parsed[TLS]
    if tls[ROOT_CAS] and tls[ROOT_CAS_FILE]:
        yield TLS, "only one field between root_cas and root_cas_file can be specified"
    for number, cert in enumerate(tls[CLIENT_CERTS]):
        place = f"{TLS}.{CLIENT_CERTS}.{number}"
        if cert["cert_file"] or cert["key_file"]:
            for name in ("cert_file", "key_file"):
                if not cert[name]:
                    yield place, f"missing {name} field in client certificate config"
        elif not (cert["cert"] and cert["key"]):
            yield place, "needs cert and key, or cert_file and key_file"


def tls_context(parsed: ParsedFields) -> ssl.SSLContext | None:
    """Make the client's side of what a field `tls` says; None when it is not enabled.

    Raises:
        StreamerError: a certificate or a key cannot be read.
    """
    if not parsed.get(ENABLED, True):
        return None
    # Imported here: every command knows the fields, and few connect.
    import ssl

    context = ssl.create_default_context()
    try:
        if parsed[ROOT_CAS] or parsed[ROOT_CAS_FILE]:
            file = parsed[ROOT_CAS_FILE]
            context = ssl.create_default_context(
                cafile=parsed.permissions.file(file) if file else None,
                cadata=parsed[ROOT_CAS] or None,
            )
        for cert in parsed[CLIENT_CERTS]:
            _load_client_cert(context, cert)
    except (OSError, ValueError, TypeError) as error:
        raise StreamerError(f"the certificates of tls cannot be used: {error}") from None
    if parsed[SKIP_CERT_VERIFY]:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _load_client_cert(context: ssl.SSLContext, cert: ParsedFields) -> None:
    password = cert["password"] or None
    if cert["cert_file"]:
        named = cert.permissions.file
        context.load_cert_chain(named(cert["cert_file"]), named(cert["key_file"]), password)
        return
    # OpenSSL takes a key from a file only; nobody else can read this one.
    handle, name = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(f"{cert['cert']}\n{cert['key']}\n")
        context.load_cert_chain(name, None, password)
    finally:
        Path(name).unlink()
