"""Checks of the specs of plugins, and guards around the code in them.

A spec of another package is read like one of ours: by lint, the schema, `create`, documentation.
What would make one of these fail is found when the plugin is loaded, so that it is left out; code
in a spec that raises an error becomes a finding.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, get_args

from streamer.components.plugin_index import NAME
from streamer.core.durations import parse_duration
from streamer.core.errors import StreamerError
from streamer.core.extras import EXTRA_OF
from streamer.sdk.spec import REQUIRED, Access, Field, Kind, Spec, Status
from streamer.sdk.spec.json_schema import field_schema
from streamer.sdk.spec.spec_json import spec_to_json

_FIELD_NAME: Final = "a name such as max_size"
_DEFAULT_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "object": (dict,),
}
_SHAPE_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "array": (list, tuple),
    "2darray": (list, tuple),
    "map": (dict,),
}


def find_spec_problem(spec: object, kind: Kind, name: str) -> str:
    """Return the reason why a spec is not valid; "" for none.

    Args:
        spec: the object that the plugin has as its spec.
        kind: the kind that its entry point names.
        name: the name there.
    """
    if not isinstance(spec, Spec):
        return f"its SPEC is {type(spec).__name__}; expected a Spec"
    try:
        return next(_iter_problems(spec, kind, name), "")
    except Exception as error:
        return f"its spec cannot be read: {type(error).__name__}: {error}"


def _iter_problems(spec: Spec, kind: Kind, name: str) -> Iterator[str]:
    if (spec.kind, spec.name) != (kind, name):
        yield f"its spec is that of {spec.kind} {spec.name!r}; expected {kind} {name!r}"
    if not isinstance(spec.summary, str) or not spec.summary.strip():
        yield "its spec has no summary; expected one sentence"
    if spec.status not in get_args(Status):
        yield f"its status is {spec.status!r}; expected {', '.join(get_args(Status))}"
    if spec.config is not None and spec.fields:
        yield "its spec has config and fields; expected one of the two"
    if spec.config is not None and spec.config.name:
        yield f"its spec's config is named {spec.config.name!r}; expected an empty name"
    if spec.access is not None and spec.access not in list(Access):
        yield f"its access is {spec.access!r}; expected one of Access"
    for package in spec.requires:
        if package.name not in EXTRA_OF:
            yield (
                f"its spec requires {package.name!r}, which no extra of streamer installs; name "
                "it among the dependencies of the plugin's package"
            )
    yield from _iter_field_problems(spec.fields, "")
    if spec.config is not None:
        yield from _iter_field_problems(spec.config.children, "")
        yield from _find_default_problem(spec.config, "config")
    # What the schema and the lists are made of.
    json.dumps([field_schema(spec.body), spec_to_json(spec)])


def _iter_field_problems(fields: Iterable[Field], above: str) -> Iterator[str]:
    seen: set[str] = set()
    for field in fields:
        if not isinstance(field, Field):
            yield f"one of its fields is {type(field).__name__}; expected a Field"
            continue
        path = f"{above}.{field.name}" if above else field.name
        if not NAME.fullmatch(field.name):
            yield f"the field {path!r} is named so; expected {_FIELD_NAME}"
        if field.name in seen:
            yield f"it has two fields {path!r}"
        seen.add(field.name)
        yield from _find_default_problem(field, path)
        yield from _iter_field_problems(field.children, path)


def _find_default_problem(field: Field, path: str) -> Iterator[str]:
    """Return what is wrong with a field's default."""
    value = field.default
    if value is REQUIRED or value is None:
        return
    expected = _SHAPE_TYPES.get(field.shape) or _DEFAULT_TYPES.get(field.type)
    of = f"the default of the field {path!r}"
    is_number = isinstance(value, bool) and field.type in ("int", "float")
    if expected is not None and (not isinstance(value, expected) or is_number):
        yield f"{of} is {value!r}; expected {expected[0].__name__}"
    elif field.duration and field.shape == "scalar" and value:
        try:
            parse_duration(value)
        except (StreamerError, ValueError):
            yield f"{of} is {value!r}; expected a duration such as 1m30s"
    elif field.options and field.shape == "scalar" and value not in field.options:
        yield f"{of} is {value!r}; expected one of {', '.join(field.options)}"


def guard_spec(spec: Spec, distribution: str) -> Spec:
    """Return a spec whose code raises nothing: what goes wrong in a check is a finding.

    Args:
        spec: a valid spec of a plugin.
        distribution: its package, with the version.
    """
    of = f"{spec.kind} {spec.name} of the package {distribution}"
    return replace(
        spec,
        distribution=distribution,
        fields=tuple(_guard_field(field, of) for field in spec.fields),
        config=_guard_field(spec.config, of) if spec.config is not None else None,
        check=_guard_check(spec.check, of) if spec.check is not None else None,
        references=_guard_many(spec.references),
        explains=_guard_many(spec.explains),
    )


def _guard_field(field: Field, of: str) -> Field:
    children = tuple(_guard_field(child, of) for child in field.children)
    check = field.check
    if check is None:
        return replace(field, children=children) if children else field

    def find_problem(value: Any) -> str | None:
        try:
            return check(value)
        except Exception as error:
            return f"cannot be checked: {_describe_failure(of, error)}"

    return replace(field, children=children, check=find_problem)


def _guard_check(
    check: Callable[[Any], Iterable[tuple[str, str]]], of: str
) -> Callable[[Any], Iterable[tuple[str, str]]]:
    def find_problems(parsed: Any) -> Iterator[tuple[str, str]]:
        try:
            for name, text in check(parsed):
                yield str(name), str(text)
        except Exception as error:
            yield "", f"cannot be checked: {_describe_failure(of, error)}"

    return find_problems


def _guard_many(make: Callable[[Any], Iterable[Any]] | None) -> Callable[[Any], Any] | None:
    """Return the same function; an error ends what it returns."""
    if make is None:
        return None

    def make_safely(parsed: Any) -> list[Any]:
        try:
            return list(make(parsed))
        except Exception:
            # Whatever is wrong with it, the check of the spec and `build` report it.
            return []

    return make_safely


def _describe_failure(of: str, error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"the check of {of} raised {type(error).__name__}{f': {text}' if text else ''}"
