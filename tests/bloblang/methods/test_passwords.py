"""Password hashes; expectations were asked of Go's libraries, as Connect uses them."""
# ruff: noqa: E501 - tables of whole hashes

import json

import pytest

from tests.bloblang.running import run

BCRYPT = "$2y$10$Dtnt5NNzVtMCOZONT705tOcS8It6krJX8bEjnDJnwxiFKsz1C.3Ay"
ARGON2 = "$argon2id$v=19$m=4096,t=3,p=1$c2FsdHktbWNzYWx0ZmFjZQ$RMUMwgtS32/mbszd+ke4o4Ej1jFpYiUqY6MHWa69X7Y"
SECRET = "there-are-many-blobs-in-the-sea"


def compare(kind, secret, hashed):
    return run(f"root = this.s.compare_{kind}(this.h)", json.dumps({"s": secret, "h": hashed}))


@pytest.mark.parametrize(
    ("kind", "secret", "hashed", "matches"),
    [
        ("bcrypt", SECRET, BCRYPT, "true"),
        ("bcrypt", "will-i-ever-find-love", BCRYPT, "false"),
        ("bcrypt", "", BCRYPT, "false"),
        ("bcrypt", SECRET, BCRYPT.replace("$2y", "$2a"), "true"),
        ("bcrypt", SECRET, BCRYPT + "extra", "true"),
        ("bcrypt", "x", "$2x$04$Dtnt5NNzVtMCOZONT705tOcS8It6krJX8bEjnDJnwxiFKsz1C.3Ay", "false"),
        ("argon2", SECRET, ARGON2, "true"),
        ("argon2", "will-i-ever-find-love", ARGON2, "false"),
        ("argon2", SECRET, ARGON2.replace("argon2id", "argon2i"), "false"),
        ("argon2", SECRET, ARGON2.replace("v=19", "v=16"), "true"),
        ("argon2", "", "x", "false"),
    ],
)
def test_a_secret_matches_its_hash(kind, secret, hashed, matches):
    assert compare(kind, secret, hashed) == matches


def test_bcrypt_looks_at_72_bytes():
    import bcrypt

    hashed = bcrypt.hashpw(b"x" * 72, bcrypt.gensalt(4)).decode()
    assert compare("bcrypt", "x" * 100, hashed) == "true"
    assert compare("bcrypt", "x" * 71, hashed) == "false"


@pytest.mark.parametrize(
    ("kind", "hashed", "error"),
    [
        ("bcrypt", "short", "crypto/bcrypt: hashedSecret too short to be a bcrypted password"),
        (
            "bcrypt",
            "x" + BCRYPT[1:],
            "crypto/bcrypt: bcrypt hashes must start with '$', but hashedSecret started with 'x'",
        ),
        (
            "bcrypt",
            "$3" + BCRYPT[2:],
            "crypto/bcrypt: bcrypt algorithm version '3' requested is newer than current version '2'",
        ),
        (
            "bcrypt",
            BCRYPT.replace("$10$", "$99$"),
            "crypto/bcrypt: cost 99 is outside allowed inclusive range 4..31",
        ),
        ("bcrypt", BCRYPT.replace("$10$", "$xx$"), 'strconv.Atoi: parsing "xx": invalid syntax'),
        ("bcrypt", BCRYPT.replace("$D", "$!"), "illegal base64 data at input byte 0"),
        ("argon2", "x", "invalid argon2 hash"),
        (
            "argon2",
            ARGON2.replace("argon2id", "argon2d"),
            "invalid argon2 hash: unrecognised argon2 format",
        ),
        (
            "argon2",
            ARGON2.replace("v=19", "19"),
            "invalid argon2 hash: parsing version; input does not match format",
        ),
        (
            "argon2",
            ARGON2.replace("m=4096", "m=x"),
            "invalid argon2 hash: parsing parameters; expected integer",
        ),
        (
            "argon2",
            ARGON2.replace("p=1", "p=1,q=2"),
            "invalid argon2 hash: excess characters in parameters segment",
        ),
        (
            "argon2",
            ARGON2.replace("p=1", "p=300"),
            "invalid argon2 hash: parsing parameters; unsigned integer overflow on token 300",
        ),
        (
            "argon2",
            ARGON2.replace("FjZQ$", "FjZ!$"),
            "invalid argon2 hash: parsing base64 salt; illegal base64 data at input byte 21",
        ),
        (
            "argon2",
            ARGON2.replace("$RMUM", "$RM=UM"),
            "invalid argon2 hash: parsing base64 key; illegal base64 data at input byte 2",
        ),
    ],
)
def test_what_is_no_hash_is_an_error(kind, hashed, error):
    assert compare(kind, "x", hashed) == f'Error("failed assignment (line 1): {error}")'
