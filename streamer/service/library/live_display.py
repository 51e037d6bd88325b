"""Display that is updated in place: in a notebook by its own means, on a terminal by escapes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, TextIO

from streamer.service.library.text_view import TextView

ShowView = Callable[[TextView], None]
"""Shows a view in the place of the one before."""


def open_display(out: TextIO | None = None) -> ShowView:
    """Return a function that shows views, one in the place of another.

    Args:
        out: where texts are printed outside of notebooks; the standard output when None.
    """
    if _is_in_notebook():
        return _NotebookDisplay()
    return _TerminalDisplay(out or sys.stdout)


def _is_in_notebook() -> bool:
    """Whether IPython runs this program; it is not imported for that."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


class _NotebookDisplay:
    def __init__(self) -> None:
        self._handle: Any = None

    def __call__(self, view: TextView) -> None:
        if self._handle is None:
            display = importlib.import_module("IPython.display").display
            self._handle = display(view, display_id=True)
        else:
            self._handle.update(view)


class _TerminalDisplay:
    """Prints over the lines before on a terminal; elsewhere each text that differs, one by one."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._is_terminal = out.isatty()
        self._text = ""

    def __call__(self, view: TextView) -> None:
        text = str(view)
        if text == self._text:
            return
        if self._is_terminal and self._text:
            lines = self._text.count("\n") + 1
            # To the first line that was printed, and all below it erased.
            self._out.write(f"\x1b[{lines}F\x1b[J")
        self._out.write(f"{text}\n")
        self._out.flush()
        self._text = text
