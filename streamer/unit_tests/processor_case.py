"""A test of processors, or of a mapping: batches in, batches out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from streamer.bloblang import BloblangError, compile_mapping
from streamer.catalog import build_context
from streamer.config.definitions import Case
from streamer.errors import StreamerError
from streamer.failure import Origin
from streamer.pipeline import step
from streamer.processors.mapping import MappingProcessor
from streamer.spec import Kind, ParsedComponent
from streamer.unit_tests.batches import check_batches
from streamer.unit_tests.failure import Failure
from streamer.unit_tests.files import read_beside
from streamer.unit_tests.messages import make_batch
from streamer.unit_tests.surroundings import Surroundings

_INLINE = re.compile(r"\n|=|^\s*(map|let|import|from)\b")


def check_processors(case: Case, around: Surroundings) -> Iterator[Failure]:
    """Run a case's processors; return what is wrong with what comes out.

    Raises:
        StreamerError: the case cannot be run: its target, a mock or a file is not there, or
            something is wrong with it.
    """
    parsed = case.parsed
    processors = _mapping(case, around) if parsed["target_mapping"] else _processors(case, around)
    incoming = [*(parsed["input_batches"] or ())]
    if parsed["input_batch"]:
        incoming.append(parsed["input_batch"])
    batches = [made for one in incoming if (made := make_batch(one, around.directory))]
    ex = around.execution()
    for processor in processors:
        batches = step(processor, batches, ex)
    yield from check_batches(parsed["output_batches"] or (), batches, around.directory, ex)


def _processors(case: Case, around: Surroundings) -> Sequence[Any]:
    file, name = split_target(case.parsed["target_processors"])
    target = around.open(case, file)
    return build_context(target.resources).all(target.processors(name))


def split_target(target: str) -> tuple[str, str]:
    """Return the file that a target names (empty for the config) and its pointer or label.

    Raises:
        StreamerError: it is a URL of something that is not a file, or names nothing.
    """
    url = urlsplit(target)
    if url.scheme not in ("", "file"):
        raise StreamerError(f"target_processors {target!r} is not in a file; expected FILE#POINTER")
    file, name = (url.path, url.fragment) if url.fragment else ("", url.path)
    if not name:
        raise StreamerError(
            f"target_processors {target!r} names no processors; expected a JSON Pointer such as "
            "/pipeline/processors, or a label"
        )
    return unquote(file), unquote(name)


def _mapping(case: Case, around: Surroundings) -> Sequence[Any]:
    text = case.parsed["target_mapping"]
    path = around.directory / text.strip() if "\n" not in text.strip() else None
    directory = around.directory
    if path is not None and (path.is_file() or not _INLINE.search(text.strip())):
        content, problem = read_beside(around.directory, text.strip())
        if problem:
            raise StreamerError(f"target_mapping {problem}")
        text, directory = _decoded(path, content), path.parent
    try:
        mapping = compile_mapping(text, directory=str(directory))
    except BloblangError as e:
        name = "target_mapping" if text is case.parsed["target_mapping"] else str(path)
        raise StreamerError(f"{name}({e.line},{e.column}) {e.message}") from None
    return [MappingProcessor(mapping, Origin(ParsedComponent(Kind.PROCESSOR, "mapping")))]


def _decoded(path: Path, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as e:
        raise StreamerError(f"target_mapping {path}: {str(e).lower()}") from None
