"""A config as the program understands it: variables, `--set` and resources in, defaults filled in.

Secrets are scrubbed. What came out of an environment variable is shown as the variable, unless it
is asked for: the text stays a config that means the same, and tells nothing that the file did not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from streamer.components import catalog
from streamer.config.components import list_reserved_fields
from streamer.config.model import Config
from streamer.config.secrets import list_references, name_secrets
from streamer.config.sections import SECTIONS
from streamer.config.yaml_writer import format_yaml
from streamer.core.durations import format_duration
from streamer.core.redaction import SCRUBBED, redact_credential, redact_secret, redact_urls
from streamer.core.secret_reference import SecretReference
from streamer.sdk.spec import Field, ParsedComponent, ParsedFields

_ABSENT: Final = object()
"""Stands for a field that is left out."""

_MIN_SEARCHED_CHARS: Final = 3
"""Characters of a variable's value that are looked for inside of texts; fewer occur by chance."""


def echo_config(config: Config, env: Mapping[str, str], show_env: bool = False) -> str:
    """Return a config as YAML, whole, in the order of the documentation.

    Its tests are left out.

    Args:
        config: the config.
        env: the variables that it was read with; without any, what they held is shown, but for
            secrets.
        show_env: show what variables held; secrets stay scrubbed.
    """
    return format_yaml(dict(ConfigRedactor(config, {} if show_env else env).redact_sections()))


def _map_hidden_values(config: Config, env: Mapping[str, str]) -> dict[str, str]:
    """Return what is shown instead of the variables' values, the longest first."""
    replacements = {
        value: str(shown)
        for value, shown in config.secrets.items()
        if isinstance(shown, SecretReference) or (env and shown != SCRUBBED)
    }
    return dict(sorted(replacements.items(), key=lambda item: (-len(item[0]), item[1])))


class ConfigRedactor:
    """A config that may be shown: parsed values turned back into those of the file."""

    def __init__(self, config: Config, env: Mapping[str, str]) -> None:
        """Take the config, and the variables whose values are not to be shown."""
        self._config = config
        self._replacements = _map_hidden_values(config, env)
        self._references = list_references(config)
        parts = [
            re.escape(value) for value in self._replacements if len(value) >= _MIN_SEARCHED_CHARS
        ]
        self._pattern = re.compile("|".join(parts)) if parts else None

    def redact_sections(self) -> Iterable[tuple[str, Any]]:
        """Return the sections that the program knows, with their values."""
        config = self._config
        for section in SECTIONS:
            if section.name == "tests" or section.deprecated:
                continue
            if section.name in ("buffer", "pipeline", "buffers") and (
                bool(config.buffers) != (section.name == "buffers")
            ):
                continue
            if section.name == "pipeline":
                processors = [self.redact_component(one) for one in config.processors]
                yield "pipeline", {"threads": config.threads, "processors": processors}
            elif section.name.endswith("_resources"):
                kind = section.name.removesuffix("_resources")
                mine = [one for (of, _), one in config.resources.items() if of == kind]
                if mine:
                    yield section.name, [self.redact_component(one) for one in mine]
            elif (value := getattr(config, section.name, _ABSENT)) is not _ABSENT and (
                value is not None or not section.optional
            ):
                yield section.name, self.redact_field(section, value)

    def redact_component(self, component: ParsedComponent) -> dict[str, Any]:
        """Return a component, with all that stands beside its name."""
        spec = catalog.find_spec(component.kind, component.name)
        assert spec is not None
        label = self.redact_text(component.label)
        document: dict[str, Any] = {"label": label} if label else {}
        if spec.config is not None:
            document[component.name] = self.redact_field(spec.config, component.config)
        else:
            document[component.name] = self._redact_object(spec.fields, component.config)
        if component.processors and "processors" in list_reserved_fields(component.kind):
            document["processors"] = [self.redact_component(one) for one in component.processors]
        if component.place is not None:
            place = component.place
            document |= {"from": self.redact_text(place.source)} if place.source else {}
            processors = [self.redact_component(one) for one in place.processors]
            document["pipeline"] = {"processors": processors}
            if place.output is not None:
                document["output"] = self.redact_component(place.output)
        if component.mapping:
            document["mapping"] = self.redact_text(component.mapping)
        return document

    def _redact_object(self, fields: Iterable[Field], parsed: ParsedFields) -> dict[str, Any]:
        document = {}
        for field in fields:
            given = parsed.is_given(field.name)
            is_left_out = field.deprecated or (field.optional and parsed[field.name] is None)
            if field.name in parsed and (given or not is_left_out):
                value = parsed[field.name]
                document[field.name] = self.redact_field(field, value)
        return document

    def redact_field(self, field: Field, value: Any) -> Any:
        """Return the value of a field."""
        if value is None:
            return "" if field.type == "string" or field.duration else None
        if field.shape in ("array", "2darray") and isinstance(value, list | tuple):
            return [self.redact_field(field, item) for item in value]
        if (
            field.shape == "map"
            and isinstance(value, Mapping)
            and not isinstance(value, ParsedFields)
        ):
            values = {
                self.redact_text(key): self._redact_item(field, item) for key, item in value.items()
            }
            if not field.credentials:
                return values
            return {name: redact_credential(name, item) for name, item in values.items()}
        return self._redact_item(field, value)

    def _redact_item(self, field: Field, value: Any) -> Any:
        if isinstance(value, ParsedComponent):
            return self.redact_component(value)
        if isinstance(value, ParsedFields):
            return self._redact_object(field.children, value)
        if field.duration and isinstance(value, int):
            value = format_duration(value)
        shown = self._redact_value(value)
        return redact_secret(shown) if field.secret else shown

    def _redact_value(self, value: Any) -> Any:
        """Return a value without what variables held, and without passwords in URLs."""
        if isinstance(value, dict):
            return {
                self.redact_text(str(key)): self._redact_value(item) for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._redact_value(item) for item in value]
        if isinstance(value, str):
            return str(self.redact_text(value))
        if value is None or isinstance(value, bool):
            return value
        return self._replacements.get(str(value), value)

    def name_secrets(self, text: str) -> str:
        """Return a text with references in the place of the secrets that they stand for."""
        return str(name_secrets(text, self._references))

    def redact_text(self, text: str) -> str:
        """Return a text of the config without what variables held and passwords in URLs."""
        if text in self._replacements:
            return self._replacements[text]
        if self._pattern is not None:
            text = self._pattern.sub(lambda match: self._replacements[match[0]], text)
        return redact_urls(text)
