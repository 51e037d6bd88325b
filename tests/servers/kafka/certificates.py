"""An authority of the suite's own, and what it signs: PEM files for a broker and its clients."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8


class Authority:
    """Signs certificates into a directory; `file` is its own, for who trusts it."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self.directory = directory
        self.file = directory / f"{name}.pem"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _common_name(name)
        itself = _builder(self._name, self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.file.write_bytes(_pem(itself.sign(self._key, hashes.SHA256())))

    def sign(self, name: str) -> tuple[Path, Path]:
        """Make a certificate for a name on this machine; return its file and that of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        loopback = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        known = x509.SubjectAlternativeName([x509.DNSName("localhost"), loopback])
        made = _builder(_common_name(name), self._name, key).add_extension(known, critical=False)
        files = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        files[0].write_bytes(_pem(made.sign(self._key, hashes.SHA256())))
        files[1].write_bytes(key.private_bytes(*_PKCS8, serialization.NoEncryption()))
        return files


def encrypt(key: Path, password: str) -> Path:
    """Write a key again, encrypted; return the file."""
    plain = serialization.load_pem_private_key(key.read_bytes(), None)
    encrypted = key.with_name(f"{key.stem}-encrypted.key")
    secret = serialization.BestAvailableEncryption(password.encode())
    encrypted.write_bytes(plain.private_bytes(*_PKCS8, secret))
    return encrypted


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )
