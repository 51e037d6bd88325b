"""The fields by which an HTTP client says who it is: OAuth 1 and 2, a password, or a JWT."""

from __future__ import annotations

from typing import Any, Final

from streamer.core.urls import url_problem
from streamer.sdk.spec import Access, Field

OAUTH: Final = "oauth"
OAUTH2: Final = "oauth2"
BASIC_AUTH: Final = "basic_auth"
JWT: Final = "jwt"
ENABLED: Final = "enabled"

SIGNING_METHODS: Final = ("RS256", "RS384", "RS512", "EdDSA")


def _text_field(
    name: str, description: str, secret: bool = False, access: Access | None = None
) -> Field:
    return Field(name, "string", description, access=access, default="", secret=secret)


def _toggled_field(name: str, description: str, *fields: Field) -> Field:
    toggle = Field(ENABLED, "bool", "True to enable it.", default=False)
    return Field(
        name, "object", description, optional=True, advanced=True, children=(toggle, *fields)
    )


def _lists_problem(parameters: Any) -> str | None:
    for name, values in parameters.items():
        if not isinstance(values, list | tuple) or not all(isinstance(v, str) for v in values):
            return f"has {values!r} for {name}; expected a list of strings"
    return None


def _method_problem(name: str) -> str | None:
    if not name or name in SIGNING_METHODS:
        return None
    return f"is {name!r}; expected one of {', '.join(SIGNING_METHODS)}"


OAUTH_FIELD: Final = _toggled_field(
    OAUTH,
    "Signs requests by OAuth 1.",
    _text_field("consumer_key", "Identifier of the client."),
    _text_field("consumer_secret", "Secret of the client.", secret=True),
    _text_field("access_token", "The owner of the resources that are requested."),
    _text_field("access_token_secret", "Secret of the access token.", secret=True),
)

OAUTH2_FIELD: Final = _toggled_field(
    OAUTH2,
    "Fetches a token by OAuth 2 (client credentials, or a refresh token) and sends it along.",
    _text_field("client_key", "Identifier of the client."),
    _text_field("client_secret", "Secret of the client.", secret=True),
    Field(
        "token_url",
        "string",
        "URL that issues tokens.",
        access=Access.ADDRESS,
        default="",
        check=url_problem,
    ),
    Field("scopes", "string", "The requested scopes.", default=(), shape="array", advanced=True),
    Field(
        "endpoint_params",
        "unknown",
        "Further parameters of the request for a token: lists of strings. `grant_type: "
        "[ refresh_token ]` with `refresh_token` gets tokens by a refresh token.",
        access=Access.NONE,
        default={},
        shape="map",
        optional=True,
        advanced=True,
        credentials=True,
        check=_lists_problem,
        examples=({"audience": ["https://api.example.com"]},),
    ),
)

BASIC_AUTH_FIELD: Final = _toggled_field(
    BASIC_AUTH,
    "Sends a name and a password.",
    _text_field("username", "The name."),
    _text_field("password", "The password.", secret=True),
)

JWT_FIELD: Final = _toggled_field(
    JWT,
    "Sends a JSON web token that is signed with a key.",
    _text_field(
        "private_key_file", "A PEM file with the key (PKCS1 or PKCS8).", access=Access.FILE
    ),
    Field(
        "signing_method",
        "string",
        "Signing algorithm: RS256, RS384, RS512 or EdDSA.",
        default="",
        check=_method_problem,
    ),
    Field("claims", "unknown", "Claims of the token.", default={}, shape="map", advanced=True),
    Field("headers", "unknown", "Its headers.", default={}, shape="map", advanced=True),
)
