"""Completions of arguments and options: files, names of components, pages, labels, streams.

Nothing here imports what reads a config before it is needed: a shell waits for the answer. Names
of components come from the pages of the documentation, of which each component has one, and from
the entry points of other packages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import click
from click.shell_completion import CompletionItem

Items = list[CompletionItem[str]]
Completer = Callable[[click.Context, click.Parameter, str], Items]

_PAGES_DIRECTORY: Final = Path(__file__).resolve().parents[2] / "docs"
_CREATED_KINDS: Final = (
    *(("inputs",), ("buffers", "processors"), ("processors", "outputs"), ("outputs",)),
)
_REQUEST_TIMEOUT_S: Final = 1.0
_MAX_ANSWER_BYTES: Final = 8 << 20
_SAFE_VALUE: Final = re.compile(r"[\w./@%+-]+")
"""Values of others, such as ids of streams, that no shell takes for anything else."""
_EXAMPLE_PREFIX: Final = "example:"
LISTS: Final = (
    *("inputs", "processors", "outputs", "caches", "rate-limits", "tables", "buffers", "metrics"),
    *("tracers", "scanners", "bloblang-functions", "bloblang-methods"),
)
"""What `streamer list` has, in Benthos's order."""

_CALL_LISTS: Final = ("bloblang-functions", "bloblang-methods")

FILE: Final = click.Path()
"""The type of an option or argument that names a file, or a directory of files."""

DIRECTORY: Final = click.Path(file_okay=False)
"""The type of one that names a directory, which need not be there."""


def complete_config(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Return that files are completed, or the examples that `example:` names."""
    is_example = incomplete.startswith(_EXAMPLE_PREFIX)
    begins_one = bool(incomplete) and _EXAMPLE_PREFIX.startswith(incomplete)
    if is_example or (begins_one and not _is_begun_file(incomplete)):
        from streamer.config.examples import list_example_names

        return _filter_values(
            (f"{_EXAMPLE_PREFIX}{name}" for name in list_example_names()), incomplete
        )
    return [CompletionItem(incomplete, type="file")]


def _is_begun_file(incomplete: str) -> bool:
    return any(name.startswith(incomplete) for name in os.listdir())


def complete_list_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Return lists, and behind a list the names that it has."""
    given: tuple[str, ...] = ctx.params.get("words") or ()
    lists = [word for word in given if word in LISTS]
    items = _filter_values((name for name in LISTS if name not in given), incomplete)
    for name in lists:
        if name.startswith("bloblang-"):
            items += _list_calls(name, incomplete)
        else:
            items += _list_components(name, incomplete)
    return items


def complete_docs_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Return pages, kinds of components, and behind a kind its components."""
    given: tuple[str, ...] = ctx.params.get("names") or ()
    kinds = [path.name for path in (_PAGES_DIRECTORY / "components").iterdir() if path.is_dir()]
    if given and given[0] in _CALL_LISTS:
        return _list_calls(given[0], incomplete)
    if given:
        return _list_components(given[0], incomplete) if given[0] in kinds else []
    pages = _list_pages(_PAGES_DIRECTORY.glob("*.md"), incomplete)
    if incomplete.startswith("cookbook"):
        recipes = (_PAGES_DIRECTORY / "cookbook").glob("*.md")
        pages += _list_pages(recipes, incomplete, "cookbook/")
    return [*pages, *_filter_values([*sorted(kinds), "search"], incomplete)]


def complete_created(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Return names of components for the part of `input/buffer/processor,…/output` in hand."""
    parts = incomplete.split("/")
    if len(parts) > len(_CREATED_KINDS):
        return []
    head, comma, begun = parts[-1].rpartition(",")
    before = "".join(f"{part}/" for part in parts[:-1]) + head + comma
    return [
        CompletionItem(before + item.value, type="part", help=item.help)
        for kind in _CREATED_KINDS[len(parts) - 1]
        for item in _list_components(kind, begun)
    ]


def complete_buffer_label(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Return the labels of the buffers of the config that the command line names."""
    from streamer.config import load_config
    from streamer.plan import make_plan

    # An option that lacks its value keeps click from parsing what stands before it.
    words: Sequence[str] = ctx.find_object(list) or ()
    file = next((word for word in words if word.endswith((".yaml", ".yml"))), None)
    plan = make_plan(load_config(file), "OFF")
    return _filter_values((one.label for one in plan.buffers), incomplete)


def complete_stream(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Return the ids of the streams of the service at `--url`; none when it does not answer."""
    return [
        CompletionItem(name, help=f"{one.get('state', '')}")
        for name, one in _request_json(ctx, "/streams").items()
        if name.startswith(incomplete) and _SAFE_VALUE.fullmatch(name)
    ]


def complete_revision(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Return the numbers of the revisions of the stream that is named, the newest first."""
    path = f"/streams/{quote(ctx.params['stream_id'], safe='')}/revisions"
    numbers = [str(int(one["revision"])) for one in _request_json(ctx, path)]
    return _filter_values(numbers, incomplete)


def _request_json(ctx: click.Context, path: str) -> Any:
    """Return what the service answers.

    Raises:
        OSError: it does not answer soon.
        ValueError: the answer is none.
    """
    # Imported here, and not the client of commands: that one takes longer to import than to ask.
    import base64
    import json
    from http.client import HTTPConnection, HTTPSConnection

    from streamer.cli.service_client import DEFAULT_URL

    def option(name: str) -> str:
        return ctx.params.get(name) or os.environ.get(f"STREAMER_{name.upper()}", "")

    parts = urlsplit(option("url") or DEFAULT_URL)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    headers = {}
    if token := option("token"):
        headers["Authorization"] = f"Bearer {token}"
    elif user := option("user"):
        headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
    connection = kind(parts.hostname or "", parts.port, timeout=_REQUEST_TIMEOUT_S)
    try:
        connection.request("GET", parts.path.rstrip("/") + path, headers=headers)
        answer = connection.getresponse()
        if answer.status != 200:
            raise ValueError(f"status {answer.status}")
        return json.loads(answer.read(_MAX_ANSWER_BYTES))
    finally:
        connection.close()


def _filter_values(values: Iterable[str], incomplete: str) -> Items:
    return [CompletionItem(value) for value in values if value.startswith(incomplete)]


def _list_pages(paths: Iterable[Path], incomplete: str, folder: str = "") -> Items:
    return [
        CompletionItem(folder + path.stem, help=_read_lines(path)[0].lstrip("# "))
        for path in sorted(paths)
        if (folder + path.stem).startswith(incomplete)
    ]


def _list_components(plural: str, incomplete: str) -> Items:
    """Return the components of a kind, each with its summary."""
    directory = _PAGES_DIRECTORY / "components" / plural
    own = [
        CompletionItem(path.stem, help=next(iter(_read_lines(path)[1:]), ""))
        for path in sorted(directory.glob("*.md"))
        if path.stem.startswith(incomplete)
    ]
    return own + _list_plugins(plural, incomplete)


def _list_plugins(plural: str, incomplete: str) -> Items:
    """Return the plugins of a kind, each with its package; none of them is imported."""
    from streamer.components.plugin_index import read_plugin_index

    kind = "metrics" if plural == "metrics" else plural.removesuffix("s").replace("-", "_")
    return [
        CompletionItem(name, help=f"from {entry.distribution}")
        for (of, name), entry in sorted(read_plugin_index().entries.items())
        if of == kind and name.startswith(incomplete)
    ]


def _read_lines(path: Path) -> list[str]:
    """Return the first lines of a page that are not empty."""
    with path.open(encoding="utf-8") as file:
        lines = (line.strip() for line in (file.readline() for _ in range(4)))
        return [line for line in lines if line]


def _list_calls(plural: str, incomplete: str) -> Items:
    """Return functions or methods of mappings, those of other packages with their package."""
    from streamer.bloblang.reference import describe_declarations

    kind: Any = "function" if plural == "bloblang-functions" else "method"
    return [
        CompletionItem(one["name"], help=f"from {one['package']}" if "package" in one else None)
        for one in describe_declarations(kind)
        if one["name"].startswith(incomplete)
    ]
