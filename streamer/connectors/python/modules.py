"""Modules that lie beside a config: collected where it is read, imported wherever it runs.

Their files travel with the config. A process writes them to a directory of its own machine, named
by their contents, and imports them from there by the names that they have; so what they import of
one another, pickled objects of their classes and tracebacks are as they would be at home. When the
contents change, modules are imported anew.
"""

from __future__ import annotations

import ast
import importlib.machinery
import os
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from streamer.bloblang.environment import record_files
from streamer.sdk.spec import BadTextError, SourcedText

MAX_FILES: Final = 1_000
MAX_BYTES: Final = 16 << 20
_INIT: Final = "__init__.py"


def find_imports(tree: ast.AST) -> Iterator[str]:
    """Return the names of modules that code imports, relative ones left out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module


def collect_modules(names: Iterable[str], directory: Path) -> dict[str, Path]:
    """Return the files of modules that lie in a directory, and of what they import there.

    A package is taken whole, with all files that are no caches. Names of the standard library and
    of this program are never looked for.

    Args:
        names: of modules.
        directory: where to look.

    Returns:
        The files, by their paths below the directory.

    Raises:
        BadTextError: they are too many, or too large.
    """
    files: dict[str, Path] = {}
    waiting = list(dict.fromkeys(name.partition(".")[0] for name in names))
    seen = set(waiting)
    size = 0
    while waiting:
        root = waiting.pop()
        if root in sys.stdlib_module_names or root == "streamer" or not root.isidentifier():
            continue
        for path in _files_of(root, directory):
            files[path.relative_to(directory).as_posix()] = path
            size += path.stat().st_size
            if len(files) > MAX_FILES or size > MAX_BYTES:
                raise BadTextError(
                    f"needs {root}, which lies beside the config and has more than {MAX_FILES:,} "
                    f"files or {MAX_BYTES >> 20} MiB; install it as a package instead"
                )
            more = {name.partition(".")[0] for name in _imports_of(path)} - seen
            seen |= more
            waiting += sorted(more)
    return files


def _files_of(root: str, directory: Path) -> list[Path]:
    package = directory / root
    if (package / _INIT).is_file():
        return [
            path
            for path in sorted(package.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
        ]
    module = directory / f"{root}.py"
    return [module] if module.is_file() else []


def _imports_of(path: Path) -> Iterator[str]:
    if path.suffix != ".py":
        return iter(())
    try:
        return find_imports(ast.parse(path.read_bytes()))
    except (SyntaxError, ValueError, RecursionError):
        return iter(())  # It is found when it is imported.


def read_modules(
    text: str, file: str, lines: Sequence[int], names: Iterable[str], *, local: bool
) -> SourcedText:
    """Return a text with the modules beside its config that it needs.

    Args:
        text: code, or the name of a function.
        file: the config's.
        lines: of the text, in that file.
        names: of modules that it imports.
        local: whether files may be read.

    Raises:
        BadTextError: a file cannot be read, or there are too many.
    """
    directory = Path(os.path.abspath(file)).parent
    try:
        files = collect_modules(names, directory) if local else {}
        sources = {name: path.read_bytes() for name, path in files.items()}
    except OSError as e:
        raise BadTextError(f"needs a file that cannot be read: {e}") from None
    paths = {name: str(path) for name, path in files.items()}
    record_files({paths[name]: content for name, content in sources.items()})
    return SourcedText(text, file, tuple(lines), sources, paths)


class ModuleSet:
    """Modules with one content, in this process.

    Attributes:
        directory: where their files are.
        roots: the names of the modules and packages at the top.
    """

    def __init__(self, digest: str, sources: Mapping[str, bytes], parent: Path) -> None:
        """Write the files, unless another process has.

        Args:
            digest: names the contents.
            sources: the contents, by paths.
            parent: the directory that the machine's processes share.
        """
        self.roots = frozenset(
            name.partition("/")[0].removesuffix(".py") for name in sources if name
        )
        self.directory = parent / f"python-{digest}"
        self._modules: dict[str, ModuleType] = {}
        if sources and not self.directory.is_dir():
            parent.mkdir(parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(prefix="python-draft-", dir=parent))
            for name, content in sources.items():
                place = draft / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
            try:
                draft.rename(self.directory)
            except OSError:
                # Another process was faster: what it has written is the same.
                for path in sorted(draft.rglob("*"), reverse=True):
                    path.rmdir() if path.is_dir() else path.unlink()
                draft.rmdir()

    def activate(self) -> None:
        """Let imports of this process find these modules, and not others of their names."""
        if self.roots and _FINDER.current is not self:
            _FINDER.switch(self)

    def forget(self) -> None:
        """Forget what was imported, so that it is imported anew."""
        with _FINDER.lock:
            self._modules.clear()
            if _FINDER.current is self:
                _take_modules(self.roots)

    def put_aside(self) -> None:
        """Take the modules out of those that are imported."""
        self._modules = _take_modules(self.roots)

    def put_back(self) -> None:
        """Have the modules among those that are imported, in the place of others."""
        self._others = _take_modules(self.roots)
        sys.modules.update(self._modules)


def _take_modules(roots: frozenset[str]) -> dict[str, ModuleType]:
    names = [name for name in list(sys.modules) if name.partition(".")[0] in roots]
    return {name: sys.modules.pop(name) for name in names}


class _Finder:
    """Finds the modules of the set that is active; see `importlib.abc.MetaPathFinder`."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.current: ModuleSet | None = None

    def switch(self, modules: ModuleSet) -> None:
        with self.lock:
            if self not in sys.meta_path:
                sys.meta_path.insert(0, self)
            if self.current is not None:
                self.current.put_aside()
            self.current = modules
            modules.put_back()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        current = self.current
        if current is None or name.partition(".")[0] not in current.roots:
            return None
        where = [str(current.directory)] if path is None else path
        return importlib.machinery.PathFinder.find_spec(name, where, target)

    def invalidate_caches(self) -> None:
        """Keep nothing, so forget nothing."""


_FINDER: Final[Any] = _Finder()
