"""Signatures of JSON Web Tokens (RFC 7518): HMAC, RSA (PKCS #1 v1.5) and ECDSA with SHA-2.

By hashlib and the library cryptography; keys are PEM texts, HMAC's any text.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Any, Final

from streamer.bloblang.errors import ArgumentError

_NO_PEM: Final = "invalid key: Key must be a PEM encoded PKCS1 or PKCS8 key"


class InvalidSignature(Exception):
    """A signature does not match; its text says why, in the words of Go's library."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """One signature algorithm.

    Attributes:
        name: as the header says it (`HS256`, `RS512`, …).
        bits: of the SHA-2 digest.
    """

    name: str
    bits: int

    def signing_key(self, secret: str) -> Any:
        """Return the key that a secret stands for.

        Raises:
            ArgumentError: it is not PEM, or holds no private key of this algorithm.
        """
        raise NotImplementedError

    def checking_key(self, secret: str) -> Any:
        """Return the key to check signatures with; raises as `signing_key` does."""
        raise NotImplementedError

    def sign(self, key: Any, message: bytes) -> bytes:
        """Return the signature of a message.

        Raises:
            ArgumentError: the key does not fit the algorithm.
        """
        raise NotImplementedError

    def check(self, key: Any, message: bytes, signature: bytes) -> None:
        """Return if a signature matches.

        Raises:
            InvalidSignature: it does not.
        """
        raise NotImplementedError


class Hmac(Algorithm):
    """HMAC: the same text signs and checks."""

    def signing_key(self, secret: str) -> bytes:
        """Return the secret's bytes."""
        return secret.encode(errors="surrogateescape")

    checking_key = signing_key

    def sign(self, key: bytes, message: bytes) -> bytes:
        """Return the message's authentication code."""
        return hmac.digest(key, message, f"sha{self.bits}")

    def check(self, key: bytes, message: bytes, signature: bytes) -> None:
        """Compare in constant time."""
        if not hmac.compare_digest(self.sign(key, message), signature):
            raise InvalidSignature("signature is invalid")


def _private(secret: str, kind: type, name: str) -> Any:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    return _loaded(lambda raw: load_pem_private_key(raw, None), secret, kind, f"{name} private key")


def _public(secret: str, kind: type, name: str) -> Any:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    def load(raw: bytes) -> Any:
        if b"-----BEGIN CERTIFICATE-----" in raw:
            return x509.load_pem_x509_certificate(raw).public_key()
        return load_pem_public_key(raw)

    return _loaded(load, secret, kind, f"{name} public key")


def _loaded(load: Any, secret: str, kind: type, wanted: str) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm

    if "-----BEGIN " not in secret:
        raise ArgumentError(_NO_PEM)
    try:
        key = load(secret.encode(errors="replace"))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, kind):
        raise ArgumentError(f"key is not a valid {wanted}")
    return key


class Rsa(Algorithm):
    """RSA with PKCS #1 v1.5 padding."""

    def signing_key(self, secret: str) -> Any:
        """Read a private key."""
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

        return _private(secret, RSAPrivateKey, "RSA")

    def checking_key(self, secret: str) -> Any:
        """Read a public key or a certificate."""
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

        return _public(secret, RSAPublicKey, "RSA")

    def sign(self, key: Any, message: bytes) -> bytes:
        """Sign the message's digest."""
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

        try:
            signature: bytes = key.sign(message, PKCS1v15(), _hash(self.bits))
        except ValueError:
            reason = "crypto/rsa: message too long for RSA key size"
            raise ArgumentError(f"signing token: {reason}") from None
        return signature

    def check(self, key: Any, message: bytes, signature: bytes) -> None:
        """Check the signature."""
        from cryptography.exceptions import InvalidSignature as Invalid
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

        try:
            key.verify(signature, message, PKCS1v15(), _hash(self.bits))
        except Invalid:
            raise InvalidSignature("crypto/rsa: verification error") from None


class Ecdsa(Algorithm):
    """ECDSA on the digest's curve; a signature is r and s, one after the other."""

    @property
    def _curve_bits(self) -> int:
        return 521 if self.bits == 512 else self.bits

    @property
    def _width(self) -> int:
        return (self._curve_bits + 7) // 8

    def signing_key(self, secret: str) -> Any:
        """Read a private key."""
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

        return _private(secret, EllipticCurvePrivateKey, "ECDSA")

    def checking_key(self, secret: str) -> Any:
        """Read a public key or a certificate."""
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

        return _public(secret, EllipticCurvePublicKey, "ECDSA")

    def sign(self, key: Any, message: bytes) -> bytes:
        """Sign the message's digest."""
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        if key.key_size != self._curve_bits:
            raise ArgumentError("signing token: key is invalid")
        r, s = decode_dss_signature(key.sign(message, ECDSA(_hash(self.bits))))
        return r.to_bytes(self._width, "big") + s.to_bytes(self._width, "big")

    def check(self, key: Any, message: bytes, signature: bytes) -> None:
        """Check the signature."""
        from cryptography.exceptions import InvalidSignature as Invalid
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
        from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

        invalid = InvalidSignature("crypto/ecdsa: verification error")
        if len(signature) != 2 * self._width:
            raise invalid
        r, s = signature[: self._width], signature[self._width :]
        der = encode_dss_signature(int.from_bytes(r, "big"), int.from_bytes(s, "big"))
        try:
            key.verify(der, message, ECDSA(_hash(self.bits)))
        except Invalid:
            raise invalid from None


def _hash(bits: int) -> Any:
    from cryptography.hazmat.primitives import hashes

    makers: dict[int, Any] = {256: hashes.SHA256, 384: hashes.SHA384, 512: hashes.SHA512}
    return makers[bits]()


_BITS: Final = (256, 384, 512)
ALGORITHMS: Final[dict[str, Algorithm]] = {
    algorithm.name: algorithm
    for bits in _BITS
    for algorithm in (Hmac(f"HS{bits}", bits), Rsa(f"RS{bits}", bits), Ecdsa(f"ES{bits}", bits))
}
"""By their names in a token's header."""
