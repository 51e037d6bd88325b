"""A runtime of JavaScript for one program, and what the program makes of a message."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from streamer.core.errors import MessageError, StreamerError
from streamer.core.json.parse import parse_json

Answer = dict[str, Any]
Answerer = Callable[[Mapping[str, Any]], Answer]
"""Answers what a program asks of the outside: `{"module": …}` or `{"fetch": …}`."""

_FIRST_LINE: Final = 1000
"""Lines before the program's first one: by them `prelude.js` knows its own lines from these."""

_MAX_REQUESTS: Final = 100
"""Requests of one message to the outside: each runs the program from its beginning."""


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """The result of a program for a message.

    Attributes:
        text: the new payload as text; None where the program has not set one.
        document: the new payload as a value, in a list of one; None where it has not set one.
        meta: metadata that it has set.
        lines: level and text of each line for the log.
    """

    text: str | None = None
    document: list[Any] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    lines: tuple[tuple[str, str], ...] = ()


@cache
def _read_prelude() -> str:
    return Path(__file__).with_name("prelude.js").read_text(encoding="utf-8")


def find_syntax_error(code: str) -> str | None:
    """Return what is wrong with the syntax of a program; None when nothing is."""
    try:
        # Who only checks it gives it little.
        ScriptRuntime(code, ".", _answer_nothing, memory=64 << 20, seconds=1.0)
    except StreamerError as e:
        return str(e)
    return None


def _answer_nothing(request: Mapping[str, Any]) -> Answer:
    return {"error": "nothing can be asked here"}


class ScriptRuntime:
    """A program in a runtime of its own. It may be used by the thread that made it alone.

    Its global state outlives a message.

    Example:
        >>> runtime = ScriptRuntime("benthos.v0_msg_set_string('a')", ".", lambda request: {})
        >>> runtime.run("b", {}).text
        'a'
    """

    def __init__(
        self, code: str, directory: str, answer: Answerer, memory: int = 0, seconds: float = 0
    ) -> None:
        """Compile a program.

        Args:
            code: the program.
            directory: where modules that it names by a relative path lie.
            answer: answers what it asks of the outside.
            memory: bytes that it may take, 0 for any.
            seconds: CPU time that it may take for a message, 0 for any.

        Raises:
            StreamerError: there is something wrong with its syntax.
        """
        import quickjs

        self._error = quickjs.JSException
        self._answer = answer
        context = quickjs.Context()
        if memory:
            context.set_memory_limit(memory)
        if seconds:
            context.set_time_limit(seconds)
        try:
            context.eval(f"globalThis.__host = {_read_prelude()}")
            compile_program, self._run, self._add_module = (
                context.eval(f"__host.{name}") for name in ("compile", "run", "addModule")
            )
            context.eval("delete globalThis.__host")
            compile_program(code, directory)
            wrapped = "\n" * (_FIRST_LINE - 1) + f"(function () {{\n{code}\n}})"
            self._program = context.eval(wrapped)
        except quickjs.JSException as e:
            raise StreamerError(f"failed to compile javascript code: {_first_line(e)}") from None
        self._context = context

    def run(self, text: str, meta: Mapping[str, Any]) -> ScriptResult:
        """Run the program on a message.

        Args:
            text: the payload.
            meta: the metadata.

        Raises:
            MessageError: it has thrown something, or taken more memory or time than it may.
        """
        written = json.dumps(dict(meta), default=str)
        fetched: list[Answer] = []
        for _ in range(_MAX_REQUESTS):
            result = self._run_once(text, written, fetched)
            # A program that catches everything has caught the end of its run, too.
            request = result["request"]
            if not request:
                if result["error"] is not None:
                    raise MessageError(str(result["error"]))
                return _make_result(result)
            if (module := request.get("module")) is not None:
                self._add_module(module["key"], json.dumps(self._answer(request)))
            else:
                fetched.append(self._answer(request))
        raise MessageError(f"the program asks for more than {_MAX_REQUESTS} things")

    def _run_once(self, text: str, meta: str, fetched: list[Answer]) -> dict[str, Any]:
        try:
            result = json.loads(self._run(self._program, text, meta, json.dumps(fetched)))
        except self._error as e:
            raise MessageError(_first_line(e)) from None
        assert isinstance(result, dict)
        return result


def _make_result(result: Mapping[str, Any]) -> ScriptResult:
    lines = [(level, text) for level, text in result["lines"]]
    if result["dropped"]:
        lines.append(("WARN", f"{result['dropped']} more lines were left out"))
    kind = result["kind"]
    return ScriptResult(
        text=_replace_surrogates(result["text"]) if kind == "string" else None,
        document=[parse_json(result["document"].encode())] if kind == "structured" else None,
        meta=dict(result["meta"]),
        lines=tuple(lines),
    )


def _replace_surrogates(text: str) -> str:
    """Return a text of UTF-16 without halves of pairs, as Go decodes it."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    if text == "null":
        return "out of memory"
    return text.splitlines()[0] if text else ""
