"""The examples that come with the program: `example:NAME` in the place of a config's path."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import streamer
from streamer.core.errors import StreamerError

_PREFIX: Final = "example:"
_ARGUMENT: Final = re.compile(rf"(--[\w-]+=)?{_PREFIX}(.*)", re.S)
_TESTS: Final = "_streamer_test"


def examples_directory() -> Path:
    """Return where the examples are: in the installed package, or in the checkout it runs from."""
    package = Path(streamer.__file__).resolve().parent
    installed = package / "examples"
    return installed if installed.is_dir() else package.parent / "configs"


def list_example_names() -> list[str]:
    """Return the names of all examples, sorted."""
    root = examples_directory()
    names = (path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.yaml"))
    return sorted(name for name in names if not name.endswith(_TESTS))


def resolve_examples(arguments: list[str]) -> list[str]:
    """Return a command line with the path of the file for each `example:NAME`.

    Raises:
        StreamerError: there is no example of that name; the text lists those that there are.
    """
    return [_resolve_example(argument) for argument in arguments]


def _resolve_example(argument: str) -> str:
    named = _ARGUMENT.fullmatch(argument)
    if named is None:
        return argument
    name = named[2].removesuffix(".yaml")
    names = list_example_names()
    if name not in names:
        raise StreamerError(
            f"there is no example {name!r}; there are {', '.join(names) or 'none at all'}"
        )
    return f"{named[1] or ''}{examples_directory() / f'{name}.yaml'}"
