"""Environment variables of a submitted driver, unreadable for those who have its files alone.

The files of a driver are below the checkpoint, which is backed up and copied. The key is not there:
the cluster's master hands it to the driver's process. Only the standard library is used, as in
`driver.py`, because no other is there before the program's environment is unpacked. A key seals one
text and no other, so that the output of SHAKE-256 (FIPS 202) over it is a one-time pad for that
text; HMAC-SHA256 (RFC 2104) shows a change.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os

KEY_VARIABLE = "STREAMER_JOB_KEY"
"""The variable of the driver's process that has the key."""

_KEY_BYTES = 32
_TAG_BYTES = 32


def seal_variables(variables: dict[str, str]) -> tuple[str, str]:
    """Return variables as a sealed text, and its key, both in hexadecimal digits.

    >>> text, key = seal_variables({"PASSWORD": "secret"})
    >>> open_variables(text, key)
    {'PASSWORD': 'secret'}
    """
    key = os.urandom(_KEY_BYTES)
    sealed = _apply_pad(key, json.dumps(variables).encode())
    return (_make_tag(key, sealed) + sealed).hex(), key.hex()


def open_variables(text: str, key: str) -> dict[str, str]:
    """Return the variables of a sealed text.

    Raises:
        ValueError: the key is another text's, or the text has been changed.
    """
    sealed, secret = bytes.fromhex(text), bytes.fromhex(key)
    tag, sealed = sealed[:_TAG_BYTES], sealed[_TAG_BYTES:]
    if not hmac.compare_digest(tag, _make_tag(secret, sealed)):
        raise ValueError("the variables of the job were not sealed with the key of this driver")
    variables: dict[str, str] = json.loads(_apply_pad(secret, sealed))
    return variables


def _apply_pad(key: bytes, text: bytes) -> bytes:
    pad = hashlib.shake_256(b"pad" + key).digest(len(text))
    return bytes(a ^ b for a, b in zip(text, pad, strict=True))


def _make_tag(key: bytes, sealed: bytes) -> bytes:
    return hmac.digest(b"tag" + key, sealed, "sha256")
