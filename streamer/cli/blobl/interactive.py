"""The editor on a terminal: mapping above, input and result below, the result as you type."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from typing import Final

import click
from prompt_toolkit.application import Application, get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.bindings.focus import focus_next, focus_previous
from prompt_toolkit.layout import (
    AnyContainer,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    VSplit,
    Window,
)
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.widgets import TextArea

from streamer.cli.blobl.editor_state import EditorState
from streamer.cli.blobl.syntax_colours import BLOBLANG, JSON, STYLE, ProblemUnderline, SyntaxColours
from streamer.core.errors import StreamerError
from streamer.tools.playground.apply import DocumentStyle
from streamer.tools.playground.evaluator import Evaluator
from streamer.tools.playground.trial import Answer, Problem

_TYPING_PAUSE_S: Final = 0.08
"""Seconds without a key after which the mapping is tried."""
_KEYS: Final = "Tab next pane   Ctrl-S save   Ctrl-D leave"


def edit(
    drafts: EditorState,
    style: DocumentStyle,
    impure: bool,
    file: str | None = None,
    source: Input | None = None,
    screen: Output | None = None,
) -> None:
    """Let the user edit a mapping and its input until they leave.

    Args:
        drafts: what to begin with; holds what was edited in the end.
        style: how documents are taken.
        impure: whether mappings may read files and environment variables.
        file: where the mapping is from, for its imports.
        source: where keys come from; the terminal when None.
        screen: what is drawn on; the terminal when None.
    """
    asyncio.run(_edit(_Editor(drafts, style, file), impure, source, screen))


async def _edit(editor: _Editor, impure: bool, source: Input | None, screen: Output | None) -> None:
    evaluator = Evaluator(impure)
    app: Application[None] = Application(
        Layout(editor.make_layout(), editor.mapping),
        key_bindings=editor.make_key_bindings(),
        style=STYLE,
        full_screen=True,
        mouse_support=True,
        input=source or create_input(always_prefer_tty=True),
        output=screen or create_output(always_prefer_tty=True),
    )
    with suppress(NotImplementedError):
        # The terminal is to be left as it was found, whoever ends the program.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, app.exit)
    trying = asyncio.create_task(editor.keep_trying(evaluator, app))
    try:
        await app.run_async()
    finally:
        trying.cancel()
        await asyncio.gather(trying, return_exceptions=True)
        await evaluator.close()


class _Editor:
    """The state of the screen.

    Attributes:
        mapping: the pane of the mapping.
        input: the pane of the input.
        result: the pane of the result.
        problem: what is wrong with the mapping, if anything.
    """

    def __init__(self, drafts: EditorState, style: DocumentStyle, file: str | None) -> None:
        self.problem: Problem | None = None
        self._drafts = drafts
        self._style = style
        self._file = file
        self._state = ""
        self._edited = asyncio.Event()
        self._edited.set()
        self.mapping = TextArea(
            drafts.mapping,
            line_numbers=True,
            lexer=SyntaxColours(BLOBLANG),
            input_processors=[ProblemUnderline(lambda: self.problem)],
            focus_on_click=True,
        )
        self.mapping.buffer.cursor_position = len(drafts.mapping)
        language = None if style.raw else SyntaxColours(JSON)
        self.input = TextArea(drafts.input, lexer=language, focus_on_click=True)
        self.result = TextArea(read_only=True, lexer=SyntaxColours(JSON), focus_on_click=True)
        for area in (self.mapping, self.input):
            area.buffer.on_text_changed += self._on_change

    def _on_change(self, _: object) -> None:
        self.problem = None
        self._drafts.update(self.mapping.text, self.input.text)
        self._edited.set()

    async def keep_trying(self, evaluator: Evaluator, app: Application[None]) -> None:
        """Try the mapping after each edit, the newest text first of all."""
        while True:
            await self._edited.wait()
            await asyncio.sleep(_TYPING_PAUSE_S)
            self._edited.clear()
            answer = await evaluator.attempt(
                {
                    "mapping": self.mapping.text,
                    "input": self.input.text,
                    "raw": self._style.raw,
                    "compact": not self._style.pretty,
                    "file": self._file,
                    "variables": True,
                }
            )
            if not self._edited.is_set():
                self._show(answer)
                app.invalidate()

    def _show(self, answer: Answer) -> None:
        results = answer.get("results", [])
        failures = [one["problem"] for one in results if "problem" in one]
        self.problem = answer.get("problem") or (failures[0] if failures else None)
        self._state = "wrong" if "problem" in answer else "ok"
        if failures:
            self._state = f"{len(failures)} of {len(results)} failed"
        if "problem" not in answer:
            # While a mapping cannot be read, what the one before it made stays.
            self.result.text = format_result(answer)

    def make_layout(self) -> AnyContainer:
        """Return the panes with their names, and a bar of keys."""
        problem = Window(
            FormattedTextControl(lambda: self.problem["text"] if self.problem else ""),
            wrap_lines=True,
            dont_extend_height=True,
            height=Dimension(max=6),
            style="class:problem",
        )
        panes = (self._make_pane("Input", self.input), self._make_pane("Result", self.result))
        return HSplit(
            [
                self._make_pane("Mapping", self.mapping),
                ConditionalContainer(problem, Condition(lambda: self.problem is not None)),
                VSplit(panes, padding=1, padding_char="│"),
                Window(FormattedTextControl(self._format_bar), height=1, style="class:bar"),
            ]
        )

    def _make_pane(self, name: str, area: TextArea) -> AnyContainer:
        def title() -> StyleAndTextTuples:
            focused = area.control == self._get_focused_control()
            return [("class:name.focused" if focused else "class:name", f" {name} ")]

        return HSplit([Window(FormattedTextControl(title), height=1), area])

    def _get_focused_control(self) -> object:
        return get_app().layout.current_control

    def _format_bar(self) -> str:
        return f" {_KEYS}   {self._state}"

    def make_key_bindings(self) -> KeyBindings:
        """Return what keys do beside editing."""
        keys = KeyBindings()
        keys.add("tab")(focus_next)
        keys.add("s-tab")(focus_previous)

        @keys.add("c-c")
        @keys.add("c-d")
        @keys.add("c-q")
        def _leave(event: KeyPressEvent) -> None:
            event.app.exit()

        @keys.add("c-s")
        def _save(_: KeyPressEvent) -> None:
            if self._drafts.mapping_file is None:
                self._state = "nowhere to save to; start with -f FILE"
                return
            try:
                self._drafts.write(always=True)
                self._state = f"saved {self._drafts.mapping_file}"
            except StreamerError as e:
                self._state = str(e)

        return keys


def format_result(answer: Answer) -> str:
    """Return what the result's pane shows."""
    parts = []
    for one in answer.get("results", []):
        if "problem" in one:
            parts.append(one["problem"]["text"])
        else:
            parts.append("(deleted)" if one.get("deleted") else one["output"])
        if "metadata" in one:
            parts.append(f"metadata {one['metadata']}")
    if answer.get("cut"):
        parts.append("(there is more; only the beginning is shown)")
    return "\n".join(parts)


def run(drafts: EditorState, style: DocumentStyle, impure: bool, file: str | None) -> int:
    """Run the editor on the terminal, and print the mapping in the end if it was not saved.

    Raises:
        StreamerError: there is no terminal.
    """
    if not (sys.stdout.isatty() or sys.stderr.isatty()) or os.environ.get("TERM") == "dumb":
        raise StreamerError(
            "the editor needs a terminal, and there is none here; give a mapping instead"
        )
    initial_mapping = drafts.mapping
    edit(drafts, style, impure, file)
    if drafts.mapping != initial_mapping and not drafts.is_saved():
        click.echo(drafts.mapping)
    return 0
