"""From the text of a stream to its config: what belongs to the service comes from the service."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Final

from streamer.config import Config, parse_config
from streamer.config.file import read_file
from streamer.config.findings import Findings
from streamer.config.nodes import Mapping
from streamer.config.resources import ResourceText
from streamer.config.secrets import add_variable_values
from streamer.config.source_map import Source
from streamer.config.templates.installation import install_templates
from streamer.config.yaml_reader import read_yaml
from streamer.core.errors import ConfigError, Lint
from streamer.core.permissions import limit_permissions
from streamer.core.redaction import SCRUBBED
from streamer.sdk.spec import ParsedComponent, ParsedFields
from streamer.sdk.spec.children import child_components
from streamer.service.fleet.api_permissions import SERVICE_SPARK_FIELDS, ApiPermissions
from streamer.service.fleet.errors import BadConfigError

_SERVICE_SECTIONS: Final = ("http", "logger", "metrics", "tracer", "shutdown_delay")
_EMPTY_CONFIG: Final = "input: { generate: { mapping: root = deleted() } }\noutput: { drop: {} }\n"
_HINT: Final = "it belongs to the service: put it into the config that -o names"


@dataclass(frozen=True)
class ConfigReader:
    """Reads configs of streams.

    Attributes:
        root: the service's own config.
        permissions: what configs that come by API may do.
        resources: what all streams may refer to.
        chilled: whether configs of files run in spite of findings that they can run with.
        templates: files of templates that all configs may use; they are read with each.
        imported_files: the files that mappings of each config's file have read, by that file's
            path.
    """

    root: Config
    permissions: ApiPermissions = ApiPermissions()
    resources: Sequence[str | ResourceText] = field(default_factory=tuple)
    chilled: bool = False
    templates: Sequence[str] = ()
    imported_files: dict[str, frozenset[str]] = field(default_factory=dict)

    def read_file_config(self, text: str, path: str) -> Config:
        """Read the config of a file.

        Raises:
            BadConfigError: there is something wrong with it.
        """
        try:
            with self._install_templates():
                config = parse_config(
                    text, path, resources=self.resource_texts(), chilled=self.chilled
                )
        except ConfigError as e:
            raise _config_error(e.lints, path) from None
        self.imported_files[path] = config.inputs.files
        return self._apply_service_config(
            config, ApiPermissions(programs=True, local=True, python=True), self.chilled
        )

    def read_api_config(self, text: str, stream_id: str, chilled: bool = False) -> Config:
        """Read a config that came by API.

        Args:
            text: YAML, or JSON.
            stream_id: names it in findings.
            chilled: take it in spite of findings that it can run with.

        Raises:
            BadConfigError: there is something wrong with it, or it asks for what is not allowed.
        """
        permissions = self.permissions
        findings = list(permissions.lint_text(text, stream_id))
        if findings:
            raise _config_error(findings, stream_id)
        env = os.environ if permissions.local else {}
        try:
            with self._install_templates(), limit_permissions(permissions.component_permissions):
                config = parse_config(
                    text, stream_id, env=env, resources=self.resource_texts(), chilled=chilled
                )
        except ConfigError as e:
            raise _config_error(map(_explain_api_limit, e.lints), stream_id) from None
        return self._apply_service_config(config, permissions, chilled)

    def read_resource(self, resource: ResourceText, chilled: bool = False) -> Config:
        """Read a resource that came by API, as a config that has it.

        Args:
            resource: the resource.
            chilled: take it in spite of findings that it can run with.

        Raises:
            BadConfigError: there is something wrong with it, or it asks for what is not allowed.
        """
        findings = list(self.permissions.lint_text(resource.text, resource.name))
        if findings:
            raise _config_error(findings, resource.name)
        name = resource.name
        try:
            with (
                self._install_templates(),
                limit_permissions(self.permissions.component_permissions),
            ):
                config = parse_config(
                    _EMPTY_CONFIG,
                    env={},
                    resources=[*self.resource_texts(), resource],
                    chilled=chilled,
                )
        except ConfigError as e:
            raise _config_error(map(_explain_api_limit, e.lints), name) from None
        problems = list(self.permissions.lint_config(replace(config, path=name)))
        if SCRUBBED in resource.text:
            problems.append(_unknown_secret(name))
        if problems:
            raise _config_error(problems, name)
        return config

    def _install_templates(self) -> AbstractContextManager[None]:
        """Return what configs are read in: templates are there for the thread that has read them.

        A template that has become wrong is a finding of each config that is read.
        """
        on_lint = (lambda lint: None) if self.chilled else None
        return install_templates(self.templates, on_lint) if self.templates else nullcontext()

    def resource_texts(self) -> list[str | ResourceText]:
        """Return the resources that all configs may refer to, the service's own first."""
        root = self.root
        own = [ResourceText(root.path or "(service)", root.text, os.environ)] if root.text else []
        # Files are the service's own: their variables are, whatever those of a config may be.
        more = (
            ResourceText(one, read_file(one), os.environ) if isinstance(one, str) else one
            for one in self.resources
        )
        return [*own, *more]

    def _apply_service_config(
        self, config: Config, permissions: ApiPermissions, chilled: bool
    ) -> Config:
        findings = list(permissions.lint_config(config))
        findings += _lint_stdin(config)
        # Chilled, a section that belongs elsewhere is left out, as Benthos leaves it out.
        findings += [] if chilled else _lint_misplaced(config)
        if SCRUBBED in config.text:
            findings.append(_unknown_secret(config.path))
        if findings:
            raise _config_error(findings, config.path)
        root = self.root
        spark = {name: root.spark[name] for name in SERVICE_SPARK_FIELDS}
        return replace(
            config,
            http=root.http,
            logger=root.logger,
            metrics=root.metrics,
            tracer=root.tracer,
            shutdown_delay=0,
            spark=ParsedFields({**config.spark, **spark}),
            secrets={**add_variable_values(root.secrets, root.inputs), **config.secrets},
        )


def _unknown_secret(name: str) -> Lint:
    message = "there is no secret to put in the place of the mark for one"
    return Lint(name, 0, 0, "not_allowed", message, "write the secret")


def _config_error(lints: Iterable[Lint], name: str) -> BadConfigError:
    """Return the error for findings; the name of the config itself is known to who asks."""
    return BadConfigError.from_lints(
        replace(lint, file="") if lint.file == name else lint for lint in lints
    )


def _explain_api_limit(lint: Lint) -> Lint:
    if "--no-impure" in lint.suggestion or "switched off here" in lint.message:
        hint = "configs that come by API may not; start the service with --allow-local"
        return replace(lint, suggestion=hint)
    return lint


def _lint_misplaced(config: Config) -> Iterator[Lint]:
    """Name sections of a stream's config that only the service's own may have."""
    root = read_yaml(Source(config.path, config.text), Findings())
    if not isinstance(root, Mapping):
        return
    for name in _SERVICE_SECTIONS:
        if name in root.entries:
            yield _misplaced_field(config, root, name, name)
    spark = root.entries["spark"][1] if "spark" in root.entries else None
    for name in SERVICE_SPARK_FIELDS:
        if isinstance(spark, Mapping) and name in spark.entries:
            yield _misplaced_field(config, spark, name, f"spark.{name}")


def _misplaced_field(config: Config, holder: Mapping, name: str, field_path: str) -> Lint:
    key = holder.entries[name][0]
    place = key.source.locate(key.start)
    return Lint(config.path, *place, "unknown_field", f"field {field_path} not recognised", _HINT)


def _lint_stdin(config: Config) -> Iterator[Lint]:
    hint = "name another input, such as http_server"
    for component in _iter_inputs(config.input, config, set()):
        if component.name == "stdin":
            message = "the input stdin is not for one of many streams: there is one for all"
            yield Lint(config.path, component.line, component.column, "not_allowed", message, hint)


def _iter_inputs(
    component: ParsedComponent, config: Config, seen: set[int]
) -> Iterator[ParsedComponent]:
    if id(component) in seen:
        return
    seen.add(id(component))
    if component.name == "resource":
        resource = config.resources.get((component.kind, str(component.config)))
        if resource is not None:
            yield from _iter_inputs(resource, config, seen)
    elif component.kind == "input":
        yield component
        for child in child_components(component):
            yield from _iter_inputs(child, config, seen)
