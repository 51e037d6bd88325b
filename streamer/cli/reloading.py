"""`streamer -c config.yaml --watcher`: the stream goes on with what its files become."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Any

from streamer.bloblang import luggage
from streamer.cli.options import Options
from streamer.config import Config, load_config
from streamer.config.templates.installed import installed
from streamer.config.templates.template import INSTALLED
from streamer.engine.delivery import LogLine
from streamer.errors import ConfigError, Lint, StreamerError
from streamer.plan import make_plan
from streamer.plan.judgement import Change, Effect, Judgement, judge
from streamer.service.imported import with_imports
from streamer.service.life import Life
from streamer.service.replacing import BrokenOffError, OnReset
from streamer.service.watcher import Changes, Watcher

_NAME = "config"


class Reloads:
    """Looks after the files of one config, and lets its stream go on with what they become."""

    def __init__(
        self,
        life: Life,
        options: Options,
        log: LogLine,
        level: Callable[[], str],
        took: Callable[[Config], None],
    ) -> None:
        """Begin to watch.

        Args:
            life: the run.
            options: what the command line says; it has a `watch`.
            log: takes log lines.
            level: the level that is logged at.
            took: hears of a config that runs now.
        """
        assert options.watch is not None and options.config is not None
        self._life = life
        self._options = options
        self._asked = options.watch
        self._log = log
        self._level = level
        self._took = took
        self._templates = [template.file for template in INSTALLED.get({}).values()]
        self._changed = threading.Event()
        self._files: frozenset[str] = frozenset()
        self._watcher = Watcher(self._mine, self._heard)
        # Spark takes a while to start, and files may have changed since they were read.
        self._changed.set()

    def close(self) -> None:
        """Watch no longer."""
        self._watcher.close()

    def _mine(self) -> Mapping[str, Iterable[str]]:
        read = [name for kind, name in luggage().read if kind == "file"]
        return {
            _NAME: [self._options.config or "", *self._options.resources, *self._templates, *read]
        }

    def _heard(self, changes: Changes) -> None:
        self._files |= changes.files
        self._changed.set()

    def look(self) -> None:
        """Take a change, if there is one; in the thread that polls."""
        if self._changed.is_set():
            self._changed.clear()
            files, self._files = self._files, frozenset()
            self._reload(files)

    def _reload(self, files: frozenset[str]) -> None:
        try:
            config = self._read()
            judgement = self._judged(config, files)
        except ConfigError as e:
            text = "The config has changed and cannot run so; the stream goes on as it is"
            for lint in e.lints:
                self._log("ERROR", text, {"lint": str(lint)})
            return
        except StreamerError as e:
            self._refused(e)
            return
        for change in judgement.changes:
            self._log("INFO", "The config has changed", _shown(change))
        if judgement.effect is None:
            if files:
                self._log("INFO", "The config's files have changed, and mean the same", {})
            return
        self._deploy(config, judgement)

    def _read(self) -> Config:
        options = self._options
        chilled = options.chilled is True
        tell: Callable[[Lint], None] | None = self._lint if chilled else None
        # Templates are read when a config is, and not after.
        with installed(self._templates, tell) if self._templates else nullcontext():
            config = load_config(
                options.config, sets=options.sets, resources=options.resources, chilled=chilled
            )
        for lint in config.lints:
            self._lint(lint)
        return config

    def _lint(self, lint: Lint) -> None:
        self._log("WARN", "Config lint error", {"lint": str(lint)})

    def _judged(self, config: Config, files: frozenset[str]) -> Judgement:
        found = judge(self._life.config, config)
        read = {name for kind, name in luggage().read if kind == "file"} & files
        return with_imports(found, read)

    def _deploy(self, config: Config, judgement: Judgement) -> None:
        asked = self._asked
        on_reset = OnReset(asked.on_reset) if asked.on_reset else None
        try:
            plan = make_plan(config, level=self._level())
            done = self._life.replace(config, plan, judgement, on_reset, probation=asked.probation)
        except BrokenOffError as e:
            self._log("INFO", str(e), {})
            return
        except StreamerError as e:
            self._refused(e)
            return
        self._took(config)
        if done.effect == Effect.RESTART:
            self._log("WARN", "The change is seen when the program starts anew", {})
            return
        fields: dict[str, Any] = {"effect": str(done.effect), "pause": round(done.pause, 3)}
        if done.discarded:
            fields["discarded"] = done.discarded
        self._log("INFO", "The changed config runs", fields)

    def _refused(self, error: StreamerError) -> None:
        text = "The changed config does not run; the stream goes on as it is"
        self._log("ERROR", text, {"reason": str(error)})


def _shown(change: Change) -> dict[str, Any]:
    fields: dict[str, Any] = {"path": change.path, "effect": str(change.effect)}
    fields |= {"old": change.old} if change.old is not None else {}
    fields |= {"new": change.new} if change.new is not None else {}
    return {**fields, "note": change.note} if change.note else fields
