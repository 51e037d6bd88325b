"""Digests of short and long data: values of the algorithms' specifications, and kept ones."""

from __future__ import annotations

import hashlib

import pytest

from streamer.bloblang.runtime import digests
from streamer.connectors.spool.sharded_join import MERGES, ShardedJoiner
from streamer.core.message import Message

RISING = bytes(range(32))


@pytest.mark.parametrize(
    ("polynomial", "data", "digest"),
    [
        # RFC 3720, B.4; there the bytes stand the other way round.
        ("Castagnoli", bytes(32), "8a9136aa"),
        ("Castagnoli", b"\xff" * 32, "62a8ab43"),
        ("Castagnoli", RISING, "46dd794e"),
        ("Castagnoli", RISING[::-1], "113fdb5c"),
        ("Castagnoli", b"123456789", "e3069283"),
        ("Castagnoli", b"", "00000000"),
        ("Koopman", b"123456789", "2d3dd0ae"),
        ("IEEE", b"123456789", "cbf43926"),
    ],
)
def test_a_crc32_has_the_polynomial_s_check_values(
    polynomial: str, data: bytes, digest: str
) -> None:
    assert digests.find_digest("crc32", b"", polynomial)(data).hex() == digest


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"123456789", 10139926970967174787),
    ],
)
def test_xxhash64_is_xxh64_with_seed_0_in_decimal(data: bytes, digest: int) -> None:
    assert digests.find_digest("xxhash64", b"", "")(data) == str(digest).encode()


@pytest.mark.parametrize(
    ("algorithm", "polynomial", "whole"),
    [
        ("xxhash64", "", "06f1f7d360d32828e035569f3e695f52"),
        ("crc32", "Castagnoli", "13fbae70b91e88f62235c34c69762af2"),
        ("crc32", "Koopman", "1289add45ef320e36c52e13a73b58fba"),
        ("crc32", "IEEE", "06ca59d9fc36220521ebbee3af6a5c0f"),
        ("fnv32", "", "55ba7cac117278ecb9643ecc1bac6fc1"),
    ],
)
def test_digests_of_every_length_stay_what_they_were(
    algorithm: str, polynomial: str, whole: str
) -> None:
    """They are kept: keys of caches, and the parts of joins, are made of them."""
    data = bytes(i * 7 % 251 for i in range(300))
    digest = digests.find_digest(algorithm, b"", polynomial)
    found = b" ".join(digest(data[:size]) for size in range(300))
    assert hashlib.sha256(found).hexdigest()[:32] == whole


def test_an_identifier_falls_into_the_part_of_a_join_that_its_digest_says() -> None:
    names = [f"car-{n}" for n in range(40)] + ["", "é"]
    for iteration in range(3):
        joiner = ShardedJoiner("id", MERGES["array"], 3, on_last=False)
        assert not list(
            joiner.add([Message.from_value({"id": name}) for name in names], iteration, False)
        )
        found = [message.doc["id"] for batch in joiner.end() for message in batch]
        digest = digests.find_digest("xxhash64", b"", "")
        assert found == [n for n in names if n and int(digest(n.encode())) % 3 == iteration]
        assert len(found) > 5
