"""State of the editor: the mapping, the input, and the files that they are written to."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from typing import Final

from streamer.core.errors import StreamerError

INITIAL_INPUT: Final = '{"message":"hello world"}'
INITIAL_MAPPING: Final = "root = this"


@dataclass
class EditorState:
    """The mapping and the input as they were edited last.

    Attributes:
        mapping: the mapping's text.
        input: the input's text.
        mapping_file: where the mapping is written; None for nowhere.
        input_file: where the input is written; None for nowhere.
    """

    mapping: str
    input: str
    mapping_file: str | None = None
    input_file: str | None = None
    _saved: tuple[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self._saved = (self.mapping, self.input)

    def update(self, mapping: str, text: str) -> None:
        """Take over what was edited."""
        self.mapping, self.input = mapping, text

    def is_saved(self) -> bool:
        """Whether the mapping is in its file as it is now."""
        return self.mapping_file is not None and self.mapping == self._saved[0]

    def write(self, always: bool = False) -> None:
        """Write what has changed since it was written or read last.

        Args:
            always: write what has not changed too.

        Raises:
            StreamerError: a file cannot be written.
        """
        mapping, text = self._saved
        if self.mapping_file is not None and (always or self.mapping != mapping):
            _replace_file(self.mapping_file, self.mapping)
        if self.input_file is not None and (always or self.input != text):
            _replace_file(self.input_file, self.input)
        self._saved = (self.mapping, self.input)


def _replace_file(file: str, text: str) -> None:
    """Write a file whole or not at all, and leave its permissions as they were."""
    target = os.path.realpath(file)
    beside = f"{target}.{os.getpid()}.tmp"
    try:
        with open(beside, "wb") as out:
            out.write(text.encode(errors="replace"))
        if os.path.exists(target):
            shutil.copymode(target, beside)
        os.replace(beside, target)
    except OSError as e:
        raise StreamerError(f"failed to write {file}: {(e.strerror or str(e)).lower()}") from None
