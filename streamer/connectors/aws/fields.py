"""The fields of everything that talks to AWS."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from streamer.core.urls import split_url
from streamer.sdk.spec import Access, Field, Package, ParsedFields, duration_field

REGION: Final = "region"
ENDPOINT: Final = "endpoint"
TCP: Final = "tcp"
CONNECT_TIMEOUT: Final = "connect_timeout"
CREDENTIALS: Final = "credentials"
PROFILE: Final = "profile"
ID: Final = "id"
SECRET: Final = "secret"
TOKEN: Final = "token"
FROM_EC2_ROLE: Final = "from_ec2_role"
ROLE: Final = "role"
ROLE_EXTERNAL_ID: Final = "role_external_id"

PACKAGES: Final = (Package("boto3"),)
"""What all components need that have these fields."""

TESTED: Final = (
    "It was tested with moto, a simulated AWS, and not with AWS itself. moto takes all "
    "credentials, so an answer of AWS to wrong ones was not tried."
)
"""The part of a page that says what a component was tested with."""

_REGION_NAME: Final = re.compile(r"(?![0-9]+$)(?!-)[a-zA-Z0-9-]{1,63}(?<!-)")


def http_url_problem(text: str) -> str | None:
    """Return what is wrong with a URL of AWS; an empty one is none."""
    expected = "expected a URL such as http://localhost:4566"
    if not text:
        return None
    try:
        url = split_url(text)
    except ValueError as error:
        return f"has {error}"
    return None if url.scheme in ("http", "https") and url.hostname else f"is {text!r}; {expected}"


def _region_problem(text: str) -> str | None:
    """Return what is wrong with the name of a region; an empty one is none.

    Source: botocore's rule, which lets a line feed at the end pass.
    """
    if not text or _REGION_NAME.fullmatch(text):
        return None
    return f"is {text[:60]!r}; expected the name of a region, such as eu-west-1"


def _text_field(name: str, description: str, **more: Any) -> Field:
    return Field(name, "string", description, default="", advanced=True, **more)


def _without_effect(name: str, description: str) -> Field:
    return duration_field(
        name, f"{description} Has no effect: boto3 does not have it.", default="0s", advanced=True
    )


_TCP_FIELD: Final = Field(
    TCP,
    "object",
    "Settings of sockets.",
    advanced=True,
    children=(
        duration_field(
            CONNECT_TIMEOUT,
            "Maximum time of connecting; 0s for five seconds.",
            default="0s",
            check=lambda ns: None if ns >= 0 else "must not be negative",
        ),
        Field(
            "keep_alive",
            "object",
            "Has no effect: boto3 sends probes as the system is set.",
            advanced=True,
            children=(
                _without_effect("idle", "Time without data before the first probe."),
                _without_effect("interval", "Time between probes."),
                Field(
                    "count",
                    "int",
                    "Number of probes without an answer. Has no effect.",
                    default=9,
                    advanced=True,
                ),
            ),
        ),
        _without_effect("tcp_user_timeout", "Maximum time without an acknowledgement."),
    ),
)

SESSION_FIELDS: Final = (
    _text_field(
        REGION,
        "The region; without it, the one of the environment or of the profile.",
        check=_region_problem,
        examples=("eu-west-1",),
    ),
    _text_field(
        ENDPOINT,
        "The URL of the API, in place of that of the region.",
        access=Access.ADDRESS,
        check=http_url_problem,
        examples=("http://localhost:4566",),
    ),
    _TCP_FIELD,
    Field(
        CREDENTIALS,
        "object",
        "Credentials. Without them, boto3 looks where AWS's own tools do: in the environment, in "
        "`~/.aws`, and at the machine's role.",
        advanced=True,
        children=(
            _text_field(PROFILE, "A profile of `~/.aws`.", access=Access.FILE),
            _text_field(ID, "The ID of an access key."),
            _text_field(SECRET, "The secret of the access key.", secret=True),
            _text_field(TOKEN, "The token of a session, for temporary keys.", secret=True),
            Field(
                FROM_EC2_ROLE,
                "bool",
                "True to use the role of the EC2 machine.",
                default=False,
                advanced=True,
            ),
            _text_field(
                ROLE,
                "The ARN of a role that is assumed by these credentials.",
                access=Access.NONE,
                examples=("arn:aws:iam::123456789012:role/reader",),
            ),
            _text_field(ROLE_EXTERNAL_ID, "The external ID for the role."),
        ),
    ),
)


def session_problems(parsed: ParsedFields, at: str = "") -> Iterator[tuple[str, str]]:
    """Return what is wrong with these fields together, for a spec's `check`.

    Args:
        parsed: the fields.
        at: the field that they stand in; empty for none.
    """
    place = f"{at}.{CREDENTIALS}" if at else CREDENTIALS
    yield from credentials_problems(parsed[CREDENTIALS], place)


def credentials_problems(given: ParsedFields, at: str) -> Iterator[tuple[str, str]]:
    """Return what is wrong with a field `credentials`, which stands there."""
    if bool(given[ID]) != bool(given[SECRET]):
        yield at, "id and secret need each other"
    if given[TOKEN] and not given[ID]:
        yield f"{at}.{TOKEN}", "needs the fields id and secret"
    if given[ROLE_EXTERNAL_ID] and not given[ROLE]:
        yield f"{at}.{ROLE_EXTERNAL_ID}", "needs the field role"
    if given[PROFILE] and given[ID]:
        yield f"{at}.{PROFILE}", "cannot stand beside id; use one kind of credentials"


METADATA: Final = "metadata"
EXCLUDE_PREFIXES: Final = "exclude_prefixes"


def metadata_exclude_field(description: str) -> Field:
    """Return the field that says which metadata are not sent."""
    return Field(
        METADATA,
        "object",
        description,
        children=(
            Field(
                EXCLUDE_PREFIXES,
                "string",
                "Keys that begin with one of these are left out.",
                default=(),
                shape="array",
            ),
        ),
    )
