"""SASL authentication, as `kafka` and as the components with `seed_brokers` write it.

A mechanism becomes settings of kafka-python, which asks and reads, and of librdkafka, which writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from streamer.connectors.aws.fields import SESSION_FIELDS, session_problems
from streamer.connectors.kafka.security.msk_token import MskToken
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedFields

SASL: Final = "sasl"
MECHANISM: Final = "mechanism"
ACCESS_TOKEN: Final = "access_token"
TOKEN_CACHE: Final = "token_cache"
TOKEN_KEY: Final = "token_key"
SERVICE: Final = "kerberos_service_name"
AWS: Final = "aws"

NONE: Final = "none"
PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
AWS_MSK_IAM: Final = "AWS_MSK_IAM"
GSSAPI: Final = "GSSAPI"
_MECHANISMS: Final = (NONE, PLAIN, OAUTHBEARER, *SCRAM)
_UNAVAILABLE_MECHANISMS: Final = {
    "REDPANDA_CLOUD_SERVICE_ACCOUNT": (
        "is REDPANDA_CLOUD_SERVICE_ACCOUNT, whose tokens there are only within Redpanda Cloud; use "
        "a user of the cluster with SCRAM-SHA-512"
    ),
}

TokenSource = Callable[[], str]
"""Returns a token of OAUTHBEARER that is good now. It can be pickled."""

_SERVICE_FIELD: Final = Field(
    SERVICE,
    "string",
    "The name of the brokers' service in Kerberos, for GSSAPI: the part of their principal before "
    "`/`. The ticket comes from the credential cache of the process, or from the keytab of "
    "`KRB5_CLIENT_KTNAME`.",
    default="kafka",
    advanced=True,
)

SASL_FIELD: Final = Field(
    SASL,
    "object",
    "Credentials of the client.",
    advanced=True,
    children=(
        Field(
            MECHANISM,
            "string",
            "SASL mechanism; `none` or empty for no SASL.",
            default=NONE,
            options=(*_MECHANISMS, GSSAPI, ""),
        ),
        Field("user", "string", "The user.", default="", examples=("${USER}",)),
        Field(
            "password",
            "string",
            "The user's password.",
            default="",
            secret=True,
            examples=("${PASSWORD}",),
        ),
        Field(ACCESS_TOKEN, "string", "The token of OAUTHBEARER.", default="", secret=True),
        Field(
            TOKEN_CACHE,
            "string",
            "The label of a cache that has the token of OAUTHBEARER instead; it is read when the "
            "client connects.",
            default="",
        ),
        Field(TOKEN_KEY, "string", "The key of the token in that cache.", default=""),
        _SERVICE_FIELD,
    ),
)
"""SASL of the components with `addresses`."""

SASL_LIST_FIELD: Final = Field(
    SASL,
    "object",
    "Credentials of the client, with one mechanism.",
    default=(),
    shape="array",
    advanced=True,
    children=(
        Field(
            MECHANISM,
            "string",
            "SASL mechanism.",
            options=(*_MECHANISMS, AWS_MSK_IAM, GSSAPI, *_UNAVAILABLE_MECHANISMS),
            check=_UNAVAILABLE_MECHANISMS.get,
        ),
        Field("username", "string", "The user.", default=""),
        Field("password", "string", "The user's password.", default="", secret=True),
        Field("token", "string", "The token of OAUTHBEARER.", default="", secret=True),
        Field(
            "extensions",
            "string",
            "OAUTHBEARER extensions beside the token.",
            shape="map",
            optional=True,
        ),
        Field(
            "aws",
            "object",
            "Credentials of AWS_MSK_IAM.",
            advanced=True,
            children=SESSION_FIELDS,
        ),
        _SERVICE_FIELD,
    ),
    examples=([{"mechanism": "SCRAM-SHA-512", "username": "foo", "password": "${PASSWORD}"}],),
)
"""SASL of the components with `seed_brokers`."""


@dataclass(frozen=True)
class Sasl:
    """One mechanism, and what it needs.

    Attributes:
        mechanism: its name.
        user: for PLAIN and SCRAM.
        password: of the user.
        token: for OAUTHBEARER.
        extensions: what goes with the token.
        tokens: returns the token whenever a client connects, in place of `token`; None for none.
        service: the name of the brokers' service, for GSSAPI.
    """

    mechanism: str
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    extensions: Mapping[str, str] = field(default_factory=dict)
    tokens: TokenSource | None = field(default=None, repr=False)
    service: str = ""

    @property
    def wire_mechanism(self) -> str:
        """The mechanism as brokers know it: MSK takes what IAM signs as a token, too."""
        return OAUTHBEARER if self.mechanism == AWS_MSK_IAM else self.mechanism

    def current_token(self) -> str:
        """Return the token of now.

        Raises:
            StreamerError: it cannot be had.
        """
        return self.token if self.tokens is None else self.tokens()


@dataclass(frozen=True)
class CachedToken:
    """The token of OAUTHBEARER in a cache. It can be pickled: each process asks the cache itself.

    Attributes:
        cache: builds the cache.
        key: of the token in it.
    """

    cache: Callable[[], Any]
    key: str

    def __call__(self) -> str:
        """Return the token of now.

        Raises:
            StreamerError: the cache has none, or does not answer.
        """
        try:
            token: bytes = self.cache().get(self.key, Execution(time.time_ns))
        except StreamerError as error:
            raise StreamerError(
                f"the token of OAUTHBEARER cannot be had: {error}; put it into sasl.token_cache "
                "under sasl.token_key"
            ) from None
        return token.decode(errors="replace")


def sasl_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with a field `sasl`, for the `check` of a spec that has it."""
    value = parsed[SASL]
    if isinstance(value, ParsedFields):
        yield from _mechanism_problems(value)
        return
    used = [one for one in value if one[MECHANISM] != NONE]
    if len(used) > 1:
        yield SASL, f"has {len(used)} mechanisms; one can be used, leave the others out"
    for number, one in enumerate(value):
        for name, text in _missing_problems(one, "username", "token"):
            yield f"{SASL}.{number}.{name}", text
        if one[MECHANISM] == AWS_MSK_IAM:
            yield from session_problems(one[AWS], f"{SASL}.{number}.{AWS}")
        elif one.is_given(AWS):
            yield f"{SASL}.{number}.{AWS}", f"has no effect without mechanism: {AWS_MSK_IAM}"


def uses_msk(sasl: Any) -> bool:
    """Return whether a field `sasl` of the components with `seed_brokers` signs in by IAM."""
    return any(one[MECHANISM] == AWS_MSK_IAM for one in sasl or ())


def uses_kerberos(sasl: Any) -> bool:
    """Return whether a field `sasl` signs in by Kerberos."""
    mechanisms = [sasl] if isinstance(sasl, ParsedFields) else sasl or ()
    return any(one[MECHANISM] == GSSAPI for one in mechanisms)


def _mechanism_problems(sasl: ParsedFields) -> Iterator[tuple[str, str]]:
    cached = bool(sasl[TOKEN_CACHE])
    if sasl[MECHANISM] == OAUTHBEARER and cached:
        if not sasl[TOKEN_KEY]:
            yield f"{SASL}.{TOKEN_KEY}", "is not set; expected the key of the token in token_cache"
        return
    for name, text in _missing_problems(sasl, "user", ACCESS_TOKEN):
        yield f"{SASL}.{name}", text


def _missing_problems(sasl: ParsedFields, user: str, token: str) -> Iterator[tuple[str, str]]:
    mechanism = sasl[MECHANISM]
    if mechanism in (PLAIN, *SCRAM) and not sasl[user]:
        yield user, f"is not set; {mechanism} needs it"
    if mechanism == OAUTHBEARER and not sasl[token]:
        yield token, "is not set; OAUTHBEARER needs it"


def sasl_references(parsed: ParsedFields) -> Iterator[tuple[str, Kind, str]]:
    """Return the cache that a field `sasl` refers to, for the `references` of a spec."""
    sasl = parsed[SASL]
    if isinstance(sasl, ParsedFields) and sasl[MECHANISM] == OAUTHBEARER and sasl[TOKEN_CACHE]:
        yield f"{SASL}.{TOKEN_CACHE}", Kind.CACHE, sasl[TOKEN_CACHE]


def read_sasl(parsed: ParsedFields, context: BuildContext | None = None) -> Sasl | None:
    """Return what a field `sasl` says; None for no SASL.

    Args:
        parsed: the fields that have it.
        context: has the cache of the token; without it, the token is not there.
    """
    value = parsed[SASL]
    if isinstance(value, ParsedFields):
        if value[MECHANISM] in ("", NONE):
            return None
        token, tokens = value[ACCESS_TOKEN], _read_cached_token(parsed, context)
        who = value["user"], value["password"], token
        return Sasl(value[MECHANISM], *who, tokens=tokens, service=value[SERVICE])
    for one in value:
        if one[MECHANISM] != NONE:
            extensions = dict(one["extensions"] or {})
            signer = MskToken(one[AWS]) if one[MECHANISM] == AWS_MSK_IAM else None
            who = one["username"], one["password"], one["token"]
            return Sasl(one[MECHANISM], *who, extensions, signer, one[SERVICE])
    return None


def _read_cached_token(parsed: ParsedFields, context: BuildContext | None) -> CachedToken | None:
    if context is not None:
        for _, kind, label in sasl_references(parsed):
            return CachedToken(context.deferred_resource(kind, label), parsed[SASL][TOKEN_KEY])
    return None
