"""`javascript`: runs a program in JavaScript for each message.

It "executes a provided JavaScript code block or file for each message". Connect runs it by goja,
here QuickJS does, which knows ECMAScript 2023. Source: Redpanda Connect's documentation of the
processor, for the functions of `benthos`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any, Final

from streamer.connectors.javascript.modules import read_module
from streamer.connectors.javascript.runtime import Answer, ScriptRuntime, find_syntax_error
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.limits import current_limits
from streamer.core.message import Message
from streamer.core.permissions import Permissions
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.per_message import PerMessageProcessor
from streamer.sdk.spec import (
    Access,
    BuildContext,
    Example,
    Field,
    Kind,
    Package,
    ParsedFields,
    Spec,
)

CODE: Final = "code"
FILE: Final = "file"
GLOBAL_FOLDERS: Final = "global_folders"

_FETCH_TIMEOUT_S: Final = 30.0


def _problems(parsed: ParsedFields) -> list[tuple[str, str]]:
    if not parsed[CODE] and not parsed[FILE]:
        return [("", "either the code or file field must be specified")]
    if parsed[CODE] and parsed[FILE]:
        return [(FILE, "cannot specify both the code and file fields")]
    return []


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "javascript",
    "Runs a program in JavaScript for each message.",
    description=(
        "The program reads and changes the message by functions of the object `benthos`: "
        "`v0_msg_as_string()`, `v0_msg_set_string(value)`, `v0_msg_as_structured()`, "
        "`v0_msg_set_structured(value)`, `v0_msg_exists_meta(name)`, `v0_msg_get_meta(name)`, "
        "`v0_msg_set_meta(name, value)` and `v0_fetch(url, headers, method, body)`, which returns "
        "`{status, body}`. `console` writes to the log, and `require` loads modules from files. "
        "A program that throws marks its message as failed.\n\n"
        "QuickJS runs the program, with ECMAScript 2023, where Connect has goja. Declarations at "
        "the top are new for each message; properties of `globalThis` stay, in each thread of "
        "each worker. Numbers are doubles. A program whose `v0_fetch` or `require` is answered "
        "runs again from its beginning. The section `limits` bounds its memory and its CPU time."
    ),
    fields=(
        Field(
            CODE,
            "string",
            "The program. Set this or `file`.",
            access=Access.QUERY,
            optional=True,
            check=find_syntax_error,
        ),
        Field(
            FILE,
            "string",
            "A file with the program. Set this or `code`.",
            access=Access.FILE,
            optional=True,
        ),
        Field(
            GLOBAL_FOLDERS,
            "string",
            "Directories in which `require` looks for modules that are not found elsewhere.",
            access=Access.FILE,
            default=(),
            shape="array",
        ),
    ),
    check=_problems,
    examples=(
        Example(
            "A message as a text",
            "pipeline:\n"
            "  processors:\n"
            "    - javascript:\n"
            "        code: 'benthos.v0_msg_set_string(benthos.v0_msg_as_string() + "
            '" hello world");\'\n',
        ),
        Example(
            "A message as a value",
            "pipeline:\n"
            "  processors:\n"
            "    - javascript:\n"
            "        code: |\n"
            "          const thing = benthos.v0_msg_as_structured();\n"
            "          thing.num_keys = Object.keys(thing).length;\n"
            "          delete thing.b;\n"
            "          benthos.v0_msg_set_structured(thing);\n",
        ),
    ),
    begin={"code": "benthos.v0_msg_set_string(benthos.v0_msg_as_string());"},
    categories=("Mapping",),
    limits="run by QuickJS, not goja; numbers are doubles",
    requires=(Package("quickjs"),),
)


class _Script:
    """A program with a runtime for each thread, since a runtime belongs to one."""

    def __init__(
        self, code: str, directory: str, folders: tuple[str, ...], permissions: Permissions
    ) -> None:
        self._code, self._directory = code, directory
        self._folders, self._permissions = folders, permissions
        self._runtimes = threading.local()

    def __call__(self, message: Message, ex: Execution) -> Message:
        """Return the message as the program has changed it."""
        runtime: ScriptRuntime | None = getattr(self._runtimes, "runtime", None)
        if runtime is None:
            runtime = self._runtimes.runtime = self.make_runtime()
        result = runtime.run(message.raw.decode(errors="replace"), message.meta)
        for level, text in result.lines:
            ex.log(level, text, {"custom_source": True})
        if result.text is not None:
            message = message.with_bytes(result.text.encode())
        elif result.document is not None:
            message = message.with_doc(result.document[0])
        return message.with_metadata({**message.meta, **result.meta}) if result.meta else message

    def make_runtime(self) -> ScriptRuntime:
        """Return a runtime with the program.

        Raises:
            StreamerError: there is something wrong with its syntax.
        """
        limits = current_limits()
        return ScriptRuntime(
            self._code, self._directory, self._answer, limits.bytes, limits.time / 1e9
        )

    def _answer(self, request: Mapping[str, Any]) -> Answer:
        if (module := request.get("module")) is not None:
            directory, name = module["directory"], module["name"]
            return read_module(directory, name, self._folders, self._permissions)
        # Imported here: hardly a program fetches, and every worker waits for its imports.
        from streamer.connectors.http_client.exchange_deadline import fetch_answer

        fetch = request["fetch"]
        try:
            status, body = fetch_answer(
                fetch["method"] or "GET",
                fetch["url"],
                _FETCH_TIMEOUT_S,
                list(fetch["headers"].items()),
                fetch["body"].encode(errors="replace") or None,
                self._permissions,
            )
        except OSError as e:
            return {"error": str(e)}
        return {"status": status, "body": body.decode(errors="replace")}


def build(parsed: ParsedFields, context: BuildContext) -> PerMessageProcessor:
    """Read and compile the program."""
    code, directory, permissions = parsed[CODE], os.getcwd(), parsed.permissions
    if file := parsed[FILE]:
        try:
            code = context.worker_resource("code", lambda: permissions.read(file).decode())
        except (OSError, ValueError) as e:
            raise StreamerError(f"failed to open target file: {e}") from None
        directory = os.path.dirname(os.path.abspath(file))
    script = _Script(code, directory, tuple(parsed[GLOBAL_FOLDERS]), permissions)
    script.make_runtime()
    return PerMessageProcessor(script, ComponentRef(context.component))
