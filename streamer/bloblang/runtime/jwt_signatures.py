"""Signatures of JSON Web Tokens (RFC 7518): HMAC, RSA (PKCS #1 v1.5) and ECDSA with SHA-2.

RSA and ECDSA are PyJWT's, with keys that the library cryptography reads from PEM texts. HMAC's key
is any text: PyJWT refuses what looks like another kind of key, Go takes it.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from streamer.bloblang.errors import ArgumentError

_NO_PEM: Final = "invalid key: Key must be a PEM encoded PKCS1 or PKCS8 key"


class InvalidSignatureError(Exception):
    """A signature does not match; its text says why, in the words of Go's library."""


@dataclass(frozen=True, slots=True)
class SignatureAlgorithm:
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

    def verify(self, key: Any, message: bytes, signature: bytes) -> None:
        """Return if a signature matches.

        Raises:
            InvalidSignature: it does not.
        """
        raise NotImplementedError


class Hmac(SignatureAlgorithm):
    """HMAC: the same text signs and checks."""

    def signing_key(self, secret: str) -> bytes:
        """Return the secret's bytes."""
        return secret.encode(errors="surrogateescape")

    checking_key = signing_key

    def sign(self, key: bytes, message: bytes) -> bytes:
        """Return the message's authentication code."""
        return hmac.digest(key, message, f"sha{self.bits}")

    def verify(self, key: bytes, message: bytes, signature: bytes) -> None:
        """Compare in constant time."""
        if not hmac.compare_digest(self.sign(key, message), signature):
            raise InvalidSignatureError("signature is invalid")


def _load_private_key(secret: str, kind: type, name: str) -> Any:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    return _load_key(
        lambda raw: load_pem_private_key(raw, None), secret, kind, f"{name} private key"
    )


def _load_public_key(secret: str, kind: type, name: str) -> Any:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    def load(raw: bytes) -> Any:
        if b"-----BEGIN CERTIFICATE-----" in raw:
            return x509.load_pem_x509_certificate(raw).public_key()
        return load_pem_public_key(raw)

    return _load_key(load, secret, kind, f"{name} public key")


def _load_key(load: Any, secret: str, kind: type, description: str) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm

    if "-----BEGIN " not in secret:
        raise ArgumentError(_NO_PEM)
    try:
        key = load(secret.encode(errors="replace"))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, kind):
        raise ArgumentError(f"key is not a valid {description}")
    return key


class Rsa(SignatureAlgorithm):
    """RSA with PKCS #1 v1.5 padding."""

    def signing_key(self, secret: str) -> Any:
        """Read a private key."""
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

        return _load_private_key(secret, RSAPrivateKey, "RSA")

    def checking_key(self, secret: str) -> Any:
        """Read a public key or a certificate."""
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

        return _load_public_key(secret, RSAPublicKey, "RSA")

    def sign(self, key: Any, message: bytes) -> bytes:
        """Sign the message's digest."""
        try:
            signature: bytes = _get_signer(self.name).sign(message, key)
        except ValueError:
            reason = "crypto/rsa: message too long for RSA key size"
            raise ArgumentError(f"signing token: {reason}") from None
        return signature

    def verify(self, key: Any, message: bytes, signature: bytes) -> None:
        """Check the signature."""
        if not _get_signer(self.name).verify(message, key, signature):
            raise InvalidSignatureError("crypto/rsa: verification error")


class Ecdsa(SignatureAlgorithm):
    """ECDSA on the digest's curve; a signature is r and s, one after the other."""

    @property
    def _curve_bits(self) -> int:
        return 521 if self.bits == 512 else self.bits

    def signing_key(self, secret: str) -> Any:
        """Read a private key."""
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

        return _load_private_key(secret, EllipticCurvePrivateKey, "ECDSA")

    def checking_key(self, secret: str) -> Any:
        """Read a public key or a certificate."""
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

        return _load_public_key(secret, EllipticCurvePublicKey, "ECDSA")

    def sign(self, key: Any, message: bytes) -> bytes:
        """Sign the message's digest."""
        if key.key_size != self._curve_bits:
            raise ArgumentError("signing token: key is invalid")
        signature: bytes = _get_signer(self.name).sign(message, key)
        return signature

    def verify(self, key: Any, message: bytes, signature: bytes) -> None:
        """Check the signature, whose length is the algorithm's and not that of the key's curve."""
        size = 2 * ((self._curve_bits + 7) // 8)
        if len(signature) != size or not _get_signer(self.name).verify(message, key, signature):
            raise InvalidSignatureError("crypto/ecdsa: verification error")


@cache
def _get_signer(name: str) -> Any:
    import jwt

    return jwt.get_algorithm_by_name(name)


_BITS: Final = (256, 384, 512)
ALGORITHMS: Final[dict[str, SignatureAlgorithm]] = {
    algorithm.name: algorithm
    for bits in _BITS
    for algorithm in (Hmac(f"HS{bits}", bits), Rsa(f"RS{bits}", bits), Ecdsa(f"ES{bits}", bits))
}
"""By their names in a token's header."""
