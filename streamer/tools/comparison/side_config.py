"""The config of one side of a comparison: recorded messages in, rows out, nothing else outside.

The input becomes one that takes envelopes off, and every output becomes a file of rows. The buffer,
the pipeline and the resources stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from streamer.engine.offline.sample_input import MAX_LINE_BYTES
from streamer.tools.comparison.recording import (
    CONTENT,
    ERROR,
    METADATA,
    OUTPUT,
)

DELAY: Final = "streamer_compare_delay"
"""The metadata with the last part of what event times are moved by; no row has it."""

DAYS_AT_ONCE: Final = 3000
"""Days that a duration of Benthos's can have."""

_KEPT_SECTIONS: Final = (
    *("buffer", "pipeline", "buffers", "processor_resources", "cache_resources"),
    *("rate_limit_resources", "table_resources", "bloblang", "spark", "limits"),
)
_BESIDE_NAME: Final = frozenset(("label", "processors", "type"))
_WRAPPERS: Final = ("retry", "drop_on")
_HAS_ROOT: Final = re.compile(r"^\s*root\s*(\.|=)", re.MULTILINE)
_OPEN_ENVELOPE: Final = f"""\
root = if this.exists("{CONTENT}") {{ this.{CONTENT}.decode("base64") }} else {{ deleted() }}
meta = this.{METADATA} | {{}}
"""


@dataclass(frozen=True, slots=True)
class TimeShift:
    """A distance by which event times are moved, so that windows of the system clock can close.

    Attributes:
        days: times of `DAYS_AT_ONCE` days; negative to move back. The rest comes as `DELAY`.
    """

    days: int = 0

    def to_mapping(self, mapping: str) -> str:
        """Return a `timestamp_mapping` whose result is moved.

        Args:
            mapping: that of the config.
        """
        text = mapping if _HAS_ROOT.search(mapping) else f"root = {mapping.strip()}"
        method = "ts_add_iso8601" if self.days >= 0 else "ts_sub_iso8601"
        calls = f'.{method}("P{DAYS_AT_ONCE}D")' * abs(self.days)
        return f"{text}\nroot = root{calls}.ts_add_iso8601(@{DELAY})"


@dataclass(frozen=True, slots=True)
class Exchange:
    """The ends of a side.

    Attributes:
        directory: gets the files of rows.
        input_file: the file of envelopes; None for the standard input.
        shift: how event times are moved; None to leave them.
        http_address: where the side serves its state; empty to serve nothing.
    """

    directory: Path
    input_file: Path | None
    shift: TimeShift | None = None
    http_address: str = ""


@dataclass(slots=True)
class SideConfig:
    """The config of a side.

    Attributes:
        values: its sections.
        rows: the files of rows, by the path of their output.
        notes: parts of the config that are not compared, in sentences.
        is_shifted: whether event times are moved.
    """

    values: dict[str, Any]
    rows: dict[str, Path] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    is_shifted: bool = False


def make_side_config(document: Mapping[str, Any], exchange: Exchange) -> SideConfig:
    """Return the config that a side runs.

    Args:
        document: the sections of the user's config.
        exchange: the ends.
    """
    kept = {name: deepcopy(document[name]) for name in _KEPT_SECTIONS if document.get(name)}
    side = SideConfig(kept, is_shifted=exchange.shift is not None)
    side.values["input"] = _make_input(document, exchange)
    if isinstance(kept.get("spark"), dict):
        kept["spark"].pop("checkpoint", None)
    _replace_outputs(side, document, exchange)
    _replace_buffer(side)
    for place in _pipelines(side.values):
        if exchange.shift is not None:
            processors = [{"mutation": f"meta {DELAY} = deleted()"}]
            place["processors"] = [*processors, *(place.get("processors") or [])]
    if exchange.shift is not None:
        for buffer in list_buffers(side.values):
            _shift_buffer(buffer, exchange.shift)
    side.values["http"] = (
        {"enabled": True, "address": exchange.http_address}
        if exchange.http_address
        else {"enabled": False}
    )
    side.values["metrics"] = {"none": {}}
    side.values["logger"] = {"level": "WARN"}
    if document.get("error_handling"):
        side.notes.append("error_handling is left out: it concerns outputs, which are replaced")
    return side


def component_name(component: Any) -> str:
    """Return the name of a component that is written in a config; empty where there is none."""
    if not isinstance(component, Mapping):
        return ""
    return next((str(name) for name in component if name not in _BESIDE_NAME), "")


def list_buffers(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Give the buffers of a config, as they are written."""
    several = document.get("buffers")
    for one in several if isinstance(several, list) else [document.get("buffer")]:
        if isinstance(one, dict):
            yield one


def find_buffer_fields(buffer: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of a buffer, and its fields."""
    names = [name for name in buffer if name not in ("from", "pipeline", "output", "label")]
    name = str(names[0]) if names else "none"
    fields = buffer.get(name)
    return name, fields if isinstance(fields, dict) else {}


def _pipelines(values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Give the `pipeline` sections behind the buffers, which are made where there is none."""
    several = values.get("buffers")
    for holder in several if isinstance(several, list) else [values]:
        if not isinstance(holder.get("pipeline"), dict):
            holder["pipeline"] = {}
        yield holder["pipeline"]


def _make_input(document: Mapping[str, Any], exchange: Exchange) -> dict[str, Any]:
    given = document.get("input")
    processors = given.get("processors") if isinstance(given, Mapping) else None
    lines = {"scanner": {"lines": {"max_buffer_size": 2 * MAX_LINE_BYTES}}}
    name = "stdin"
    fields: dict[str, Any] = {**lines}
    if exchange.input_file is not None:
        name, fields = "file", {"paths": [str(exchange.input_file)], **lines}
    return {
        name: fields,
        "processors": [{"mapping": _OPEN_ENVELOPE}, *deepcopy(processors or [])],
    }


def _replace_buffer(side: SideConfig) -> None:
    """Put the processors of the buffer `sqlite`, which keeps a file, into the pipeline."""
    name, fields = find_buffer_fields(side.values.get("buffer") or {})
    if name == "sqlite":
        del side.values["buffer"]
        pipeline = next(_pipelines(side.values))
        pipeline["processors"] = [
            *(fields.get("pre_processors") or []),
            *(fields.get("post_processors") or []),
            *(pipeline.get("processors") or []),
        ]


def _shift_buffer(buffer: dict[str, Any], shift: TimeShift) -> None:
    _, fields = find_buffer_fields(buffer)
    if mapping := fields.get("timestamp_mapping"):
        fields["timestamp_mapping"] = shift.to_mapping(str(mapping))


def _replace_outputs(side: SideConfig, document: Mapping[str, Any], exchange: Exchange) -> None:
    values = side.values
    named = {
        str(one.get("label")): one
        for one in document.get("output_resources") or []
        if isinstance(one, Mapping)
    }
    replacer = _OutputReplacer(side, exchange, named)
    values["output"] = replacer.replace(document.get("output"), "output")
    for number, buffer in enumerate(values.get("buffers") or []):
        if isinstance(buffer, dict) and buffer.get("output"):
            buffer["output"] = replacer.replace(buffer["output"], f"buffers.{number}.output")
    # What windows drop goes to an output by its label.
    late = {
        str(label)
        for buffer in list_buffers(values)
        if (label := find_buffer_fields(buffer)[1].get("late_output"))
    }
    if late:
        values["output_resources"] = [
            {"label": label, **replacer.replace(named.get(label), f"output_resources.{label}")}
            for label in sorted(late)
        ]


def _with_processors(output: dict[str, Any], processors: list[Any]) -> dict[str, Any]:
    """Return an output with processors; an empty list of them would be a finding of Benthos's."""
    return {**output, "processors": processors} if processors else output


class _OutputReplacer:
    """Replaces outputs by files of rows; those that decide where rows go stay."""

    def __init__(self, side: SideConfig, exchange: Exchange, named: Mapping[str, Any]) -> None:
        self._side = side
        self._directory = exchange.directory
        self._named = named

    def replace(self, output: Any, path: str, depth: int = 0) -> dict[str, Any]:
        """Return an output as a side has it.

        Args:
            output: as it is written; None for the default.
            path: where it stands.
            depth: of resources that name others.
        """
        if not isinstance(output, Mapping):
            return self._make_leaf(path, [])
        name = component_name(output)
        fields, processors = output.get(name), deepcopy(output.get("processors") or [])
        if name == "switch" and isinstance(fields, Mapping):
            cases = [
                {
                    **deepcopy({k: v for k, v in case.items() if k != "output"}),
                    "output": self.replace(case.get("output"), f"{path}.switch.cases.{n}.output"),
                }
                for n, case in enumerate(fields.get("cases") or [])
            ]
            return _with_processors({"switch": {"cases": cases}}, processors)
        if name == "broker" and isinstance(fields, Mapping):
            outputs = [
                self.replace(one, f"{path}.broker.outputs.{n}")
                for n, one in enumerate(fields.get("outputs") or [])
            ]
            kept = {"pattern": fields["pattern"]} if "pattern" in fields else {}
            return _with_processors({"broker": {**kept, "outputs": outputs}}, processors)
        inner = self._find_inner(name, fields)
        if inner is not None and depth < 10:
            replaced = self.replace(inner, path, depth + 1)
            return _with_processors(replaced, [*processors, *replaced.get("processors", [])])
        return self._make_leaf(path, processors)

    def _find_inner(self, name: str, fields: Any) -> Any:
        """Return the output that another one sends to; None where there is none, or several."""
        if name == "resource":
            label = fields.get("resource") if isinstance(fields, Mapping) else fields
            return self._named.get(str(label))
        if name == "reject_errored":
            return fields
        if name == "fallback" and isinstance(fields, list) and fields:
            return fields[0]  # a file of rows never fails
        if name in _WRAPPERS and isinstance(fields, Mapping):
            return fields.get("output")
        return None

    def _make_leaf(self, path: str, processors: list[Any]) -> dict[str, Any]:
        file = self._directory / f"rows-{len(self._side.rows)}.jsonl"
        self._side.rows[path] = file
        row = (
            f'root = {{"{CONTENT}": content().encode("base64"), "{METADATA}": metadata(), '
            f'"{ERROR}": error(), "{OUTPUT}": {json.dumps(path)}}}'
        )
        return {
            "file": {"path": str(file), "codec": "lines"},
            "processors": [*processors, {"mapping": row}],
        }
