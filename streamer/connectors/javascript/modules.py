"""Modules that a program requires, found as Node.js finds them.

Source: the algorithm of `require` in Node.js's documentation of CommonJS modules, without core
modules.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

from streamer.core.permissions import NotPermittedError, Permissions

_SUFFIXES = ("", ".js", ".json")
_MAX_MODULE_BYTES = 16 << 20


def read_module(
    directory: str, name: str, folders: Sequence[str], permissions: Permissions
) -> dict[str, Any]:
    """Return a module as the runtime takes it: `path`, `directory` and `text`, or `error`.

    Args:
        directory: where the program lies that requires it.
        name: what it requires: a path (`./a`, `/a`), or a name below `node_modules` or `folders`.
        folders: searched last, for names.
        permissions: of the config.
    """
    try:
        permissions.file(directory)
        for path in _list_candidates(directory, name, folders, permissions):
            if os.path.isfile(path):
                if os.path.getsize(path) > _MAX_MODULE_BYTES:
                    return {"error": f"the module {name!r} is longer than 16 MiB"}
                text = permissions.read(path).decode()
                return {"path": path, "directory": os.path.dirname(path), "text": text}
    except NotPermittedError as e:
        return {"error": str(e)}
    except (OSError, ValueError) as e:
        return {"error": f"the module {name!r} cannot be read: {e}"}
    return {"error": f"Cannot find module '{name}'"}


def _list_candidates(
    directory: str, name: str, folders: Sequence[str], permissions: Permissions
) -> Iterator[str]:
    if name.startswith(("./", "../", "/")) or name in (".", ".."):
        yield from _list_files(os.path.normpath(os.path.join(directory, name)), permissions)
        return
    above = os.path.abspath(directory)
    while True:
        yield from _list_files(os.path.join(above, "node_modules", name), permissions)
        parent = os.path.dirname(above)
        if parent == above:
            break
        above = parent
    for folder in folders:
        yield from _list_files(os.path.join(os.path.abspath(folder), name), permissions)


def _list_files(path: str, permissions: Permissions) -> Iterator[str]:
    yield from (path + suffix for suffix in _SUFFIXES)
    package = os.path.join(path, "package.json")
    if os.path.isfile(package):
        main = json.loads(permissions.read(package)).get("main")
        if isinstance(main, str) and main:
            entry = os.path.normpath(os.path.join(path, main))
            yield from (entry + suffix for suffix in _SUFFIXES)
            yield os.path.join(entry, "index.js")
    yield from (os.path.join(path, f"index{suffix}") for suffix in (".js", ".json"))
