"""A certificate that a server makes for itself, since the config asks for no better one."""

from __future__ import annotations

import datetime
import ssl
import tempfile
from pathlib import Path
from typing import Final

_VALID_YEARS: Final = 10


def load_self_signed(context: ssl.SSLContext) -> None:
    """Make a key and a certificate for this machine, and let a server use them."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP521R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=365 * _VALID_YEARS))
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    # OpenSSL takes them from a file only; nobody else can read this one.
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "own.pem"
        path.touch(0o600)
        path.write_bytes(pem)
        context.load_cert_chain(path)
