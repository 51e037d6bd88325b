"""Compile `.proto` files with Google's own compiler.

The compiler runs in a process of its own: a schema may be anything, and the compiler is C++.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from streamer.core.errors import StreamerError

_COMPILE_TIMEOUT_S: Final = 30.0
_WARNING: Final = re.compile(r"WARNING: |[IW]\d{4} |.*: warning: ")


def compile_files(files: Mapping[str, str], roots: Iterable[str]) -> bytes:
    """Return the descriptors of files and of all that they import, serialised.

    Files that come with Protobuf, as `google/protobuf/timestamp.proto`, need not be given.

    Args:
        files: texts, by the names by which they import one another.
        roots: names of those to compile.

    Raises:
        StreamerError: they cannot be compiled; the text says why.
    """
    # The package alone is small; the compiler in it runs in a process of its own.
    import grpc_tools

    with tempfile.TemporaryDirectory(prefix="streamer-proto-") as directory:
        home = Path(directory, "files")
        home.mkdir()
        for name, text in files.items():
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or not path.parts:
                raise StreamerError(f"parsing proto schema: {name!r} is no name of a file")
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text, encoding="utf-8")
        # A command line is bounded, and there may be thousands of names.
        names, made = Path(directory, "names"), Path(directory, "descriptors")
        names.write_text("".join(f"{name}\n" for name in roots), encoding="utf-8")
        compiler = f"{grpc_tools.__name__}.protoc"
        command = [sys.executable, "-m", compiler, f"-I{home}", "--include_imports"]
        try:
            run = subprocess.run(
                [*command, f"--descriptor_set_out={made}", f"@{names}"],
                capture_output=True,
                timeout=_COMPILE_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as e:
            raise StreamerError(f"parsing proto schema: {e}") from None
        if run.returncode or not made.exists():
            why = _read_errors(run.stderr.decode(errors="replace"), f"{home}/")
            raise StreamerError(f"parsing proto schema: {why}")
        return made.read_bytes()


def _read_errors(text: str, directory: str) -> str:
    """Return what the compiler says is wrong, without its warnings and the place of the files."""
    if "No module named" in text:
        return "it needs the package grpcio-tools of the extra schema-registry"
    lines = [line for line in text.splitlines() if not _WARNING.match(line)]
    return " ".join(" ".join(lines).replace(directory, "").split())
