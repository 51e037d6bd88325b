"""Paths as Benthos's configs write them: `/post`, `/{name}/post`, `/all/` with all that follows."""

from __future__ import annotations

import re
from collections.abc import Mapping

_PARAMETER = re.compile(r"\{([^{}:]+)(?::((?:[^{}]|\{[^{}]*\})*))?\}")


class PathPattern:
    """A compiled path."""

    def __init__(self, text: str) -> None:
        """Compile a path.

        Raises:
            ValueError: it cannot work; the text says why.
        """
        if not text.startswith("/"):
            raise ValueError(f"is {text!r}; expected a path that begins with /")
        self.text = text
        self._names: list[str] = []
        pattern, at = "", 0
        for match in _PARAMETER.finditer(text):
            pattern += re.escape(text[at : match.start()]) + f"({match[2] or '[^/]+'})"
            self._names.append(match[1].strip())
            at = match.end()
        pattern += re.escape(text[at:])
        if "{" in text[at:] or "}" in text[at:]:
            raise ValueError(f"is {text!r}; a parameter is written {{name}}")
        # A path that ends in a slash stands for all below it.
        self._pattern = re.compile(pattern if text.endswith("/") else f"{pattern}$")
        self._literal = None if self._names or text.endswith("/") else text

    @property
    def shape(self) -> str:
        """The shape of a path: equal for two paths that take the same requests, whatever names."""
        return self._pattern.pattern

    def match(self, path: str) -> Mapping[str, str] | None:
        """Return what the parameters stand for in a request's path; None when it is another."""
        if self._literal is not None:
            return _NO_PARAMETERS if path == self._literal else None
        match = self._pattern.match(path)
        return None if match is None else dict(zip(self._names, match.groups(), strict=False))


_NO_PARAMETERS: Mapping[str, str] = {}


def path_problem(text: str) -> str | None:
    """Return what is wrong with the text of a path; an empty one is none."""
    try:
        if text:
            PathPattern(text)
    except (ValueError, re.error) as e:
        return str(e)
    return None
