"""From the text of a stream to its config: what belongs to the service comes from the service."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Final

from streamer.bloblang import noting
from streamer.config import Config, parse_config
from streamer.config.file import read_file
from streamer.config.findings import Findings
from streamer.config.nodes import Mapping
from streamer.config.read import read_yaml
from streamer.config.resources import ResourceText
from streamer.config.source import Source
from streamer.config.templates.installed import installed
from streamer.errors import ConfigError, Lint
from streamer.permissions import limited
from streamer.redaction import SCRUBBED
from streamer.service.streams.allowance import SPARK_OF_SERVICE, Allowance
from streamer.service.streams.faults import BadConfigError
from streamer.spec import Parsed, ParsedComponent
from streamer.spec.inside import inside

_OF_SERVICE: Final = ("http", "logger", "metrics", "tracer", "shutdown_delay")
_NOTHING: Final = "input: { generate: { mapping: root = deleted() } }\noutput: { drop: {} }\n"
_HINT: Final = "it belongs to the service: put it into the config that -o names"


@dataclass(frozen=True)
class Reader:
    """Reads configs of streams.

    Attributes:
        root: the service's own config.
        allowance: what configs that come by API may do.
        resources: what all streams may refer to.
        chilled: whether configs of files run in spite of findings that they can run with.
        templates: files of templates that all configs may use; they are read with each.
        imported: the files that mappings of each config's file have read, by that file's path.
    """

    root: Config
    allowance: Allowance = Allowance()
    resources: Sequence[str | ResourceText] = field(default_factory=tuple)
    chilled: bool = False
    templates: Sequence[str] = ()
    imported: dict[str, frozenset[str]] = field(default_factory=dict)

    def of_file(self, text: str, path: str) -> Config:
        """Read the config of a file.

        Raises:
            BadConfigError: there is something wrong with it.
        """
        try:
            with self._templates(), noting() as read:
                config = parse_config(text, path, resources=self._resources(), chilled=self.chilled)
        except ConfigError as e:
            raise _wrong(e.lints, path) from None
        self.imported[path] = frozenset(name for kind, name in read if kind == "file")
        return self._of_service(config, Allowance(programs=True, local=True), self.chilled)

    def of_api(self, text: str, stream_id: str, chilled: bool = False) -> Config:
        """Read a config that came by API.

        Args:
            text: YAML, or JSON.
            stream_id: names it in findings.
            chilled: take it in spite of findings that it can run with.

        Raises:
            BadConfigError: there is something wrong with it, or it asks for what is not allowed.
        """
        allowance = self.allowance
        early = list(allowance.of_text(text, stream_id))
        if early:
            raise _wrong(early, stream_id)
        env = os.environ if allowance.local else {}
        try:
            with self._templates(), limited(allowance.permissions):
                config = parse_config(
                    text, stream_id, env=env, resources=self._resources(), chilled=chilled
                )
        except ConfigError as e:
            raise _wrong(map(_by_api, e.lints), stream_id) from None
        return self._of_service(config, allowance, chilled)

    def of_resource(self, resource: ResourceText, chilled: bool = False) -> Config:
        """Read a resource that came by API, as a config that has it.

        Args:
            resource: the resource.
            chilled: take it in spite of findings that it can run with.

        Raises:
            BadConfigError: there is something wrong with it, or it asks for what is not allowed.
        """
        early = list(self.allowance.of_text(resource.text, resource.name))
        if early:
            raise _wrong(early, resource.name)
        name = resource.name
        try:
            with self._templates(), limited(self.allowance.permissions):
                config = parse_config(
                    _NOTHING, env={}, resources=[*self._resources(), resource], chilled=chilled
                )
        except ConfigError as e:
            raise _wrong(map(_by_api, e.lints), name) from None
        wrong = list(self.allowance.of_config(replace(config, path=name)))
        if SCRUBBED in resource.text:
            wrong.append(_unknown_secret(name))
        if wrong:
            raise _wrong(wrong, name)
        return config

    def _templates(self) -> AbstractContextManager[None]:
        """Return what configs are read in: templates are there for the thread that has read them.

        A template that has become wrong is a finding of each config that is read.
        """
        tell = (lambda lint: None) if self.chilled else None
        return installed(self.templates, tell) if self.templates else nullcontext()

    def _resources(self) -> list[str | ResourceText]:
        root = self.root
        own = [ResourceText(root.path or "(service)", root.text, os.environ)] if root.text else []
        # Files are the service's own: their variables are, whatever those of a config may be.
        more = (
            ResourceText(one, read_file(one), os.environ) if isinstance(one, str) else one
            for one in self.resources
        )
        return [*own, *more]

    def _of_service(self, config: Config, allowance: Allowance, chilled: bool) -> Config:
        wrong = list(allowance.of_config(config))
        wrong += _stdin(config)
        # Chilled, a section that belongs elsewhere is left out, as Benthos leaves it out.
        wrong += [] if chilled else _misplaced(config)
        if SCRUBBED in config.text:
            wrong.append(_unknown_secret(config.path))
        if wrong:
            raise _wrong(wrong, config.path)
        root = self.root
        spark = {name: root.spark[name] for name in SPARK_OF_SERVICE}
        return replace(
            config,
            http=root.http,
            logger=root.logger,
            metrics=root.metrics,
            tracer=root.tracer,
            shutdown_delay=0,
            spark=Parsed({**config.spark, **spark}),
            secrets={**root.secrets, **config.secrets},
        )


def _unknown_secret(name: str) -> Lint:
    message = "there is no secret to put in the place of the mark for one"
    return Lint(name, 0, 0, "not_allowed", message, "write the secret")


def _wrong(lints: Iterable[Lint], name: str) -> BadConfigError:
    """Return the error for findings; the name of the config itself is known to who asks."""
    return BadConfigError.of(
        replace(lint, file="") if lint.file == name else lint for lint in lints
    )


def _by_api(lint: Lint) -> Lint:
    if "--no-impure" in lint.suggestion or "switched off here" in lint.message:
        hint = "configs that come by API may not; start the service with --allow-local"
        return replace(lint, suggestion=hint)
    return lint


def _misplaced(config: Config) -> Iterator[Lint]:
    """Name sections of a stream's config that only the service's own may have."""
    root = read_yaml(Source(config.path, config.text), Findings())
    if not isinstance(root, Mapping):
        return
    for name in _OF_SERVICE:
        if name in root.entries:
            yield _lint(config, root, name, name)
    spark = root.entries["spark"][1] if "spark" in root.entries else None
    for name in SPARK_OF_SERVICE:
        if isinstance(spark, Mapping) and name in spark.entries:
            yield _lint(config, spark, name, f"spark.{name}")


def _lint(config: Config, holder: Mapping, name: str, shown: str) -> Lint:
    key = holder.entries[name][0]
    place = key.source.place(key.start)
    return Lint(config.path, *place, "unknown_field", f"field {shown} not recognised", _HINT)


def _stdin(config: Config) -> Iterator[Lint]:
    hint = "name another input, such as http_server"
    for component in _inputs(config.input, config, set()):
        if component.name == "stdin":
            message = "the input stdin is not for one of many streams: there is one for all"
            yield Lint(config.path, component.line, component.column, "not_allowed", message, hint)


def _inputs(
    component: ParsedComponent, config: Config, seen: set[int]
) -> Iterator[ParsedComponent]:
    if id(component) in seen:
        return
    seen.add(id(component))
    if component.name == "resource":
        found = config.resources.get((component.kind, str(component.config)))
        if found is not None:
            yield from _inputs(found, config, seen)
    elif component.kind == "input":
        yield component
        for child in inside(component):
            yield from _inputs(child, config, seen)
