"""Methods that sign claims as JSON Web Tokens, and that check and read such tokens."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, Final

from streamer.bloblang.declare import CONNECT, Example, Param, declare
from streamer.bloblang.runtime import jwt_tokens
from streamer.bloblang.runtime.jwt_signatures import ALGORITHMS
from streamer.core.execution import Execution

_CATEGORY = "JSON Web Tokens"
_SECRET = Param("signing_secret", "string")
_HEADERS = Param("headers", "any", default=None)

_NOT_PEM_ERROR: Final = "invalid key: Key must be a PEM encoded PKCS1 or PKCS8 key"
# Signatures of the claims {"a":1} with the secret "sesame", made by Go's library.
_EXAMPLE_SIGNATURES: Final = {
    "HS256": "8HcyeO5MGcBKKVwzBIq-mmAhdf0FtYClLAcOg_ErMew",
    "HS384": "kh-lI4j4Rm0C6bgtkkkRW-l7reOr0uhj0_7GiRl1NhTRrUVxIai5QJVRxvNo99NP",
    "HS512": "BZcfIrClCUEkPAsJKZAmUKWlpTi_xpHFlGJRv-Fn5FN1wAR6CjdJ8EITB03RzId2KYI2WmO5"
    "QUhHixzlNpgbkg",
}


def _example_token(algorithm: str) -> str:
    head = base64.urlsafe_b64encode(f'{{"alg":"{algorithm}","typ":"JWT"}}'.encode()).decode()
    return f"{head.rstrip('=')}.eyJhIjoxfQ.{_EXAMPLE_SIGNATURES[algorithm]}"


def _declare_sign(name: str) -> Callable[[str, Any], Callable[[Any], str]]:
    algorithm, method = ALGORITHMS[name], f"sign_jwt_{name.lower()}"
    if name in _EXAMPLE_SIGNATURES:
        example = Example(f'root = this.{method}("sesame")', '{"a":1}', _example_token(name))
    else:
        mapping = f"root = this.{method}(this.key).catch(e -> e)"
        example = Example(mapping, '{"key":"x"}', f"decoding signing_secret: {_NOT_PEM_ERROR}")

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
        return jwt_tokens.make_signer(algorithm, signing_secret, headers)

    return sign


def _declare_parse(name: str) -> Callable[[str], Callable[[Execution, Any], dict[str, Any]]]:
    algorithm, method = ALGORITHMS[name], f"parse_jwt_{name.lower()}"
    if name in _EXAMPLE_SIGNATURES:
        example_input = json.dumps({"token": _example_token(name)})
        example = Example(f'root = this.token.{method}("sesame")', example_input, '{"a":1}')
    else:
        mapping = f"root = this.token.{method}(this.key).catch(e -> e)"
        example = Example(mapping, '{"token":"","key":"x"}', _NOT_PEM_ERROR)

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
        read = jwt_tokens.make_parser(algorithm, signing_secret)
        return lambda ex, token: read(ex.now(), token)

    return parse


sign_jwt_hs256 = _declare_sign("HS256")
sign_jwt_hs384 = _declare_sign("HS384")
sign_jwt_hs512 = _declare_sign("HS512")
sign_jwt_rs256 = _declare_sign("RS256")
sign_jwt_rs384 = _declare_sign("RS384")
sign_jwt_rs512 = _declare_sign("RS512")
sign_jwt_es256 = _declare_sign("ES256")
sign_jwt_es384 = _declare_sign("ES384")
sign_jwt_es512 = _declare_sign("ES512")
parse_jwt_hs256 = _declare_parse("HS256")
parse_jwt_hs384 = _declare_parse("HS384")
parse_jwt_hs512 = _declare_parse("HS512")
parse_jwt_rs256 = _declare_parse("RS256")
parse_jwt_rs384 = _declare_parse("RS384")
parse_jwt_rs512 = _declare_parse("RS512")
parse_jwt_es256 = _declare_parse("ES256")
parse_jwt_es384 = _declare_parse("ES384")
parse_jwt_es512 = _declare_parse("ES512")
