"""Redacts secrets in texts and values: the one place that takes them out.

A *secret* is the value of a secret field, what an environment variable put into a config, the
password in a URL, or what a header says of who asks. Where such a value would be printed, something
else stands instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote, quote_plus, unquote

SCRUBBED: Final = "!!!SECRET_SCRUBBED!!!"
"""Stands where a secret was, as in Benthos."""

_VARIABLE: Final = re.compile(r"\$\{[0-9A-Za-z_.]+(:((\$\{[^}]+\})|[^}])*)?\}")
# The last `@` before the host ends the password: one that is not encoded may hold others.
_IN_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*://[^\s/?#:@\"']*:)([^\s/?#\"']+)@")
# A shorter value may well be a part of words that tell nothing of it.
_MIN_WHOLE_MATCH_CHARS: Final = 5
_ELLIPSIS: Final = re.compile(r"(\.\.\.|…)")


# Headers and parameters that say who asks, by what they are called.
_CREDENTIAL: Final = re.compile(
    r"(?i)authoriz|authentic|auth.?(key|token)|x-auth\b|cookie|secret|passw|token|credential"
    r"|(api|access|subscription).?key"
)
_SCHEME: Final = re.compile(r"(?i)\s*(bearer|basic|digest|token|apikey)\s+")
_PLACEHOLDER: Final = re.compile(r"\$\{[^}]*\}")


def redact_secret(value: Any) -> Any:
    """Return what is shown of the value of a secret field: of lists and maps, of each item.

    As in Benthos, a secret that is but a variable (`${PASSWORD}`) is shown as that.
    """
    if isinstance(value, dict):
        return {key: redact_secret(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_secret(item) for item in value]
    if value is None or value == "":
        return value
    return value if _VARIABLE.fullmatch(str(value).strip()) else SCRUBBED


def names_credential(name: str) -> bool:
    """Return whether a header or a parameter of this name says who asks: `Authorization`."""
    return _CREDENTIAL.search(name) is not None


def extract_credential(name: str, text: str) -> str:
    """Return what is secret of a header or a parameter: `Bearer x` → `x`; nothing where none is.

    What is but put in when it is sent, as `Bearer ${! @token }`, is no secret.

    Args:
        name: of the header.
        text: its value, as a config has it.
    """
    if not names_credential(name):
        return ""
    scheme = _SCHEME.match(text)
    value = text[scheme.end() if scheme else 0 :].strip()
    return value if _PLACEHOLDER.sub("", value).strip() else ""


def redact_credential(name: str, value: Any) -> Any:
    """Return what is shown of a header or a parameter: `Bearer !!!SECRET_SCRUBBED!!!`."""
    if isinstance(value, list | tuple):
        return [redact_credential(name, item) for item in value]
    secret = extract_credential(name, value) if isinstance(value, str) else ""
    return value.replace(secret, SCRUBBED) if secret else value


def redact_urls(text: str) -> str:
    """Return a text whose URLs have no passwords any more.

    Example:
        >>> redact_urls("cannot reach http://ann:s3cret@host/path")
        'cannot reach http://ann:!!!SECRET_SCRUBBED!!!@host/path'
    """
    if "://" not in text:
        return text
    return _IN_URL.sub(lambda match: f"{match[1]}{redact_secret(match[2])}@", text)


def find_url_passwords(text: str) -> set[str]:
    """Return the passwords in the URLs of a text, as they are and with their escapes undone."""
    passwords = {match[2] for match in _IN_URL.finditer(text)}
    return passwords | {unquote(password) for password in passwords}


def _quoted_spellings(secret: str) -> tuple[str, ...]:
    """Return a secret as it is, as it stands in quotes, and as it stands in a URL."""
    in_quotes = repr(secret)[1:-1], json.dumps(secret)[1:-1]
    if secret.isalnum() and secret.isascii():
        return (secret, *in_quotes)
    return (secret, *in_quotes, quote(secret, safe=""), quote_plus(secret), quote(secret))


def may_begin_in(secret: str, text: str) -> bool:
    """Return whether a text may hold a secret, or its beginning."""
    return any(written[:_MIN_WHOLE_MATCH_CHARS] in text for written in _quoted_spellings(secret))


class Redaction:
    """Takes known secrets, and passwords in URLs, out of texts. It can be pickled."""

    def __init__(self, secrets: Mapping[str, str] | Iterable[str] = ()) -> None:
        """Take the secrets.

        Args:
            secrets: the texts that must not be seen, by what is shown instead: the name of the
                variable that they are from, or `SCRUBBED`, which they get when they come without.
                Of two that overlap the longer one goes first. One below five characters is taken
                out only where it stands by itself; when it is a variable's, only in quotes.
        """
        named = secrets if isinstance(secrets, Mapping) else dict.fromkeys(secrets, SCRUBBED)
        self._replacements: dict[str, str] = {}
        for secret, shown in named.items():
            if secret:
                for written in _quoted_spellings(secret):
                    self._replacements.setdefault(written, shown)
        ordered = sorted(self._replacements, key=lambda secret: (-len(secret), secret))
        parts = [_secret_pattern(secret, self._replacements[secret]) for secret in ordered]
        self._pattern = re.compile("|".join(parts)) if parts else None

    def redact_text(self, text: str) -> str:
        """Return a text without secrets, those included that it shows only the beginning of."""
        if self._pattern is not None:
            text = self._pattern.sub(lambda match: self._replacements[match[0]], text)
            if _ELLIPSIS.search(text):
                text = self._redact_beginnings(text)
        return redact_urls(text)

    def redact_value(self, value: Any) -> Any:
        """Return a value whose texts, however deep, are without secrets."""
        if isinstance(value, Mapping):
            return {key: self.redact_value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.redact_value(item) for item in value]
        return self.redact_text(value) if isinstance(value, str) else value

    def _redact_beginnings(self, text: str) -> str:
        """Take out what stands before an ellipsis and begins a secret."""
        parts = _ELLIPSIS.split(text)
        for index in range(0, len(parts) - 1, 2):
            for secret, shown in self._replacements.items():
                for length in range(
                    min(len(secret), len(parts[index])), _MIN_WHOLE_MATCH_CHARS - 1, -1
                ):
                    if parts[index].endswith(secret[:length]):
                        parts[index] = parts[index][:-length] + shown
                        break
        return "".join(parts)


def _secret_pattern(secret: str, replacement: str) -> str:
    if len(secret) >= _MIN_WHOLE_MATCH_CHARS:
        return re.escape(secret)
    if replacement == SCRUBBED:
        return rf"(?<!\w){re.escape(secret)}(?!\w)"
    return rf"(?<=['\"`]){re.escape(secret)}(?=['\"`])"
