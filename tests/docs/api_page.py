"""The pages of the API, made of the table that its routes and its OpenAPI document are made of.

`python -m tests.docs.api_page` writes them.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from streamer.service.api.endpoint import Endpoint, Parameter
from streamer.service.api.responses import STATUS_MEANINGS
from tests.service.api.asking import asking

DOCS: Final = Path(__file__).parents[2] / "streamer" / "docs"

_INTRODUCTION: Final = """\
# API

<!-- Written by `python -m tests.docs.api_page`: not to be edited. -->

This page lists the paths of a [service](service.md); [another one](api-console.md) lists the paths
of the console. `GET /openapi.json` has the same as an OpenAPI document, for generated clients.
[Health checks](health.md) lists the paths of a single stream, [Access to the API](access.md)
describes authentication.

```sh
curl -sf http://127.0.0.1:4195/streams
curl -sf -X POST http://127.0.0.1:4195/streams/cars --data-binary @cars.yaml
```

Bodies are YAML or JSON. Times are RFC 3339 in UTC, durations are written `10s`. A figure that is
not known is `null`.

| status | case |
|---|---|
| 200 | done |
| 400 | the config has findings (`{"lint_errors": […]}`), or a parameter is wrong |
| 401, 403 | credentials are missing or do not allow it, or a page of another site sends it |
| 404 | there is no such stream |
| 409 | the stream is in a state that does not allow the request; the text has the remedy |
| 413, 415 | the body is too large, or the form of a page |
| 429 | too many wrong passwords or tokens |
| 502 | a stream does not start; the former one continues |
"""

_CONSOLE_INTRODUCTION: Final = """\
# API: the console

<!-- Written by `python -m tests.docs.api_page`: not to be edited. -->

The [console](console.md) uses these paths beside those of the [API](api.md), which also explains
status codes. They may change with the console.
"""

_GROUPS: Final = (
    ("Streams", r"/streams(/\{id\})?|/streams/\{id\}/(pause|resume|rollback)|/resources/.*"),
    ("Configs and revisions", r"/streams/\{id\}/(config|judgement|revisions.*|lint)|/lint|/schema"),
    ("State of a stream", r"/streams/\{id\}/(plan|graph|components|progress|history|stats|logs)"),
    ("Windows and results", r"/streams/\{id\}/(windows|states.*|why|results.*)"),
    ("Messages", r"/streams/\{id\}/(tap|failed-messages)|/bloblang"),
    ("The service", r".*"),
)
_CONSOLE: Final = "/console/"
_MIN_COMMON: Final = 3
_TYPES: Final = {"array": "list", "string": "text", "integer": "number"}


def make_pages() -> dict[Path, str]:
    """Return the pages' texts by path, without links to other pages at their ends."""
    with tempfile.TemporaryDirectory() as directory, asking(Path(directory)) as server:
        return format_pages(server.api.list_endpoints())


def format_pages(endpoints: Iterable[Endpoint]) -> dict[Path, str]:
    """Return the pages of some endpoints, by path.

    Args:
        endpoints: all of them; a page has them by group, in the order given.
    """
    every = [*endpoints]
    own = [one for one in every if one.path.startswith(_CONSOLE)]
    left = [one for one in every if one not in own]
    common = _find_common(left)
    parts = [_INTRODUCTION, "## Common parameters\n", _format_table(common) + "\n"]
    for title, pattern in _GROUPS:
        group = [one for one in left if re.fullmatch(pattern, one.path)]
        left = [one for one in left if one not in group]
        if group:
            parts += [f"## {title}\n", *(_format_endpoint(one, common) for one in group)]
    console = [_CONSOLE_INTRODUCTION, *(_format_endpoint(one, ()) for one in own)]
    return {DOCS / "api.md": "\n".join(parts), DOCS / "api-console.md": "\n".join(console)}


def _find_common(endpoints: Iterable[Endpoint]) -> list[Parameter]:
    """Return the parameters that several endpoints have in common, the most frequent first."""
    counts: dict[str, int] = {}
    by_key: dict[str, Parameter] = {}
    for endpoint in endpoints:
        for one in endpoint.parameters:
            key = f"{one.name}: {one.about}"
            by_key[key] = one
            counts[key] = counts.get(key, 0) + 1
    return [by_key[key] for key, count in counts.items() if count >= _MIN_COMMON]


def _format_endpoint(endpoint: Endpoint, common: Sequence[Parameter]) -> str:
    parts = [f"### `{endpoint.method} {endpoint.path}`", endpoint.about]
    if own := [one for one in endpoint.parameters if one not in common]:
        parts.append(_format_table(own))
    if shared := [f"`{one.name}`" for one in endpoint.parameters if one in common]:
        parts.append(f"Parameters, as [above](#common-parameters): {', '.join(shared)}.")
    if endpoint.body is not None:
        parts.append(f"Body: {endpoint.body}")
    if endpoint.ok_schema is not None:
        parts.append(f"Answer: {_format_schema(endpoint.ok_schema)}.")
    own_codes = {
        code: about
        for code, about in sorted(endpoint.codes.items())
        if about != STATUS_MEANINGS.get(code)
    }
    if own_codes:
        parts.append("\n".join(f"- {code}: {about}" for code, about in own_codes.items()))
    return "\n\n".join(parts) + "\n"


def _format_table(parameters: Sequence[Parameter]) -> str:
    rows = [
        f"| `{one.name}` | {_format_type(one.schema)} | {_escape(one.about)} |"
        for one in parameters
    ]
    return "\n".join(["| parameter | type | |", "|---|---|---|", *rows])


def _format_schema(schema: Mapping[str, Any]) -> str:
    """Return the answer's type, with the names of its fields one level deep."""
    if schema.get("type") == "array":
        return f"a list; each element is {_format_schema(schema.get('items', {}))}"
    fields = schema.get("properties")
    if fields:
        return "an object with " + ", ".join(f"`{name}`" for name in fields)
    if isinstance(values := schema.get("additionalProperties"), Mapping):
        return f"an object; each value is {_format_schema(values)}"
    named = _format_type(schema)
    return f"an {named}" if named == "object" else named


def _format_type(schema: Mapping[str, Any]) -> str:
    kinds = schema.get("type", "JSON")
    listed = [kinds] if isinstance(kinds, str) else [kind for kind in kinds if kind != "null"]
    named = [_TYPES.get(kind, kind) for kind in listed]
    if values := schema.get("enum"):
        return ", ".join(f"`{value}`" for value in values)
    return " or ".join(named)


def _escape(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    """Write the pages, and the links at their ends."""
    from tests.docs import navigation

    for path, text in make_pages().items():
        path.write_text(text)
    navigation.main()


if __name__ == "__main__":
    main()
