"""What is shown of values that nobody may see: the one place that scrubs them.

As in Benthos, a secret that is but a variable (`${PASSWORD}`) is shown as that, since it tells
nothing.
"""

from __future__ import annotations

import re
from typing import Any, Final

SCRUBBED: Final = "!!!SECRET_SCRUBBED!!!"
"""Stands where a secret was, as in Benthos."""

_VARIABLE: Final = re.compile(r"\$\{[0-9A-Za-z_.]+(:((\$\{[^}]+\})|[^}])*)?\}")
# The last `@` before the host ends the password: one that is not encoded may hold others.
_IN_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*://[^\s/?#:@\"']*:)([^\s/?#\"']+)@")


def scrub_secret(value: Any) -> Any:
    """Return what is shown of the value of a secret field: of lists and maps, of each item."""
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
