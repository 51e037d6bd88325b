"""A side's config for Benthos: additions of streamer are removed, or refused with their place."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from streamer.config.known_names import is_addition
from streamer.config.yaml_writer import format_yaml
from streamer.core.durations import parse_duration
from streamer.core.errors import StreamerError
from streamer.sdk.spec import Kind
from streamer.tools.comparison.config_document import ConfigDocument, Path
from streamer.tools.comparison.programs import Program
from streamer.tools.comparison.side_config import (
    Exchange,
    SideConfig,
    component_name,
    find_buffer_fields,
    make_side_config,
)

_LINT_S: Final = 60
_MAX_SHOWN: Final = 10
_LINT_LINE: Final = re.compile(r"\((\d+),\d+\)\s*(.*)")
_SECTIONS_OF_STREAMER: Final = ("spark", "limits", "bloblang", "table_resources", "buffers")
_DROPPED_SECTIONS: Final = ("spark", "limits")
_REFUSED_SECTIONS: Final = {
    "buffers": "several buffers",
    "table_resources": "lookup tables",
    "bloblang": "functions of a config",
}
_WINDOW_FIELDS: Final = ("timestamp_mapping", "size", "slide", "offset", "allowed_lateness")
_DURATIONS: Final = _WINDOW_FIELDS[1:]
_ADDED: Final = {
    "late_output": "messages that windows drop are not compared",
    "on_expired": "on_expired is left out: Benthos drops windows that are overdue",
    "expire_after": "expire_after is left out: Benthos drops windows that are overdue",
    "end_of_input": "end_of_input is left out: the input stays open until all windows have closed",
    "retention": "retention is left out: it does not change results",
}
"""Fields that `system_window` has besides Benthos's, and what becomes of each."""

_PROCESSOR_KEYS: Final = frozenset(("processors", "catch", "try", "for_each", "parallel"))


def make_benthos_config(document: ConfigDocument, exchange: Exchange) -> SideConfig:
    """Return the config that Benthos runs.

    Args:
        document: the config.
        exchange: the ends of the side.

    Raises:
        StreamerError: it has parts that Benthos does not have; the text names their places.
    """
    problems = list(_list_problems(document))
    if problems:
        raise StreamerError(_describe(problems, "Benthos"))
    side = make_side_config(document.values, exchange)
    values = side.values
    for name in _SECTIONS_OF_STREAMER:
        values.pop(name, None)
    if document.values.get("limits"):
        side.notes.append("limits are left out for Benthos, which has none")
    _translate_buffer(side)
    # Late rows have no counterpart, and other resources were put where they are used.
    values.pop("output_resources", None)
    for path in [one for one in side.rows if one.startswith("output_resources.")]:
        del side.rows[path]
    # One thread: processors with a memory, such as dedupe, see messages in their order.
    values["pipeline"] = {**(values.get("pipeline") or {}), "threads": 1}
    values["shutdown_timeout"] = "5s"
    return side


def _list_problems(document: ConfigDocument) -> Iterator[str]:
    values = document.values
    for section, what in _REFUSED_SECTIONS.items():
        if values.get(section):
            yield f"{document.locate((section,))} {section}: it has no {what}"
    buffer = values.get("buffer")
    if isinstance(buffer, Mapping):
        name, fields = find_buffer_fields(buffer)
        if is_addition(Kind.BUFFER, name):
            yield (
                f"{document.locate(('buffer', name))} buffer {name}: it has no such buffer; give "
                "its own config with --other-config"
            )
        elif fields.get("state_ttl"):
            yield (
                f"{document.locate(('buffer', name, 'state_ttl'))} state_ttl: it has no state by "
                "key"
            )
    for path, name in _list_processors(values):
        if is_addition(Kind.PROCESSOR, name):
            yield f"{document.locate(path)} processor {name}: it has no such processor"


def _list_processors(values: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Give the processors of a config, with those in others, and where each stands."""
    for section in ("input", "buffer", "pipeline", "output"):
        yield from _walk(values.get(section), (section,), is_list=False)
    for path in (("processor_resources",),):
        yield from _walk(values.get(path[0]), path, is_list=True)


def _walk(value: Any, path: Path, *, is_list: bool) -> Iterator[tuple[Path, str]]:
    if isinstance(value, list):
        for number, item in enumerate(value):
            if is_list and (name := component_name(item)):
                yield (*path, number, name), name
            yield from _walk(item, (*path, number), is_list=False)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _walk(item, (*path, str(name)), is_list=name in _PROCESSOR_KEYS)


def _translate_buffer(side: SideConfig) -> None:
    buffer = side.values.get("buffer")
    if not isinstance(buffer, dict):
        return
    name, fields = find_buffer_fields(buffer)
    if name != "system_window":
        return
    side.notes += [text for field, text in _ADDED.items() if fields.get(field)]
    kept = {field: fields[field] for field in _WINDOW_FIELDS if field in fields}
    for field in _DURATIONS:
        if kept.get(field):
            kept[field] = f"{parse_duration(str(kept[field]))}ns"  # Go has no days
    side.values["buffer"] = {name: kept}


def check_config(program: Program, file: str, side: SideConfig, document: ConfigDocument) -> None:
    """Have Benthos check the config that it is to run.

    Args:
        program: Benthos.
        file: the config's file.
        side: what is in it.
        document: the config that it was made of, for places.

    Raises:
        StreamerError: Benthos refuses it; the text has its words, and the places.
    """
    text, is_shifted = write_config(side), side.is_shifted
    try:
        done = subprocess.run(
            (*program.lint, file),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LINT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        raise StreamerError(f"{program.name} cannot check the config: {e}") from None
    if not done.returncode:
        return
    problems = []
    for line in (done.stdout + done.stderr).splitlines():
        match = _LINT_LINE.search(line)
        if match is not None:
            path = _own_path(_path_of_line(text, int(match[1])), is_shifted)
            problems.append(f"{document.locate(path)} {'.'.join(map(str, path))}: {match[2]}")
    if not problems:
        end = (done.stderr or done.stdout).replace(file, "the config").strip()
        raise StreamerError(f"{program.name} refuses the config: {end[-500:]}")
    raise StreamerError(_describe(problems, program.name))


def _describe(problems: list[str], name: str) -> str:
    more = f"\n  and {len(problems) - _MAX_SHOWN} more" if len(problems) > _MAX_SHOWN else ""
    return (
        f"{name} cannot run this config:"
        + "".join(f"\n  {one}" for one in dict.fromkeys(problems[:_MAX_SHOWN]))
        + more
    )


def _own_path(path: Path, is_shifted: bool) -> Path:
    """Return the path in the user's config of one in the config of a side.

    A side has a processor of its own before those of the input, and before those of the pipeline
    where event times are moved.
    """
    if len(path) < 3 or path[1] != "processors" or not isinstance(path[2], int):
        return path
    own = {"input": 1, "pipeline": int(is_shifted)}.get(str(path[0]), 0)
    return (*path[:2], path[2] - own, *path[3:]) if path[2] >= own else path[:1]


def _path_of_line(text: str, line: int) -> Path:
    """Return the path of the innermost value that begins in a line of YAML, or before it."""
    best: Path = ()
    for path, at in _places(yaml.compose(text, Loader=yaml.SafeLoader), ()):
        if at <= line:
            best = path
    return best


def _places(node: Any, path: Path) -> Iterator[tuple[Path, int]]:
    """Give the values of a YAML document in its order, with the line that each begins in."""
    if path:
        yield path, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, str(key.value)), key.start_mark.line + 1
            yield from _places(value, (*path, str(key.value)))
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _places(item, (*path, number))


def write_config(side: SideConfig) -> str:
    """Return the YAML of a side's config."""
    return format_yaml(side.values)
