"""JSON Web Tokens; the texts of errors are those of Go's library, as Connect uses it."""
# ruff: noqa: E501 - tables of whole tokens

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from streamer.bloblang import BloblangError, compile_mapping
from tests.bloblang.running import NOW, run

CURVES = {"256": ec.SECP256R1(), "384": ec.SECP384R1(), "512": ec.SECP521R1()}
NOW_SECONDS = NOW // 10**9
HEADER = '{"alg":"HS256","typ":"JWT"}'
NO_PEM = "invalid key: Key must be a PEM encoded PKCS1 or PKCS8 key"


@pytest.fixture(scope="module")
def keys():
    """Give a private key for each name of an algorithm."""
    made = {f"es{bits}": ec.generate_private_key(curve) for bits, curve in CURVES.items()}
    shared = rsa.generate_private_key(65537, 2048)
    return made | {f"rs{bits}": shared for bits in CURVES}


def private(key, form=PrivateFormat.PKCS8):
    return key.private_bytes(Encoding.PEM, form, NoEncryption()).decode()


def public(key, form=PublicFormat.SubjectPublicKeyInfo):
    return key.public_key().public_bytes(Encoding.PEM, form).decode()


def coded(text):
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def token(claims, header=HEADER, secret=b"k"):
    message = f"{coded(header)}.{coded(claims)}"
    digest = hmac.digest(secret, message.encode(), hashlib.sha256)
    return f"{message}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def read(text, mapping='root = this.t.parse_jwt_hs256("k")'):
    return run(mapping, json.dumps({"t": text}))


@pytest.mark.parametrize(
    ("bits", "signature"),
    [
        ("256", "hUl-nngPMY_3h9vveWJUPsCcO5PeL6k9hWLnMYeFbFQ"),
        ("384", "zGYLr83aToon1efUNq-hw7XgT20lPvZb8sYei8x6S6mpHwb433SJdXJXx0Oio8AZ"),
        (
            "512",
            "zBNR9o_6EDwXXKkpKLNJhG26j8Dc-mV-YahBwmEdCrmiWt5les8I9rgmNlWIowpq6Yxs4kLNAdFhqoRz3NXT3w",
        ),
    ],
)
def test_the_documented_tokens_are_signed_and_read(bits, signature):
    signed = run(f'root = this.sign_jwt_hs{bits}("dont-tell-anyone")', '{"sub":"user123"}')
    assert signed.split(".")[2] == signature
    mapping = f'root = this.t.parse_jwt_hs{bits}("dont-tell-anyone")'
    assert read(signed, mapping) == '{"sub":"user123"}'


def test_claims_are_written_as_go_writes_them():
    given = '{"z":1.50,"x":"<&>\\u2028é","d":{"b":[1,true,null],"a":0}}'
    signed = run('root = this.sign_jwt_hs256("k")', given)
    claims = base64.urlsafe_b64decode(signed.split(".")[1] + "==").decode()
    assert claims == '{"d":{"a":0,"b":[1,true,null]},"x":"\\u003c\\u0026\\u003e\\u2028é","z":1.50}'


@pytest.mark.parametrize("name", ["rs256", "rs384", "rs512", "es256", "es384", "es512"])
def test_what_a_private_key_signs_the_public_one_checks(name, keys):
    given = {"c": {"sub": "u", "n": 5}, "key": private(keys[name]), "public": public(keys[name])}
    mapping = f"root = this.c.sign_jwt_{name}(this.key).parse_jwt_{name}(this.public)"
    assert run(mapping, json.dumps(given)) == '{"n":5,"sub":"u"}'
    given["key"] = private(keys[name], PrivateFormat.TraditionalOpenSSL)
    assert run(mapping, json.dumps(given)) == '{"n":5,"sub":"u"}'


@pytest.mark.parametrize(
    ("name", "library"), [("rs256", "rsa"), ("es256", "ecdsa"), ("es512", "ecdsa")]
)
def test_a_changed_token_is_refused(name, library, keys):
    given = {"c": {"sub": "u"}, "key": private(keys[name])}
    signed = run(f"root = this.c.sign_jwt_{name}(this.key)", json.dumps(given))
    head, _, signature = signed.split(".")
    text = ".".join((head, coded('{"sub":"v"}'), signature))
    given = {"t": text, "key": public(keys[name])}
    found = run(f"root = this.t.parse_jwt_{name}(this.key)", json.dumps(given))
    reason = f"token signature is invalid: crypto/{library}: verification error"
    assert found == f'Error("failed assignment (line 1): parsing JWT string: {reason}")'


@pytest.mark.parametrize("name", ["rs256", "rs384", "rs512", "es256", "es384", "es512"])
def test_signatures_are_those_of_the_library_cryptography(name, keys):
    key, digest = keys[name], getattr(hashes, f"SHA{name[2:]}")()
    checked_as = (padding.PKCS1v15(), digest) if name[0] == "r" else (ec.ECDSA(digest),)
    given = {"c": {"n": 5}, "key": private(key), "public": public(key)}
    signed = run(f"root = this.c.sign_jwt_{name}(this.key)", json.dumps(given))
    message, _, text = signed.rpartition(".")
    signature = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    width = len(signature) // 2
    if name[0] == "e":
        parts = (signature[:width], signature[width:])
        signature = utils.encode_dss_signature(*(int.from_bytes(part, "big") for part in parts))
    key.public_key().verify(signature, message.encode(), *checked_as)

    made = key.sign(message.encode(), *checked_as)
    if name[0] == "e":
        made = b"".join(n.to_bytes(width, "big") for n in utils.decode_dss_signature(made))
    given["t"] = f"{message}.{base64.urlsafe_b64encode(made).rstrip(b'=').decode()}"
    assert run(f"root = this.t.parse_jwt_{name}(this.public)", json.dumps(given)) == '{"n":5}'


def test_a_signature_on_another_curve_than_the_algorithm_s_is_refused(keys):
    key = keys["es384"]
    message = f"{coded(HEADER.replace('HS', 'ES'))}.{coded('{}')}".encode()
    pair = utils.decode_dss_signature(key.sign(message, ec.ECDSA(hashes.SHA256())))
    signature = b"".join(n.to_bytes(48, "big") for n in pair)
    text = f"{message.decode()}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"
    given = {"t": text, "key": public(key)}
    found = run("root = this.t.parse_jwt_es256(this.key)", json.dumps(given))
    reason = "token signature is invalid: crypto/ecdsa: verification error"
    assert found == f'Error("failed assignment (line 1): parsing JWT string: {reason}")'


def test_an_rsa_key_too_small_for_the_digest_signs_nothing():
    p = 0xEF64441CB6DA932426F735708F9967DE68A66F72A729B7ED33E379FBF6D9F897
    q = 0xDA576BA1AD729FEB488F826742C1681D9B32340390DD969D4FD024A60A63E95F
    d = pow(65537, -1, (p - 1) * (q - 1))
    of_public = rsa.RSAPublicNumbers(65537, p * q)
    rest = (rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q))
    key = rsa.RSAPrivateNumbers(p, q, d, *rest, of_public).private_key()
    given = {"c": {}, "key": private(key)}
    reason = "crypto/rsa: message too long for RSA key size"
    found = run("root = this.c.sign_jwt_rs512(this.key)", json.dumps(given))
    assert found == f'Error("failed assignment (line 1): signing token: {reason}")'


def test_a_key_of_the_old_form_is_read(keys):
    key = keys["rs256"]
    given = {"c": {}, "key": private(key), "public": public(key, PublicFormat.PKCS1)}
    mapping = "root = this.c.sign_jwt_rs256(this.key).parse_jwt_rs256(this.public)"
    assert run(mapping, json.dumps(given)) == "{}"


def test_a_key_on_another_curve_signs_nothing(keys):
    given = {"c": {}, "key": private(keys["es384"])}
    found = run("root = this.c.sign_jwt_es256(this.key)", json.dumps(given))
    assert found == 'Error("failed assignment (line 1): signing token: key is invalid")'


@pytest.mark.parametrize(
    ("mapping", "key", "error"),
    [
        (
            "this.c.sign_jwt_rs256(this.k)",
            "es256",
            "decoding signing_secret: key is not a valid RSA private key",
        ),
        (
            "this.c.sign_jwt_es256(this.k)",
            "rs256",
            "decoding signing_secret: key is not a valid ECDSA private key",
        ),
        ("this.t.parse_jwt_rs256(this.p)", "es256", "key is not a valid RSA public key"),
        ("this.t.parse_jwt_es256(this.p)", "rs256", "key is not a valid ECDSA public key"),
        ("this.c.sign_jwt_es256(this.t)", "es256", f"decoding signing_secret: {NO_PEM}"),
    ],
)
def test_a_key_of_another_kind_is_an_error(mapping, key, error, keys):
    given = {"c": {}, "t": "a.b.c", "k": private(keys[key]), "p": public(keys[key])}
    found = run(f"root = {mapping}", json.dumps(given))
    assert found == f'Error("failed assignment (line 1): {error}")'


@pytest.mark.parametrize(
    ("mapping", "error"),
    [
        ('root = this.sign_jwt_rs256("x")', f"decoding signing_secret: {NO_PEM}"),
        ('root = this.parse_jwt_es256("x")', NO_PEM),
        (
            'root = this.sign_jwt_hs256("k", "x")',
            "headers parameter must be an object (map), got string",
        ),
        (
            'root = this.sign_jwt_hs256("k", 5)',
            "headers parameter must be an object (map), got int64",
        ),
        ("root = this.parse_jwt_hs256()", "missing parameter: signing_secret"),
    ],
)
def test_a_wrong_literal_is_refused_when_the_mapping_is_read(mapping, error):
    with pytest.raises(BloblangError) as refused:
        compile_mapping(mapping)
    assert error in str(refused.value)


def test_headers_are_added_but_not_those_that_tell_how_to_check():
    given = (
        '{"c":{},"h":{"kid":"a","alg":"none","typ":"X","crit":["b"],"jku":"u","z":{"b":1,"a":2.0}}}'
    )
    signed = run('root = this.c.sign_jwt_hs256("k", this.h)', given)
    header = base64.urlsafe_b64decode(signed.split(".")[0] + "==").decode()
    assert header == '{"alg":"HS256","kid":"a","typ":"JWT","z":{"a":2.0,"b":1}}'


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        (
            token('{"a":1.0,"b":12345678901234567890,"c":1e3}'),
            '{"a":1,"b":12345678901234567000,"c":1000}',
        ),
        (token("null"), "{}"),
        (token(f'{{"exp":{NOW_SECONDS + 1}}}'), f'{{"exp":{NOW_SECONDS + 1}}}'),
        (token(f'{{"nbf":{NOW_SECONDS}}}'), f'{{"nbf":{NOW_SECONDS}}}'),
        (token('{"iat":99999999999}'), '{"iat":99999999999}'),
        (token('{"exp":0}'), '{"exp":0}'),
    ],
)
def test_a_token_has_its_claims(text, claims):
    assert read(text) == claims


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a.b", "token is malformed: token contains an invalid number of segments"),
        ("a.b.c.d", "token is malformed: token contains an invalid number of segments"),
        (
            "a.b.c",
            "token is malformed: could not base64 decode header: illegal base64 data at input byte 0",
        ),
        ("..", "token is malformed: could not JSON decode header: unexpected end of JSON input"),
        (
            token("{}", "x"),
            "token is malformed: could not JSON decode header: invalid character 'x' looking for beginning of value",
        ),
        (
            token("{}", "[]"),
            "token is malformed: could not JSON decode header: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            token("5"),
            "token is malformed: could not JSON decode claim: json: cannot unmarshal number into Go value of type jwt.MapClaims",
        ),
        (
            token('{"a":1'),
            "token is malformed: could not JSON decode claim: unexpected end of JSON input",
        ),
        (
            token("{} x"),
            "token is malformed: could not JSON decode claim: invalid character 'x' after top-level value",
        ),
        (
            token("{}") + "=",
            "token is malformed: could not base64 decode signature: illegal base64 data at input byte 43",
        ),
        (token("{}", secret=b"z"), "token signature is invalid: signature is invalid"),
        (token("{}", "{}"), "token is unverifiable: signing method (alg) is unspecified"),
        (
            token("{}", '{"alg":"nope"}'),
            "token is unverifiable: signing method (alg) is unavailable",
        ),
        (
            token("{}", '{"alg":"none"}'),
            "token is unverifiable: error while executing keyfunc: incorrect signing method: none",
        ),
        (
            token("{}", '{"alg":"RS256"}'),
            "token is unverifiable: error while executing keyfunc: incorrect signing method: RS256",
        ),
        (token(f'{{"exp":{NOW_SECONDS}}}'), "token has invalid claims: token is expired"),
        (token(f'{{"nbf":{NOW_SECONDS + 1}}}'), "token has invalid claims: token is not valid yet"),
        (
            token('{"exp":1,"nbf":99999999999}'),
            "token has invalid claims: token is expired, token is not valid yet",
        ),
        (token('{"exp":"1"}'), "token has invalid claims: invalid type for claim: exp is invalid"),
    ],
)
def test_a_token_that_is_not_valid_is_refused(text, error):
    assert read(text) == f'Error("failed assignment (line 1): parsing JWT string: {error}")'


def test_the_run_s_clock_is_the_one_that_counts():
    assert datetime.fromtimestamp(NOW_SECONDS, UTC).year == 2023
    assert read(token('{"exp":1704067200}')) == '{"exp":1704067200}'


def test_only_texts_are_tokens_and_only_objects_are_claims():
    assert read(5) == 'Error("failed assignment (line 1): expected string value, got number (5)")'
    found = run('root = this.c.sign_jwt_hs256("k")', '{"c":[1]}')
    assert found == 'Error("failed assignment (line 1): expected object value, got array")'
