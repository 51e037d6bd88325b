"""What is shown of texts and values that hold secrets: the one place that takes them out.

A *secret* is the value of a secret field, what an environment variable put into a config, or the
password in a URL. Where such a value would be printed, something else stands instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

SCRUBBED: Final = "!!!SECRET_SCRUBBED!!!"
"""Stands where a secret was, as in Benthos."""

_VARIABLE: Final = re.compile(r"\$\{[0-9A-Za-z_.]+(:((\$\{[^}]+\})|[^}])*)?\}")
# The last `@` before the host ends the password: one that is not encoded may hold others.
_IN_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*://[^\s/?#:@\"']*:)([^\s/?#\"']+)@")
# A shorter value may well be a part of words that tell nothing of it.
_SURELY_A_VALUE: Final = 5


def scrub_secret(value: Any) -> Any:
    """Return what is shown of the value of a secret field: of lists and maps, of each item.

    As in Benthos, a secret that is but a variable (`${PASSWORD}`) is shown as that.
    """
    if isinstance(value, dict):
        return {key: scrub_secret(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [scrub_secret(item) for item in value]
    if value is None or value == "":
        return value
    return value if _VARIABLE.fullmatch(str(value).strip()) else SCRUBBED


def scrub_urls(text: str) -> str:
    """Return a text whose URLs have no passwords any more: `http://user:…@host`."""
    if "://" not in text:
        return text
    return _IN_URL.sub(lambda found: f"{found[1]}{scrub_secret(found[2])}@", text)


class Redaction:
    """Takes known secrets, and passwords in URLs, out of texts. It can be pickled."""

    def __init__(self, secrets: Mapping[str, str] | Iterable[str] = ()) -> None:
        """Take the secrets.

        Args:
            secrets: the texts that must not be seen, by what is shown instead; `SCRUBBED` is
                shown when they come without. Of two that overlap the longer one goes first.
                Texts below five characters are taken out only where they stand by themselves.
        """
        named = secrets if isinstance(secrets, Mapping) else dict.fromkeys(secrets, SCRUBBED)
        self._shown = {secret: shown for secret, shown in named.items() if secret}
        parts = [_pattern(secret) for secret in sorted(self._shown, key=lambda s: (-len(s), s))]
        self._pattern = re.compile("|".join(parts)) if parts else None

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        if self._pattern is not None:
            text = self._pattern.sub(lambda found: self._shown[found[0]], text)
        return scrub_urls(text)

    def value(self, value: Any) -> Any:
        """Return a value whose texts, however deep, are without secrets."""
        if isinstance(value, Mapping):
            return {key: self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return self.text(value) if isinstance(value, str) else value


def _pattern(secret: str) -> str:
    if len(secret) >= _SURELY_A_VALUE:
        return re.escape(secret)
    return rf"(?<!\w){re.escape(secret)}(?!\w)"
