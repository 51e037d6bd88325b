"""A module with what Connect's processor `wasm` gives it: functions that read and change a message.

The host's functions are of the module `benthos_wasm`. A text goes in and out as an address and a
size in the module's memory. The module gives memory by its export `malloc` (with `free`), or
`allocate` (with `deallocate`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from streamer.core.errors import MessageError, StreamerError
from streamer.core.json.dump import dump_json

_HOST: Final = "benthos_wasm"
_UNSIGNED: Final = (1 << 32) - 1
_SIGN_64: Final = 1 << 63
_MAX_FUEL: Final = 1 << 40
"""Instructions, about, that a message may take where its time has no limit: minutes of work."""
_STACK_BYTES: Final = 1 << 20
_INITIALIZERS: Final = ("_initialize", "_start")


class WasmResult(NamedTuple):
    """A message as a module has changed it.

    Attributes:
        content: the new payload; None when it stays.
        meta: new metadata.
    """

    content: bytes | None
    meta: Mapping[str, str]


class WasmModule:
    """A compiled module. Threads may share it."""

    def __init__(self, code: bytes) -> None:
        """Compile a module.

        Args:
            code: as bytes, or as text of the WebAssembly text format.

        Raises:
            StreamerError: it is none.
        """
        import wasmtime

        config = wasmtime.Config()
        config.consume_fuel = True
        config.max_wasm_stack = _STACK_BYTES
        # Others may have made the same machine busy; and a fork has no threads.
        config.parallel_compilation = False
        self.engine = wasmtime.Engine(config)
        try:
            self.module = wasmtime.Module(self.engine, code)
        except (wasmtime.WasmtimeError, UnicodeDecodeError) as e:
            why = " ".join(str(e).split())
            raise StreamerError(f"compiling the module: {why}") from None


class WasmRuntime:
    """An instance of a module. It may be used by the thread that made it alone.

    Its memory outlives a message; one that traps has another instance made for the next.
    """

    def __init__(self, module: WasmModule, function: str, memory: int, fuel: int = 0) -> None:
        """Make an instance.

        Args:
            module: the module.
            function: the export that is called for each message.
            memory: bytes that it may take.
            fuel: instructions, about, that it may take for a message; 0 for very many.

        Raises:
            StreamerError: the module lacks something, or wants what is not there.
        """
        self._module = module
        self._name = function
        self._memory_bytes = memory
        self._fuel = min(fuel, _MAX_FUEL) or _MAX_FUEL
        self._message: _MessageInHand | None = None
        self._has_trapped = False
        self._instantiate()

    def run(self, content: bytes, meta: Mapping[str, Any]) -> WasmResult:
        """Run the function on a message.

        Args:
            content: the payload.
            meta: the metadata.

        Raises:
            MessageError: it traps, takes more memory or fuel than it may, or gives an address that
                is not in its memory.
        """
        import wasmtime

        if self._has_trapped:
            try:
                self._instantiate()
            except StreamerError as e:
                raise MessageError(str(e)) from None
        message = self._message = _MessageInHand(content, meta)
        self._store.set_fuel(self._fuel)
        try:
            self._process(self._store)
            for address in message.allocated:
                self._free(self._store, address)
        except (wasmtime.Trap, wasmtime.WasmtimeError, wasmtime.ExitTrap, _HostError) as e:
            self._has_trapped = True
            raise MessageError(message.error or _trap_text(e)) from None
        finally:
            self._message = None
        if message.error:
            raise MessageError(message.error)
        return WasmResult(message.changed, message.meta_changes)

    def _instantiate(self) -> None:
        import wasmtime

        store = self._store = wasmtime.Store(self._module.engine)
        store.set_limits(memory_size=self._memory_bytes, memories=1, instances=1, tables=16)
        store.set_wasi(wasmtime.WasiConfig())
        store.set_fuel(self._fuel)
        linker = wasmtime.Linker(self._module.engine)
        try:
            linker.define_wasi()
            self._define_functions(linker)
            instance = linker.instantiate(store, self._module.module)
            exports = instance.exports(store)
            self._bind(exports)
            begin = next((exports[name] for name in _INITIALIZERS if name in exports), None)
            if isinstance(begin, wasmtime.Func):
                with suppress(_CleanExit):
                    _begin(begin, store)
        except (wasmtime.Trap, wasmtime.WasmtimeError, wasmtime.ExitTrap, _HostError) as e:
            raise StreamerError(f"starting the module: {_trap_text(e)}") from None
        self._has_trapped = False

    def _bind(self, exports: Any) -> None:
        """Find what the module exports.

        Raises:
            StreamerError: something is missing.
        """
        import wasmtime

        functions = {
            name: exports[name] for name in exports if isinstance(exports[name], wasmtime.Func)
        }
        if self._name not in functions:
            raise StreamerError(
                f"the module exports no function {self._name!r}; it exports "
                f"{', '.join(sorted(functions)) or 'none'}"
            )
        memory = exports.get("memory", None)
        if not isinstance(memory, wasmtime.Memory):
            raise StreamerError("the module exports no memory; it must be called memory")
        self._memory = memory
        self._process = functions[self._name]
        self._allocate = functions.get("allocate") or functions.get("malloc")
        self._free = functions.get("free") or (lambda store, address: None)
        self._deallocate = functions.get("deallocate")

    def _define_functions(self, linker: Any) -> None:
        import wasmtime

        i32, i64 = wasmtime.ValType.i32(), wasmtime.ValType.i64()
        functions: list[tuple[str, int, bool, Callable[..., Any]]] = [
            ("v0_msg_set_bytes", 2, False, self._set_bytes),
            ("v0_msg_as_bytes", 0, True, self._as_bytes),
            ("v0_msg_set_meta", 4, False, self._set_meta),
            ("v0_msg_get_meta", 2, True, self._get_meta),
        ]
        for name, parameters, returns, function in functions:
            kind = wasmtime.FuncType([i32] * parameters, [i64] if returns else [])
            linker.define_func(_HOST, name, kind, function)

    def _set_bytes(self, address: int, size: int) -> None:
        self._in_hand.changed = self._read(address, size)

    def _as_bytes(self) -> int:
        message = self._in_hand
        return self._write(message.content if message.changed is None else message.changed)

    def _set_meta(self, key: int, key_size: int, value: int, value_size: int) -> None:
        name = self._read(key, key_size).decode(errors="replace")
        text = self._read(value, value_size).decode(errors="replace")
        self._in_hand.meta_changes[name] = text

    def _get_meta(self, key: int, key_size: int) -> int:
        message = self._in_hand
        name = self._read(key, key_size).decode(errors="replace")
        value = message.meta_changes.get(name, message.meta.get(name, ""))
        return self._write(value.encode() if isinstance(value, str) else dump_json(value))

    @property
    def _in_hand(self) -> _MessageInHand:
        if self._message is None:
            raise _HostError("the module asks for a message while it starts")
        return self._message

    def _read(self, address: int, size: int) -> bytes:
        address, size = address & _UNSIGNED, size & _UNSIGNED
        if address + size > self._memory.data_len(self._store):
            raise self._fail("reading out-bound memory: prevented read")
        raw = bytes(self._memory.read(self._store, address, address + size))
        if self._deallocate is not None:
            self._deallocate(self._store, _signed_32(address), _signed_32(size))
        return raw

    def _write(self, data: bytes) -> int:
        """Put bytes into the module's memory; return address and size in one number."""
        if self._allocate is None:
            raise self._fail("the module exports neither malloc nor allocate")
        address: int = self._allocate(self._store, len(data))
        self._in_hand.allocated.append(address)
        place = address & _UNSIGNED
        if place + len(data) > self._memory.data_len(self._store):
            raise self._fail("allocating in-bound memory: writing in-bound memory")
        self._memory.write(self._store, data, place)
        both = place << 32 | len(data)
        return both - (_SIGN_64 << 1) if both >= _SIGN_64 else both

    def _fail(self, text: str) -> _HostError:
        """Note why the message in hand fails; the call ends by a trap."""
        self._in_hand.error = text
        return _HostError(text)


class _MessageInHand:
    def __init__(self, content: bytes, meta: Mapping[str, Any]) -> None:
        self.content, self.meta = content, meta
        self.changed: bytes | None = None
        self.meta_changes: dict[str, str] = {}
        self.allocated: list[int] = []
        self.error = ""


class _HostError(Exception):
    """A function of the host was called in a way that cannot work."""


class _CleanExit(Exception):
    """The module's start has ended the program, as that of a command does."""


def _begin(function: Any, store: Any) -> None:
    import wasmtime

    try:
        function(store)
    except wasmtime.ExitTrap as e:
        if e.code == 0:
            raise _CleanExit from None
        raise


def _signed_32(number: int) -> int:
    return number - (1 << 32) if number >= 1 << 31 else number


def _trap_text(error: Exception) -> str:
    """Return why a module has ended, in a line."""
    import wasmtime

    if isinstance(error, wasmtime.Trap) and error.trap_code == wasmtime.TrapCode.OUT_OF_FUEL:
        return "the module takes longer than limits.time allows"
    if isinstance(error, wasmtime.ExitTrap):
        return f"the module ended with exit code {error.code}"
    if isinstance(error, wasmtime.Trap):
        return f"wasm trap: {_last_line(error).removeprefix('wasm trap: ')}"
    return _last_line(error)


def _last_line(error: Exception) -> str:
    """Return the innermost cause, which stands last; before it are the places."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
