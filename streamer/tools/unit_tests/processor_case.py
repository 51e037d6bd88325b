"""A test of processors, or of a mapping: batches in, batches out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from streamer.bloblang import BloblangError, compile_mapping
from streamer.components.catalog import build_context
from streamer.components.processors.mapping import MappingProcessor
from streamer.config.unit_tests.definitions import Case
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.permissions import current_permissions
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.lookup_table import use_local_tables
from streamer.sdk.processing import run_processor
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.sdk.spec.component import Resources
from streamer.tools.unit_tests.batches import check_batches
from streamer.tools.unit_tests.failure import Failure
from streamer.tools.unit_tests.files import read_relative_file
from streamer.tools.unit_tests.messages import make_batch
from streamer.tools.unit_tests.run_log import RunLog, Throughput
from streamer.tools.unit_tests.suite_environment import SuiteEnvironment

_INLINE_MAPPING = re.compile(r"\n|=|^\s*(map|let|import|from)\b")


def check_processors(case: Case, environment: SuiteEnvironment) -> Iterator[Failure]:
    """Run a case's processors; return what is wrong with what comes out.

    Raises:
        StreamerError: the case cannot be run: its target, a mock or a file is not there, or
            something is wrong with it.
    """
    parsed = case.parsed
    processors, resources = (
        (_open_mapping(case, environment), {})
        if parsed["target_mapping"]
        else _open_processors(case, environment)
    )
    incoming = [*(parsed["input_batches"] or ())]
    if parsed["input_batch"]:
        incoming.append(parsed["input_batch"])
    batches = [batch for one in incoming if (batch := make_batch(one, environment.directory))]
    log = RunLog(environment.log_redacted)
    ex = environment.make_execution(log.add)
    with use_local_tables(resources, build_context(resources)):
        for processor in processors:
            batches = run_processor(processor, batches, ex)
    expected = parsed["output_batches"] or ()
    hint = log.describe(_throughputs(ex)) if len(batches) < len(expected) else []
    yield from check_batches(expected, batches, environment.directory, ex, hint)


def _throughputs(ex: Execution) -> Iterator[Throughput]:
    for (_, _, path), stats in ex.component_stats.items():
        yield Throughput(path, stats.received, stats.sent)


def _open_processors(case: Case, environment: SuiteEnvironment) -> tuple[Sequence[Any], Resources]:
    file, name = split_target(case.parsed["target_processors"])
    target = environment.open_config(case, file)
    processors = build_context(target.resources).build_all(target.read_processors(name))
    return processors, target.resources


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


def _open_mapping(case: Case, environment: SuiteEnvironment) -> Sequence[Any]:
    text = case.parsed["target_mapping"]
    directory = environment.directory
    # Where files are out of reach, whether there is one is none of a test's business either.
    may_be_file = "\n" not in text.strip() and current_permissions().local
    path = environment.directory / text.strip() if may_be_file else None
    if path is not None and (path.is_file() or not _INLINE_MAPPING.search(text.strip())):
        content, problem = read_relative_file(environment.directory, text.strip())
        if problem:
            raise StreamerError(f"target_mapping {problem}")
        text, directory = _decode_mapping(path, content), path.parent
    try:
        mapping = compile_mapping(text, directory=str(directory))
    except BloblangError as e:
        name = "target_mapping" if text is case.parsed["target_mapping"] else str(path)
        raise StreamerError(f"{name}({e.line},{e.column}) {e.message}") from None
    return [MappingProcessor(mapping, ComponentRef(ParsedComponent(Kind.PROCESSOR, "mapping")))]


def _decode_mapping(path: Path, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as e:
        raise StreamerError(f"target_mapping {path}: {str(e).lower()}") from None
