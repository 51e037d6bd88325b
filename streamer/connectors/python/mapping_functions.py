"""Functions and methods of mappings in modules that a config names: loaded wherever it runs."""

from __future__ import annotations

import hashlib
import importlib
import os
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from streamer.bloblang.catalog import FUNCTIONS, METHODS
from streamer.bloblang.declare import Declaration
from streamer.bloblang.extension import CallKind, Extension
from streamer.bloblang.python_functions import FunctionError, declare_python, iterate_functions
from streamer.connectors.python.modules import ModuleSet
from streamer.connectors.python.user_traceback import OwnFiles, describe_error
from streamer.core.errors import StreamerError
from streamer.sdk.spec import SourcedText

_KNOWN: Final[Mapping[CallKind, Mapping[str, Declaration]]] = {
    "function": FUNCTIONS,
    "method": METHODS,
}
_MAX_LOADED: Final = 64
_DIGEST_CHARACTERS: Final = 12


class ModuleError(StreamerError):
    """A module cannot be loaded, or what it has cannot be called by mappings.

    Attributes:
        place: which of the modules it is, from 0.
    """

    def __init__(self, place: int, text: str) -> None:
        """Take the module's place among those that are loaded, and what is wrong."""
        super().__init__(text)
        self.place = place


_loaded: Final[dict[str, Extension]] = {}
_lock: Final = threading.RLock()


def load_extension(modules: Sequence[SourcedText]) -> Extension:
    """Return the functions and methods of modules; loaded once in a process.

    Args:
        modules: the names of the modules, with the files beside the config that they need.

    Raises:
        ModuleError: one of them cannot be loaded, or two have the same name in it.
    """
    text = "\n".join(f"{module.strip()} {module.digest}" for module in modules)
    key = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    with _lock:
        if key not in _loaded:
            while len(_loaded) >= _MAX_LOADED:
                del _loaded[next(iter(_loaded))]
            _loaded[key] = _load(tuple(modules), key)
        return _loaded[key]


def _load(modules: tuple[SourcedText, ...], key: str) -> Extension:
    sources = {name: content for module in modules for name, content in module.sources.items()}
    beside = ModuleSet(key, sources, _find_directory() if sources else Path())
    declared: dict[CallKind, dict[str, Declaration]] = {"function": {}, "method": {}}
    origins: dict[tuple[CallKind, str], str] = {}
    digest = hashlib.sha256(key.encode())
    for place, text in enumerate(modules):
        name = text.strip()
        module, own = _import(place, name, beside)
        if name.partition(".")[0] not in beside.roots:
            digest.update(_read_source(module))
        describe = _make_describer(own)
        count = 0
        for mark, function in iterate_functions(module):
            count += 1
            known = origins.get((mark.kind, mark.name))
            if mark.name in _KNOWN[mark.kind]:
                raise ModuleError(
                    place,
                    f"names {name}, whose {mark.kind} {mark.name} Bloblang has itself; give it "
                    f'another name: @bloblang_{mark.kind}("my_{mark.name}")',
                )
            if known is not None:
                of = f"{known} has" if known != name else "it has twice"
                raise ModuleError(
                    place, f"names {name}, whose {mark.kind} {mark.name} {of} too; rename one"
                )
            origins[mark.kind, mark.name] = name
            try:
                declared[mark.kind][mark.name] = declare_python(
                    mark, function, describe, beside.activate if beside.roots else None
                )
            except FunctionError as e:
                raise ModuleError(place, f"names {name}, of which mappings cannot call {e}") from e
        if not count:
            raise ModuleError(
                place,
                f"names {name}, which has no function with the decorator bloblang_function or "
                "bloblang_method of streamer.sdk",
            )
    made = digest.hexdigest()[:_DIGEST_CHARACTERS]
    return Extension(declared["function"], declared["method"], made, load_extension, (modules,))


def _import(place: int, name: str, beside: ModuleSet) -> tuple[ModuleType, OwnFiles]:
    """Return a module, and the files whose lines its errors show."""
    own = OwnFiles(directory=str(beside.directory) if beside.roots else "")
    beside.activate()
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as e:
        if e.name is None or not f"{name}.".startswith(f"{e.name}."):
            raise ModuleError(place, f"names {name}, which cannot be loaded: {e}") from e
        raise ModuleError(
            place,
            f"names the module {name}, which is neither installed nor in the directory of the "
            "config",
        ) from None
    except (Exception, SystemExit) as e:
        text = describe_error(e, own)
        raise ModuleError(place, f"names {name}, which cannot be loaded: {text}") from e
    root = name.partition(".")[0]
    if root not in beside.roots:
        package = sys.modules.get(root)
        places = [str(one) + "/" for one in getattr(package, "__path__", ())]
        own = OwnFiles(packages=places or [str(module.__file__)])
    return module, own


def _make_describer(own: OwnFiles) -> Callable[[BaseException], str]:
    return lambda error: describe_error(error, own)


def _read_source(module: ModuleType) -> bytes:
    file = getattr(module, "__file__", None)
    try:
        return Path(file).read_bytes() if file else b""
    except OSError:
        return b""


def _find_directory() -> Path:
    """Return a directory of this user's alone, which its processes on this machine share."""
    path = Path(tempfile.gettempdir()) / f"streamer-functions-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    status: Any = path.lstat()
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    if is_own and not status.st_mode & 0o077:
        return path
    # Somebody else's: what is imported from there would be theirs.
    return Path(tempfile.mkdtemp(prefix="streamer-functions-"))
