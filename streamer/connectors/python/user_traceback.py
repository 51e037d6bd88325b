"""Errors of users' code in words: what was raised, and at which of their own lines."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from streamer.sdk.spec import SourcedText

MAX_FRAMES: Final = 6
MAX_CAUSES: Final = 3
MAX_TEXT_CHARACTERS: Final = 2_000
_MAX_LINE_CHARACTERS: Final = 120


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """The files of a user, by the names that frames have.

    Attributes:
        inline: the name that the code of the config has in frames; empty without such code.
        code: that code, with its lines in the config.
        directory: where the modules beside the config are in this process.
        packages: directories of an installed package that was named.
    """

    inline: str = ""
    code: SourcedText = field(default_factory=lambda: SourcedText(""))
    directory: str = ""
    packages: Sequence[str] = ()

    def describe(self, frame: traceback.FrameSummary) -> str:
        """Return where a frame is, and its line; empty where it is not the user's."""
        line = frame.lineno or 0
        if self.inline and frame.filename == self.inline:
            lines = self.code.lines
            shown = lines[line - 1] if 0 < line <= len(lines) else line
            texts = self.code.split("\n")
            text = texts[line - 1].strip() if 0 < line <= len(texts) else ""
            return _place(self.code.file or "config", shown, frame.name, text)
        if self.directory and frame.filename.startswith(f"{self.directory}/"):
            name = frame.filename[len(self.directory) + 1 :]
            return _place(name, line, frame.name, frame.line or "")
        if any(frame.filename.startswith(package) for package in self.packages):
            return _place(Path(frame.filename).name, line, frame.name, frame.line or "")
        return ""


def _place(file: str, line: int, function: str, text: str) -> str:
    shown = text if len(text) <= _MAX_LINE_CHARACTERS else f"{text[:_MAX_LINE_CHARACTERS]}…"
    return f"{file}({line}) in {function}" + (f": {shown}" if shown else "")


def describe_error(error: BaseException, own: OwnFiles) -> str:
    """Return an error with the user's own frames, the innermost first.

    Example:
        >>> describe_error(ValueError("no"), OwnFiles())
        'ValueError: no'
    """
    parts: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and len(parts) < MAX_CAUSES and id(current) not in seen:
        seen.add(id(current))
        parts.append(_describe_one(current, own))
        if current.__cause__ is None and current.__suppress_context__:
            break
        current = current.__cause__ or current.__context__
    text = "; caused by ".join(parts)
    return text if len(text) <= MAX_TEXT_CHARACTERS else f"{text[:MAX_TEXT_CHARACTERS]}…"


def _describe_one(error: BaseException, own: OwnFiles) -> str:
    try:
        message = str(error)
    except Exception:
        message = "(it has no text)"
    head = f"{type(error).__name__}: {message}" if message else type(error).__name__
    if isinstance(error, SyntaxError):
        return head
    frames = traceback.extract_tb(error.__traceback__)
    places = [text for frame in reversed(frames) if (text := own.describe(frame))]
    if len(places) > MAX_FRAMES:
        places = [*places[: MAX_FRAMES - 1], "…", places[-1]]
    return f"{head}, at {', called at '.join(places)}" if places else head
