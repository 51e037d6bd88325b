"""Methods that encrypt and decrypt with AES."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamer.bloblang.declare import Example, Param, declare
from streamer.bloblang.errors import ArgumentError, QueryError
from streamer.bloblang.golib.convert import bytes_of

_CATEGORY: Final = "Encoding and Encryption"
_BLOCK_BYTES: Final = 16
_NONCE_BYTES: Final = 12
_EXAMPLE_KEY: Final = "2b7e151628aed2a6abf7158809cf4f3c"
_EXAMPLE_IV: Final = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
_EXAMPLE_LETS: Final = (
    f'let k = "{_EXAMPLE_KEY}".decode("hex")\nlet v = "{_EXAMPLE_IV}".decode("hex")\n'
)
_Transform = Callable[[bytes], bytes]


def _check_parameters(scheme: str, key: bytes, iv: bytes, verb: str) -> None:
    if len(key) not in (16, 24, 32):
        raise ArgumentError(f"crypto/aes: invalid key size {len(key)}")
    if scheme in ("ctr", "ofb", "cbc"):
        if len(iv) != _BLOCK_BYTES:
            raise ArgumentError("the key must match the initialisation vector size")
    elif scheme != "gcm":
        raise ArgumentError(f"unrecognized {verb} type: {scheme}")


def _make_mode(scheme: str, iv: bytes) -> Any:
    """Return the mode of operation of a scheme that needs no check of what it decrypts."""
    from cryptography.hazmat.decrepit.ciphers.modes import OFB
    from cryptography.hazmat.primitives.ciphers import modes

    if scheme == "cbc":
        return modes.CBC(iv)
    if scheme == "ctr":
        return modes.CTR(iv)
    return OFB(iv)


def _make_cipher(scheme: str, key: bytes, iv: bytes, *, encrypt: bool) -> _Transform:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES

    cipher = Cipher(AES(key), _make_mode(scheme, iv))
    what = "plaintext" if encrypt else "ciphertext"

    def run(data: bytes) -> bytes:
        if scheme == "cbc" and len(data) % _BLOCK_BYTES:
            raise QueryError(f"{what} is not a multiple of the block size")
        context = cipher.encryptor() if encrypt else cipher.decryptor()
        output: bytes = context.update(data) + context.finalize()
        return output

    return run


def _check_nonce(iv: bytes) -> None:
    if len(iv) != _NONCE_BYTES:
        raise QueryError(f"gcm takes an iv of {_NONCE_BYTES} bytes, got {len(iv)}")


def _make_gcm_encryptor(key: bytes, iv: bytes) -> _Transform:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    sealer = AESGCM(key)

    def run(data: bytes) -> bytes:
        _check_nonce(iv)
        return sealer.encrypt(iv, data, None)

    return run


def _make_gcm_decryptor(key: bytes, iv: bytes) -> _Transform:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    opener = AESGCM(key)

    def run(data: bytes) -> bytes:
        _check_nonce(iv)
        try:
            return opener.decrypt(iv, data, None)
        except InvalidTag:
            text = "gcm decrypting failed: cipher: message authentication failed"
            raise QueryError(text) from None

    return run


def _make_aes(scheme: str, key: str, iv: str, *, encrypt: bool) -> Callable[[Any], bytes]:
    raw_key, raw_iv = bytes_of(key), bytes_of(iv)
    _check_parameters(scheme, raw_key, raw_iv, "encryption" if encrypt else "decryption")
    if scheme == "gcm":
        run = (_make_gcm_encryptor if encrypt else _make_gcm_decryptor)(raw_key, raw_iv)
    else:
        run = _make_cipher(scheme, raw_key, raw_iv, encrypt=encrypt)
    return lambda value: run(bytes_of(value))


@declare(
    "encrypt_aes",
    _CATEGORY,
    Param("scheme", "string"),
    Param("key", "string"),
    Param("iv", "string"),
    examples=(
        Example(
            _EXAMPLE_LETS + 'root = this.a.encrypt_aes("ctr", $k, $v).encode("hex")',
            '{"a":"hello world!"}',
            "84e9b31ff7400bdf80be7254",
        ),
        Example(
            'root = this.a.encrypt_aes("cbc", "0123456789abcdef", "0123456789abcdef")',
            '{"a":"too short"}',
            'Error("failed assignment (line 1): field `this.a`: plaintext is not a multiple of '
            'the block size")',
        ),
    ),
    binds=True,
)
def encrypt_aes(scheme: str, key: str, iv: str) -> Callable[[Any], bytes]:
    """The bytes encrypted with AES in the scheme ctr, gcm, ofb or cbc; a key of 16 to 32 bytes."""
    return _make_aes(scheme, key, iv, encrypt=True)


@declare(
    "decrypt_aes",
    _CATEGORY,
    Param("scheme", "string"),
    Param("key", "string"),
    Param("iv", "string"),
    examples=(
        Example(
            _EXAMPLE_LETS + 'root = this.a.decode("hex").decrypt_aes("ctr", $k, $v)',
            '{"a":"84e9b31ff7400bdf80be7254"}',
            "hello world!",
        ),
        Example(
            'root = this.a.decrypt_aes("gcm", "0123456789abcdef", "0123456789ab")',
            '{"a":"this was never encrypted"}',
            'Error("failed assignment (line 1): field `this.a`: gcm decrypting failed: cipher: '
            'message authentication failed")',
        ),
    ),
    binds=True,
)
def decrypt_aes(scheme: str, key: str, iv: str) -> Callable[[Any], bytes]:
    """The original bytes of `encrypt_aes`, with the same scheme, key and iv."""
    return _make_aes(scheme, key, iv, encrypt=False)
