"""Whatever stands in a field of a component: a finding or an error with words, and no traceback.

Each run takes other fields and other values; a failure names them, so that it can be run again.
"""

from __future__ import annotations

import json
import os
import random
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamer.components import catalog
from streamer.components.catalog import build_context
from streamer.config import LintOptions, lint_config, parse_config
from streamer.core.errors import ConfigError, StreamerError
from streamer.sdk.spec import REQUIRED, Field, Kind, ParsedComponent, Spec
from streamer.sdk.spec.checks import SupportsProbe
from streamer.sdk.spec.children import child_components

_SAMPLE = 800
_RESOLVE = socket.getaddrinfo
_SEED = int(os.environ.get("STREAMER_SEED") or random.SystemRandom().randrange(10**6))

VALUES = (
    # URLs and addresses.
    *("redis://app:pa[ss@localhost:6379", "http://[::1", "tcp://[::1:1", "http://localhost:99999"),
    *("tcp://localhost:port", "localhost:-1", "localhost:٣", "[::1]:99999999", "http:///a", "::"),
    *(
        "http://a b",
        "http://é..",
        f"http://{'a' * 70}/",
        "user:pa[ss@tcp(localhost:x)/db",
        "a:99999",
    ),
    *(
        "postgres://u:p[@h/d",
        "mysql://[::1",
        "file://[",
        "unix:///x",
        "localhost:1\r\nX: y",
        "a,,b",
    ),
    # Patterns, paths and texts.
    *("[", "]", "{", "}", "(", "(?P<", "a{1,99999}", "*", "**", "[!", "/{a", "/{a:[}", "/{a:(}"),
    *(
        "\\",
        "%",
        "%zz",
        "%s%d",
        "\0",
        "a\0b",
        "é",
        "\ud7ff",
        "🦀",
        "",
        "  ",
        "\n",
        "a\nb",
        ":",
        ",",
    ),
    *("..", "/", "~", "'", '"', "$", "@", "\u2028", "<a", "x" * 300, '{"a":', "a|b"),
    # Numbers, durations, times and names.
    *("-1", "²", "1e400", "NaN", "99999999999999999999", "0x", "1h", "-1h", "1e9h", "null", "true"),
    *("@every", "@every 1x", "99 99 * * *", "TZ=x * * * * *", "Nowhere/X", "Europe/", "utf-77"),
    # Mappings.
    *("${!", "${! ", "${!}", '${! json("a") }', "${! deleted() }", "root = ", "this", "SELECT ?"),
)
# What has no valid config without these.
_MORE: dict[str, dict[str, Any]] = {
    "batched": {"policy": {"count": 1}},
    "kafka_franz": {"topics": ["a"]},
    "redpanda": {"topics": ["a"]},
    "read_until": {"check": "true"},
    "json_schema": {"schema": "{}"},
    "xml": {"operator": "to_json"},
    "while": {"check": "true"},
    "sql_raw": {"query": "SELECT 1"},
    "redis_hash": {"walk_metadata": True},
    "parquet_encode": {"schema": [{"name": "a", "type": "INT64"}]},
}
_SIMPLE: dict[str, Any] = {
    "input": {"stdin": {}},
    "output": {"drop": {}},
    "processor": {"noop": {}},
    "scanner": {"lines": {}},
}
_PLAIN: dict[str, Any] = {
    "string": "x",
    "int": 1,
    "float": 1.0,
    "bool": False,
    "object": {},
    "unknown": {},
}


def simplest(field: Field) -> Any:
    """Return a value that a field takes."""
    for one in (*field.examples[:1], field.default):
        if one is not REQUIRED and one is not None:
            return one
    if field.children:
        value: Any = {one.name: simplest(one) for one in field.children if one.required}
    elif field.type == "string" and (field.options or field.duration or field.mapping):
        value = "1s" if field.duration else (*field.options, "root = this")[0]
    else:
        value = (
            _PLAIN[field.type] if field.type in _PLAIN else _SIMPLE.get(field.type, {"none": {}})
        )
    return shaped(field, value)


def shaped(field: Field, value: Any) -> Any:
    return {"scalar": value, "array": [value], "map": {"k": value}, "2darray": [[value]]}[
        field.shape
    ]


def ways(fields: tuple[Field, ...], way: tuple[Field, ...] = ()) -> Iterator[tuple[Field, ...]]:
    """Return the ways to all fields that take texts, through the objects that they are in."""
    for field in fields:
        if field.type in ("string", "unknown"):
            yield (*way, field)
        yield from ways(field.children, (*way, field))


def config_of(spec: Spec, way: tuple[Field, ...], value: str) -> str:
    """Return a config with a component, one field of which has a value."""
    if spec.config is not None:
        body: Any = shaped(spec.config, value)
    else:
        body = {field.name: simplest(field) for field in spec.fields if field.required}
        body |= _MORE.get(spec.name, {})
        here = body
        for field in way[:-1]:
            inner = {one.name: simplest(one) for one in field.children if one.required}
            here[field.name], here = shaped(field, inner), inner
        here[way[-1].name] = shaped(way[-1], value)
    component = {spec.name: body}
    config: dict[str, Any] = {
        **{"input": _SIMPLE["input"], "output": _SIMPLE["output"]},
        "cache_resources": [{"label": "x", "memory": {}}],
        "rate_limit_resources": [{"label": "y", "local": {}}],
    }
    if spec.kind == Kind.PROCESSOR:
        config["pipeline"] = {"processors": [component]}
    elif spec.kind in (Kind.CACHE, Kind.RATE_LIMIT):
        config[f"{spec.kind}_resources"].append({"label": "z", **component})
    elif spec.kind == Kind.SCANNER:
        config["input"] = {"file": {"paths": ["a"], "scanner": component}}
    else:
        config[str(spec.kind)] = component
    return json.dumps(config)


def all_cases() -> list[tuple[Spec, tuple[Field, ...], str]]:
    specs = [
        catalog.find_spec(kind, name)
        for kind in Kind
        for name in sorted(catalog.component_names(kind))
    ]
    return [
        (spec, way, value)
        for spec in specs
        if spec is not None
        for way in ways((spec.config,) if spec.config is not None else spec.fields)
        for value in VALUES
    ]


def look_at(text: str) -> None:
    """Lint a config; build and connect what it has, as `dry-run` does, if it can be read."""
    Path("c.yaml").write_text(text)
    lint_config("c.yaml", env={}, options=LintOptions(thorough=True))
    try:
        config = parse_config(text, env={})
    except ConfigError:
        return
    pending = [config.input, config.buffer, *config.processors, config.output]
    pending += config.resources.values()
    while pending:
        component = pending.pop()
        pending += [*child_components(component), *component.processors]
        if component.kind not in (Kind.BUFFER, Kind.METRICS, Kind.TRACER):
            try:
                built = build_context(config.resources, component).build(component)
                if isinstance(built, SupportsProbe) and not _waits_long(component):
                    built.probe()
            except (StreamerError, OSError):
                continue


def _waits_long(component: ParsedComponent) -> bool:
    """Tell whether a probe waits some seconds for a broker that is not there, in C."""
    return "kafka" in component.name or "redpanda" in component.name


def resolved_here(host: Any, *more: Any, **named: Any) -> Any:
    """Resolve this machine's names as ever, and no other: nobody else is to be asked."""
    name = host.decode() if isinstance(host, bytes) else host
    if name in ("localhost", "127.0.0.1", "::1", None):
        return _RESOLVE(host, *more, **named)
    if "\0" in name:
        raise ValueError("embedded null character")
    name.encode("idna")
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def test_no_value_of_a_field_ends_lint_or_a_start_with_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket, "getaddrinfo", resolved_here)
    cases = all_cases()
    assert len({spec.name for spec, _, _ in cases}) > 80
    for spec, way, value in random.Random(_SEED).sample(cases, _SAMPLE):
        try:
            look_at(config_of(spec, way, value))
        except Exception as error:
            where = ".".join(field.name for field in way)
            error.add_note(f"{spec.kind} {spec.name}: {where} = {value!r}, seed {_SEED}")
            raise


@pytest.mark.parametrize(
    ("kind", "name", "where", "value"),
    [
        (Kind.INPUT, "aws_kinesis", "region", "\n"),
        (Kind.INPUT, "mongodb", "database", "99 99 * * *"),
        (Kind.INPUT, "hdfs", "hosts", "${! deleted() }"),
        (Kind.OUTPUT, "hdfs", "hosts", "localhost:٣"),
        (Kind.OUTPUT, "hdfs", "hosts", "http:///a"),
        (Kind.OUTPUT, "aws_s3", "tcp.connect_timeout", "-1h"),
        (Kind.OUTPUT, "hdfs", "user", "a\0b"),
        (Kind.OUTPUT, "iceberg", "catalog.url", "mysql://[::1"),
        (Kind.OUTPUT, "qdrant", "grpc_host", "\u2028"),
    ],
)
def test_values_that_ended_a_start_are_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind, name: str, where: str, value: str
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = catalog.find_spec(kind, name)
    assert spec is not None
    way = next(way for way in ways(spec.fields) if ".".join(one.name for one in way) == where)
    Path("c.yaml").write_text(config_of(spec, way, value))
    findings = [str(one) for one in lint_config("c.yaml", env={})]
    assert any(way[-1].name in one for one in findings), findings
