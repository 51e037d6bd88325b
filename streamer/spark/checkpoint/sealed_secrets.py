"""Pickles without secrets: in the place of each stands its reference, which is read again later.

A text that has a secret within is kept in pieces. A secret that is one plain word cannot be told
from the names of fields, and stays as it is; so does one in the config itself, which no reference
names.
"""

from __future__ import annotations

import io
import os
import pickle
import re
from collections.abc import Mapping
from typing import Any, Final

from streamer.config.references import resolve_reference
from streamer.core.secret_reference import SecretReference

_MIN_SEARCHED_CHARS: Final = 5
"""Characters of a secret that is searched for inside of texts; fewer occur by chance."""

_WORD: Final = re.compile(r"[A-Za-z_]+")


class SealingPickler(pickle.Pickler):
    """Writes a value with references in the place of secrets."""

    def __init__(self, out: io.BytesIO, secrets: Mapping[str, str]) -> None:
        """Take where it goes, and the secrets with what is shown instead of each."""
        super().__init__(out)
        self.references = {
            text: shown
            for text, shown in secrets.items()
            if isinstance(shown, SecretReference) and text and not _WORD.fullmatch(text)
        }
        searched = (one for one in self.references if len(one) >= _MIN_SEARCHED_CHARS)
        parts = [re.escape(one) for one in sorted(searched, key=len, reverse=True)]
        self._pattern = re.compile("|".join(parts)) if parts else None

    def persistent_id(self, obj: Any) -> Any:
        """Return the pieces of a text with a secret; None for all else."""
        if type(obj) is not str or not self.references:
            return None
        if obj in self.references:
            return (self.references[obj],)
        if self._pattern is None or self._pattern.search(obj) is None:
            return None
        pieces: list[str] = []
        position = 0
        for match in self._pattern.finditer(obj):
            pieces += [obj[position : match.start()], self.references[match[0]]]
            position = match.end()
        return (*pieces, obj[position:])


class UnsealingUnpickler(pickle.Unpickler):
    """Reads a value, with secrets as they are now in the place of their references."""

    def __init__(self, body: io.BytesIO, known: Mapping[str, str] | None = None) -> None:
        """Take the pickle.

        Args:
            body: the pickle.
            known: the references of it, by the secret; without them, secrets are read again.
        """
        super().__init__(body)
        self._values = {
            (str(shown), shown.part): text
            for text, shown in (known or {}).items()
            if isinstance(shown, SecretReference)
        }

    def persistent_load(self, pid: Any) -> str:
        """Return a text from its pieces.

        Raises:
            ValueError: a secret is not there any more; the text names its reference.
        """
        return "".join(self._resolve(piece) for piece in pid)

    def _resolve(self, piece: str) -> str:
        if not isinstance(piece, SecretReference):
            return piece
        key = str(piece), piece.part
        if key not in self._values:
            self._values[key] = resolve_reference(piece, os.environ)
        return self._values[key]
