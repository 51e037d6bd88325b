"""The line by which Java's client says who asks (`sasl.jaas_line.config`).

Kafka reads it with Java's `StreamTokenizer`: a text in double quotes, where a backslash begins an
escape and a line's end would end it.
"""

from __future__ import annotations

from typing import Final

from streamer.connectors.kafka.security.sasl import OAUTHBEARER, PLAIN, Sasl

_MODULES: Final = "org.apache.kafka.common.security"
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r"})


def quote_jaas(text: str) -> str:
    """Return a text as it stands in the line."""
    return f'"{text.translate(_ESCAPES)}"'


def jaas_line(sasl: Sasl) -> str:
    """Return the line of a mechanism. It holds the password."""
    if sasl.mechanism == OAUTHBEARER:
        module = f"{_MODULES}.oauthbearer.OAuthBearerLoginModule"
        options = {f"extension_{name}": value for name, value in sasl.extensions.items()}
    else:
        plain = sasl.mechanism == PLAIN
        module = f"{_MODULES}.{'plain.Plain' if plain else 'scram.Scram'}LoginModule"
        options = {"username": sasl.user, "password": sasl.password}
    written = "".join(f" {name}={quote_jaas(value)}" for name, value in options.items())
    return f"{module} required{written};"
