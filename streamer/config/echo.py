"""A config as the program understands it: variables, `--set` and resources in, defaults filled in.

Secrets are scrubbed. What came out of an environment variable is shown as the variable, unless it
is asked for: the text stays a config that means the same, and tells nothing that the file did not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from streamer import catalog
from streamer.config.components import reserved
from streamer.config.layout import yaml_text
from streamer.config.model import Config
from streamer.config.sections import SECTIONS
from streamer.durations import format_duration
from streamer.redaction import SCRUBBED, scrub_credential, scrub_secret, scrub_urls
from streamer.spec import Field, Parsed, ParsedComponent

_AWAY: Final = object()
"""Stands for a field that is left out."""

_SURELY_A_VALUE: Final = 3
"""Characters of a variable's value that are looked for inside of texts; fewer occur by chance."""


def echo(config: Config, env: Mapping[str, str], show_env: bool = False) -> str:
    """Return a config as YAML, whole, in the order of the documentation.

    Its tests are left out.

    Args:
        config: the config.
        env: the variables that it was read with; without any, what they held is shown.
        show_env: show what variables held; secrets stay scrubbed.
    """
    return yaml_text(dict(Shown(config, {} if show_env else env).sections()))


def _values(config: Config, env: Mapping[str, str]) -> dict[str, str]:
    """Return what is shown instead of the variables' values, the longest first."""
    if not env:
        return {}
    found = {held: shown for held, shown in config.secrets.items() if shown != SCRUBBED}
    return dict(sorted(found.items(), key=lambda item: (-len(item[0]), item[1])))


class Shown:
    """What may be shown of a config: parsed values turned back into those that it would write."""

    def __init__(self, config: Config, env: Mapping[str, str]) -> None:
        """Take the config, and the variables whose values are not to be shown."""
        self._config = config
        self._hidden = _values(config, env)
        parts = [re.escape(held) for held in self._hidden if len(held) >= _SURELY_A_VALUE]
        self._inside = re.compile("|".join(parts)) if parts else None

    def sections(self) -> Iterable[tuple[str, Any]]:
        """Return the sections that the program knows, with their values."""
        config = self._config
        for section in SECTIONS:
            if section.name == "tests" or section.deprecated:
                continue
            if section.name == "pipeline":
                processors = [self.component(one) for one in config.processors]
                yield "pipeline", {"threads": config.threads, "processors": processors}
            elif section.name.endswith("_resources"):
                kind = section.name.removesuffix("_resources")
                mine = [one for (of, _), one in config.resources.items() if of == kind]
                if mine:
                    yield section.name, [self.component(one) for one in mine]
            elif (value := getattr(config, section.name, _AWAY)) is not _AWAY:
                yield section.name, self.field(section, value)

    def component(self, component: ParsedComponent) -> dict[str, Any]:
        """Return a component, with all that stands beside its name."""
        spec = catalog.spec(component.kind, component.name)
        assert spec is not None
        label = self.text(component.label)
        found: dict[str, Any] = {"label": label} if label else {}
        if spec.config is not None:
            found[component.name] = self.field(spec.config, component.config)
        else:
            found[component.name] = self._object(spec.fields, component.config)
        if component.processors and "processors" in reserved(component.kind):
            found["processors"] = [self.component(one) for one in component.processors]
        if component.mapping:
            found["mapping"] = self.text(component.mapping)
        return found

    def _object(self, fields: Iterable[Field], parsed: Parsed) -> dict[str, Any]:
        found = {}
        for field in fields:
            given = parsed.given(field.name)
            away = field.deprecated or (field.optional and parsed[field.name] is None)
            if field.name in parsed and (given or not away):
                value = parsed[field.name]
                found[field.name] = self.field(field, value)
        return found

    def field(self, field: Field, value: Any) -> Any:
        """Return the value of a field."""
        if value is None:
            return "" if field.type == "string" or field.duration else None
        if field.shape in ("array", "2darray") and isinstance(value, list | tuple):
            return [self.field(field, item) for item in value]
        if field.shape == "map" and isinstance(value, Mapping) and not isinstance(value, Parsed):
            found = {self.text(key): self._item(field, item) for key, item in value.items()}
            if not field.credentials:
                return found
            return {name: scrub_credential(name, item) for name, item in found.items()}
        return self._item(field, value)

    def _item(self, field: Field, value: Any) -> Any:
        if isinstance(value, ParsedComponent):
            return self.component(value)
        if isinstance(value, Parsed):
            return self._object(field.children, value)
        if field.duration and isinstance(value, int):
            value = format_duration(value)
        shown = self._plain(value)
        return scrub_secret(shown) if field.secret else shown

    def _plain(self, value: Any) -> Any:
        """Return a value without what variables held, and without passwords in URLs."""
        if isinstance(value, dict):
            return {self.text(str(key)): self._plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._plain(item) for item in value]
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, bool):
            return value
        return self._hidden.get(str(value), value)

    def text(self, text: str) -> str:
        """Return a text of the config without what variables held and passwords in URLs."""
        if text in self._hidden:
            return self._hidden[text]
        if self._inside is not None:
            text = self._inside.sub(lambda found: self._hidden[found[0]], text)
        return scrub_urls(text)
