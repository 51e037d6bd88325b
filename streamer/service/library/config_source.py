"""Source of a stream's config: a file, which is read each time, or a text."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from streamer.config import Config, lint_config, load_config, parse_config
from streamer.config.file import read_file
from streamer.config.load import lint_text
from streamer.config.templates.installation import install_templates
from streamer.core.errors import Lint, StreamerError

_TEXT_NAME: Final = "config.yaml"
"""The name of the file in which the tests of a config without one are read."""


class _PlainDumper(yaml.SafeDumper):
    """Writes a value that stands in two places twice: YAML's aliases are for people."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """A config, and how it is read.

    Attributes:
        path: the file; empty for a text.
        text: the text, where there is no file.
        sets: `path=value` expressions, as `--set` has them.
        resources: files with further resources.
        templates: files with templates.
    """

    path: str
    text: str = field(default="", repr=False)
    sets: tuple[str, ...] = field(default=(), repr=False)
    resources: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()

    def read(self) -> Config:
        """Read the config.

        Raises:
            ConfigError: with all findings; or a file cannot be read.
        """
        with install_templates(self.templates):
            if self.path:
                return load_config(self.path, sets=self.sets, resources=self.resources)
            return parse_config(self.text, sets=self.sets, resources=self.resources)

    def lint(self) -> tuple[Lint, ...]:
        """Return all findings, in the order of the text.

        Raises:
            ConfigError: a file with templates is wrong.
        """
        with install_templates(self.templates):
            if self.path:
                return lint_config(self.path, resources=self.resources, sets=self.sets)
            return lint_text(self.text, resources=self.resources, sets=self.sets)

    @contextmanager
    def open_file(self) -> Iterator[tuple[str, str]]:
        """Give a file with the config, and the directory of the files that its tests name.

        The file of a text goes when the block ends.
        """
        if self.path:
            yield self.path, ""
            return
        with tempfile.TemporaryDirectory(prefix="streamer-") as directory:
            path = Path(directory, _TEXT_NAME)
            path.write_text(self.text, encoding="utf-8")
            yield str(path), os.getcwd()


def read_source(
    source: str | os.PathLike[str] | Mapping[str, Any], *, is_text: bool = False
) -> tuple[str, str]:
    """Return the path of a config, or its text; the other of the two is empty.

    Args:
        source: the path of a file; a text of YAML with `is_text`; a document.
        is_text: whether it is a text.

    Raises:
        ConfigError: there is no such file, or it cannot be read.
        StreamerError: the document has values that YAML has no form for, or a text was given for a
            path.
    """
    if isinstance(source, Mapping):
        return "", _dump_document(source)
    if is_text:
        if not isinstance(source, str):
            raise StreamerError(
                f"a config's text is a str, got {type(source).__name__}; streamer.load takes the "
                "path of a file, or a dict"
            )
        return "", source
    path = os.fspath(source)
    if "\n" in path:
        raise StreamerError(
            "streamer.load takes the path of a file, and this has several lines; streamer.loads "
            "takes a text of YAML"
        )
    read_file(path)
    return path, ""


def _dump_document(document: Mapping[str, Any]) -> str:
    try:
        text: str = yaml.dump(
            dict(document), Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=1000
        )
    except (yaml.YAMLError, RecursionError) as e:
        reason = "it contains itself" if isinstance(e, RecursionError) else _name_value(e)
        raise StreamerError(
            f"the config has a value that YAML has no form for: {reason}; expected dicts, lists, "
            "texts, numbers, True, False and None"
        ) from None
    return text


def _name_value(error: Exception) -> str:
    """Return the type of the value that could not be written; its text may be secret."""
    value = error.args[1] if len(error.args) > 1 else None
    return f"an object of the type {type(value).__name__}"
