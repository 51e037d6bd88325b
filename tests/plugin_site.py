"""A directory of installed packages with plugins, for tests: written, put on Python's path."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from streamer.components import plugins
from streamer.core.entry_points import GROUP

SHOUT = """
from streamer.sdk.spec import Access, Field, Kind, Spec

API_VERSION = "1.0"
SPEC = Spec(
    Kind.PROCESSOR,
    "shout",
    "Makes text loud.",
    fields=(Field("mark", "string", "The end.", default="!", access=Access.NONE),),
    access=Access.NONE,
)


class Shout:
    def __init__(self, mark):
        self.mark = mark

    def process(self, batch, ex):
        return [[one.with_bytes(one.raw.upper() + self.mark.encode()) for one in batch]]


def build(parsed, context):
    return Shout(parsed["mark"])
"""


def write_package(
    site: Path,
    name: str,
    modules: Mapping[str, str],
    points: Mapping[str, str],
    version: str = "1.0.0",
) -> None:
    """Write a package as pip would have installed it.

    Args:
        site: the directory of packages.
        name: the package's.
        modules: the text of each module, by its name.
        points: its entry points: what each refers to, by its name.
        version: the package's.
    """
    about = site / f"{name.replace('-', '_')}-{version}.dist-info"
    about.mkdir(parents=True)
    files = {f"{module}.py": text for module, text in modules.items()}
    for file, text in files.items():
        (site / file).write_text(text)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [f"{point} = {target}" for point, target in points.items()]
    (about / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines, ""]))
    listed = [*files, *(f"{about.name}/{one}" for one in ("METADATA", "entry_points.txt"))]
    (about / "RECORD").write_text("".join(f"{file},,\n" for file in [*listed, "RECORD"]))


@contextmanager
def installed(site: Path) -> Iterator[None]:
    """Have the packages of a directory in this process as long as the block runs."""
    modules = set(sys.modules)
    sys.path.append(str(site))
    importlib.invalidate_caches()
    plugins.forget_plugins()
    try:
        yield
    finally:
        sys.path.remove(str(site))
        plugins.forget_plugins()
        for name in set(sys.modules) - modules:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(site)):
                del sys.modules[name]
