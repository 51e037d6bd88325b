"""`wasm`: runs a function of a WebAssembly module for each message.

It "executes a function exported by a WASM module for each message". Source: Redpanda Connect's
documentation of the processor, and the functions that its libraries for modules call.
"""

from __future__ import annotations

import threading
from typing import Final

from streamer.connectors.wasm.runtime import WasmModule, WasmRuntime
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

MODULE_PATH: Final = "module_path"
FUNCTION: Final = "function"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "wasm",
    "Runs a function of a WebAssembly module for each message.",
    description=(
        "The module imports functions of `benthos_wasm`: `v0_msg_as_bytes()`, "
        "`v0_msg_set_bytes(address, size)`, `v0_msg_get_meta(key, size)` and "
        "`v0_msg_set_meta(key, size, value, size)`. Results are an address and a size in 64 bits. "
        "It exports its `memory`, and `malloc` and `free` (as TinyGo does) or `allocate` and "
        "`deallocate` (as Connect's library for Rust does). It may import WASI, which has no "
        "files, environment or network here.\n\n"
        "Each thread of each worker has an instance of its own. Its memory outlives a message. A "
        "message on which it traps is marked as failed, and the next one gets another instance. "
        "`limits.bytes` bounds its memory, and `limits.time` its instructions: about one for each "
        "nanosecond, the same at every run."
    ),
    fields=(
        Field(
            MODULE_PATH,
            "string",
            "The file of the module, as bytes or as text (`.wat`).",
            access=Access.FILE,
            examples=("./process.wasm",),
        ),
        Field(FUNCTION, "string", "The export that is called.", default="process"),
    ),
    examples=(
        Example(
            "A module in a file",
            "pipeline:\n  processors:\n    - wasm:\n        module_path: ./process.wasm\n",
        ),
    ),
    begin={"module_path": "./process.wasm"},
    categories=("Utility",),
    limits="run by wasmtime, not wazero; a trap fails its message, not the batch",
    requires=(Package("wasmtime"),),
)


class _ModuleFunction:
    """A function of a module with an instance for each thread, since an instance belongs to one."""

    def __init__(self, module: WasmModule, path: str, function: str) -> None:
        self._module, self._path, self._function = module, path, function
        self._runtimes = threading.local()

    def __call__(self, message: Message, ex: Execution) -> Message:
        """Return the message as the module has changed it."""
        runtime: WasmRuntime | None = getattr(self._runtimes, "runtime", None)
        if runtime is None:
            runtime = self._runtimes.runtime = self.make_runtime()
        result = runtime.run(message.raw, message.meta)
        if result.content is not None:
            message = message.with_bytes(result.content)
        return message.with_metadata({**message.meta, **result.meta}) if result.meta else message

    def make_runtime(self) -> WasmRuntime:
        """Return an instance.

        Raises:
            StreamerError: the module lacks something.
        """
        limits = current_limits()
        try:
            return WasmRuntime(self._module, self._function, limits.bytes, limits.time)
        except StreamerError as e:
            raise StreamerError(f"{self._path}: {e}") from None


def _compile_module(path: str, permissions: Permissions) -> WasmModule:
    try:
        return WasmModule(permissions.read(path))
    except OSError as e:
        raise StreamerError(str(e)) from None
    except StreamerError as e:
        raise StreamerError(f"{path}: {e}") from None


def build(parsed: ParsedFields, context: BuildContext) -> PerMessageProcessor:
    """Compile the module, once for each worker, and try to make an instance."""
    path, permissions = parsed[MODULE_PATH], parsed.permissions
    module = context.worker_resource("module", lambda: _compile_module(path, permissions))
    function = _ModuleFunction(module, path, parsed[FUNCTION])
    function.make_runtime()
    return PerMessageProcessor(function, ComponentRef(context.component))
