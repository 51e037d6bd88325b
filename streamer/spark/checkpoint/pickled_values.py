"""Values that are kept in a file for a later start of the same program.

They are pickled. Another version of the program may have moved a class, or given it other fields:
what was pickled then is not read at all, or worse, with each field in the place of its neighbour.
So the names of all classes and of their fields stand before it, and are compared first.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import io
import json
import os
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from streamer import __version__
from streamer.core.disk import sync_data
from streamer.core.errors import StreamerError
from streamer.spark.checkpoint.sealed_secrets import SealingPickler, UnsealingUnpickler

_OTHERS_WRITE_MODE: Final = 0o022


def write_value(path: Path, value: Any, secrets: Mapping[str, str] = MappingProxyType({})) -> None:
    """Write a value that only this version of the program reads, and only its user.

    Args:
        path: the file.
        value: the value.
        secrets: texts that are not written where `SecretReference`s stand for them.

    Raises:
        OSError: it cannot be written.
    """
    out = io.BytesIO()
    pickler = SealingPickler(out, secrets)
    pickler.dump(value)
    body = out.getvalue()
    collector = _ClassCollector(io.BytesIO(body), pickler.references)
    collector.load()
    head = {
        "version": __version__,
        "classes": collector.fields_by_class,
        "digest": hashlib.blake2b(body).hexdigest(),
    }
    draft = path.with_suffix(".tmp")
    # It holds what the config does, passwords among it that stand there.
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(json.dumps(head).encode() + b"\n" + body)
        file.flush()
        sync_data(file.fileno())
    draft.replace(path)


def read_value(path: Path) -> Any:
    """Read what `write_value` wrote.

    Raises:
        OSError: it is not there.
        ValueError: it is somebody else's, not whole, or of another version; the text says which.
    """
    stat = path.stat()
    if stat.st_uid != os.geteuid() or stat.st_mode & _OTHERS_WRITE_MODE:
        raise ValueError("others may have written it")
    line, _, body = path.read_bytes().partition(b"\n")
    head = json.loads(line)
    if not isinstance(head, dict) or hashlib.blake2b(body).hexdigest() != head.get("digest"):
        raise ValueError("it is not what was written")
    if head.get("version") != __version__:
        raise ValueError(f"it was written by streamer {head.get('version')}, this is {__version__}")
    if not isinstance(head.get("classes"), dict):
        raise ValueError("another build of streamer has written it")
    for name, fields in head["classes"].items():
        if _fields_of_class_name(name) != fields:
            raise ValueError(f"another build of streamer has written it, with another {name}")
    try:
        return UnsealingUnpickler(io.BytesIO(body)).load()
    except (ValueError, StreamerError) as e:
        raise ValueError(str(e)) from None
    except Exception as e:  # Whatever a class does when it is made again.
        raise ValueError(
            f"another build of streamer has written it: {type(e).__name__}: {e}"
        ) from None


class _ClassCollector(UnsealingUnpickler):
    """Reads a value, and notes the classes that it is made of, each with its fields."""

    def __init__(self, body: io.BytesIO, secrets: Mapping[str, str]) -> None:
        super().__init__(body, secrets)
        self.fields_by_class: dict[str, list[str]] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Return a class, or a function that makes something."""
        member = super().find_class(module, name)
        self.fields_by_class[f"{module}:{name}"] = _field_names(member)
        return member


def _fields_of_class_name(name: str) -> list[str] | None:
    """Return the fields of a class by its name; None when it is not there any more."""
    module, _, path = name.partition(":")
    try:
        target: Any = importlib.import_module(module)
        for part in path.split("."):
            target = getattr(target, part)
    except (ImportError, AttributeError):
        return None
    return _field_names(target)


def _field_names(target: Any) -> list[str]:
    """Return the names of a class's fields in their order, as it is pickled by them."""
    if dataclasses.is_dataclass(target):
        return [field.name for field in dataclasses.fields(target)]
    if isinstance(target, type) and issubclass(target, Enum):
        return [f"{one.name}={one.value!r}" for one in target]
    names = getattr(target, "_fields", ())
    slots = getattr(target, "__slots__", ())
    return list(names) or ([slots] if isinstance(slots, str) else list(slots))
