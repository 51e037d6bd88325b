"""Methods that sign claims as JSON Web Tokens, and that check and read such tokens."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, Final

from streamer.bloblang.declare import CONNECT, Example, Param, declare
from streamer.bloblang.runtime import tokens
from streamer.bloblang.runtime.signatures import ALGORITHMS
from streamer.message import Execution

_CATEGORY = "JSON Web Tokens"
_SECRET = Param("signing_secret", "string")
_HEADERS = Param("headers", "any", default=None)

_NOT_PEM: Final = "invalid key: Key must be a PEM encoded PKCS1 or PKCS8 key"
# Signatures of the claims {"a":1} with the secret "sesame", made by Go's library.
_KNOWN: Final = {
    "HS256": "8HcyeO5MGcBKKVwzBIq-mmAhdf0FtYClLAcOg_ErMew",
    "HS384": "kh-lI4j4Rm0C6bgtkkkRW-l7reOr0uhj0_7GiRl1NhTRrUVxIai5QJVRxvNo99NP",
    "HS512": "BZcfIrClCUEkPAsJKZAmUKWlpTi_xpHFlGJRv-Fn5FN1wAR6CjdJ8EITB03RzId2KYI2WmO5"
    "QUhHixzlNpgbkg",
}


def _token(algorithm: str) -> str:
    head = base64.urlsafe_b64encode(f'{{"alg":"{algorithm}","typ":"JWT"}}'.encode()).decode()
    return f"{head.rstrip('=')}.eyJhIjoxfQ.{_KNOWN[algorithm]}"


def _signs(name: str) -> Callable[[str, Any], Callable[[Any], str]]:
    algorithm, method = ALGORITHMS[name], f"sign_jwt_{name.lower()}"
    if name in _KNOWN:
        example = Example(f'root = this.{method}("sesame")', '{"a":1}', _token(name))
    else:
        mapping = f"root = this.{method}(this.key).catch(e -> e)"
        example = Example(mapping, '{"key":"x"}', f"decoding signing_secret: {_NOT_PEM}")

    @declare(
        method,
        _CATEGORY,
        _SECRET,
        _HEADERS,
        summary=f"The claims as a token that is signed with {name}; headers may be added.",
        examples=(example,),
        binds=True,
        own_errors=True,
        origin=CONNECT,
    )
    def sign(signing_secret: str, headers: Any) -> Callable[[Any], str]:
        return tokens.signer(algorithm, signing_secret, headers)

    return sign


def _parses(name: str) -> Callable[[str], Callable[[Execution, Any], dict[str, Any]]]:
    algorithm, method = ALGORITHMS[name], f"parse_jwt_{name.lower()}"
    if name in _KNOWN:
        given = json.dumps({"token": _token(name)})
        example = Example(f'root = this.token.{method}("sesame")', given, '{"a":1}')
    else:
        mapping = f"root = this.token.{method}(this.key).catch(e -> e)"
        example = Example(mapping, '{"token":"","key":"x"}', _NOT_PEM)

    @declare(
        method,
        _CATEGORY,
        _SECRET,
        summary=f"The claims of a token that is signed with {name} and valid at this time.",
        examples=(example,),
        needs=("ex",),
        uses=("now",),
        binds=True,
        own_errors=True,
        origin=CONNECT,
    )
    def parse(signing_secret: str) -> Callable[[Execution, Any], dict[str, Any]]:
        read = tokens.parser(algorithm, signing_secret)
        return lambda ex, token: read(ex.now(), token)

    return parse


sign_jwt_hs256 = _signs("HS256")
sign_jwt_hs384 = _signs("HS384")
sign_jwt_hs512 = _signs("HS512")
sign_jwt_rs256 = _signs("RS256")
sign_jwt_rs384 = _signs("RS384")
sign_jwt_rs512 = _signs("RS512")
sign_jwt_es256 = _signs("ES256")
sign_jwt_es384 = _signs("ES384")
sign_jwt_es512 = _signs("ES512")
parse_jwt_hs256 = _parses("HS256")
parse_jwt_hs384 = _parses("HS384")
parse_jwt_hs512 = _parses("HS512")
parse_jwt_rs256 = _parses("RS256")
parse_jwt_rs384 = _parses("RS384")
parse_jwt_rs512 = _parses("RS512")
parse_jwt_es256 = _parses("ES256")
parse_jwt_es384 = _parses("ES384")
parse_jwt_es512 = _parses("ES512")
