"""References to secrets: the texts of a config that stand for values from elsewhere."""

from __future__ import annotations

import json
from typing import Any


class SecretReference(str):
    """A placeholder such as `${file:/run/secrets/x}`, as it stands in the config.

    It is shown in the place of the secret, and the secret can be read again by it. What is kept on
    a disk has the reference, and not the value.

    Attributes:
        part: which spelling or line of the value it stands for: an index of `spell_secret`.
    """

    part: int

    def __new__(cls, text: str, part: int = 0) -> SecretReference:
        """Take the placeholder, and the part of the value."""
        made = super().__new__(cls, text)
        made.part = part
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return SecretReference, (str(self), self.part)


def spell_secret(value: str) -> list[str]:
    """Return a value in the spellings that a config may come to hold, and its lines.

    Example:
        >>> spell_secret("a")
        ['a', 'a', 'a']
        >>> spell_secret("ab" + chr(10) + "cd")[3:]
        ['ab', 'cd']
    """
    lines = [line for line in value.split("\n") if line.strip()]
    spellings = [value, value.replace("\n", "\\n"), json.dumps(value, ensure_ascii=False)[1:-1]]
    return [*spellings, *(lines if len(lines) > 1 else ())]
