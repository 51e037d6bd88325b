"""encrypt_aes and decrypt_aes: known vectors, both ways, and what is refused."""
# ruff: noqa: E501 - tables of whole error texts

import pytest

from streamer.bloblang import BloblangError, compile_mapping
from tests.bloblang.running import run

KEY = '"2b7e151628aed2a6abf7158809cf4f3c".decode("hex")'
LONG_KEY = '"603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4".decode("hex")'
COUNTER = '"f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff".decode("hex")'
VECTOR = '"000102030405060708090a0b0c0d0e0f".decode("hex")'
TEXT = '"6bc1bee22e409f96e93d7e117393172a".decode("hex")'


# NIST SP 800-38A, appendix F.
@pytest.mark.parametrize(
    ("scheme", "key", "iv", "result"),
    [
        ("ctr", KEY, COUNTER, "874d6191b620e3261bef6864990db6ce"),
        ("ctr", LONG_KEY, COUNTER, "601ec313775789a5b7a7f504bbf3d228"),
        ("cbc", KEY, VECTOR, "7649abac8119b246cee98e9b12e9197d"),
        ("cbc", LONG_KEY, VECTOR, "f58c4c04d6e5f1ba779eabfb5f7bfbd6"),
        ("ofb", KEY, VECTOR, "3b3fd92eb72dad20333449f8e83cfb4a"),
        ("ofb", LONG_KEY, VECTOR, "dc7e84bfda79164b7ecd8486985d3860"),
    ],
)
def test_published_vectors_are_met(scheme, key, iv, result):
    arguments = f'"{scheme}", {key}, {iv}'
    assert run(f'root = {TEXT}.encrypt_aes({arguments}).encode("hex")') == result
    back = f'root = "{result}".decode("hex").decrypt_aes({arguments}).encode("hex")'
    assert run(back) == "6bc1bee22e409f96e93d7e117393172a"


def test_gcm_carries_its_own_check():
    mapping = 'root = this.t.encrypt_aes("gcm", "0123456789abcdef", "0123456789ab").encode("hex")'
    assert run(mapping, '{"t":"x"}') == "1a14dab1f22e56051345fb5d98949fe040"
    spoilt = '"1a14dab1f22e56051345fb5d98949fe041".decode("hex")'
    found = run(f'root = {spoilt}.decrypt_aes("gcm", "0123456789abcdef", "0123456789ab")')
    assert "gcm decrypting failed: cipher: message authentication failed" in found


@pytest.mark.parametrize("scheme", ["ctr", "gcm", "ofb", "cbc"])
def test_what_is_encrypted_can_be_decrypted(scheme):
    iv = "0123456789ab" if scheme == "gcm" else "0123456789abcdef"
    arguments = f'"{scheme}", "0123456789abcdef01234567", "{iv}"'
    mapping = f"root = content().encrypt_aes({arguments}).decrypt_aes({arguments})"
    assert run(mapping, "sixteen bytes né") == "sixteen bytes né" or scheme == "cbc"
    assert run(mapping, "sixteen bytes it") == "sixteen bytes it"


@pytest.mark.parametrize(
    ("method", "arguments", "error"),
    [
        ("encrypt_aes", f'"nope", {KEY}, {VECTOR}', "unrecognized encryption type: nope"),
        ("decrypt_aes", f'"nope", {KEY}, {VECTOR}', "unrecognized decryption type: nope"),
        ("encrypt_aes", f'"ctr", "short", {VECTOR}', "crypto/aes: invalid key size 5"),
        (
            "encrypt_aes",
            f'"cbc", {KEY}, "short"',
            "the key must match the initialisation vector size",
        ),
        (
            "encrypt_aes",
            f'"cbc", {KEY}, {VECTOR}',
            "field `this.t`: plaintext is not a multiple of the block size",
        ),
        (
            "decrypt_aes",
            f'"cbc", {KEY}, {VECTOR}',
            "field `this.t`: ciphertext is not a multiple of the block size",
        ),
        (
            "encrypt_aes",
            f'"gcm", {KEY}, "short"',
            "field `this.t`: gcm takes an iv of 12 bytes, got 5",
        ),
    ],
)
def test_what_cannot_be_done_is_said(method, arguments, error):
    assert (
        run(f"root = this.t.{method}({arguments})", '{"t":"x"}')
        == f'Error("failed assignment (line 1): {error}")'
    )


def test_wrong_literals_are_refused_when_the_mapping_is_read():
    with pytest.raises(BloblangError, match="crypto/aes: invalid key size 1"):
        compile_mapping('root = this.t.encrypt_aes("ctr", "k", "v")')
    found = run(f'root = this.t.encrypt_aes("ctr", {KEY}, {VECTOR})', '{"t":5}')
    assert "expected string value, got number from field `this.t` (5)" in found
