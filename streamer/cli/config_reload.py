"""`streamer -c config.yaml --watcher`: the stream goes on with what its files become."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Any

from streamer.bloblang import nest_inputs
from streamer.cli.options import Options
from streamer.config import Config, load_config
from streamer.config.templates.installation import install_templates
from streamer.config.templates.template import INSTALLED_TEMPLATES
from streamer.core.errors import ConfigError, Lint, StreamerError
from streamer.core.log_format import LogLine
from streamer.plan.change_impact import Change, ChangeImpact, Effect, judge
from streamer.service.run.file_watcher import Changes, FileWatcher
from streamer.service.run.import_changes import with_import_changes
from streamer.service.run.revision_switch import DrainInterruptedError, OnReset, RevisionChange
from streamer.service.run.stream_run import StreamRun

_NAME = "config"


class ConfigReloader:
    """Watches the files of one config, and switches its stream to the config that they become."""

    def __init__(
        self,
        life: StreamRun,
        options: Options,
        log: LogLine,
        level: Callable[[], str],
        on_config: Callable[[Config], None],
    ) -> None:
        """Begin to watch.

        Args:
            life: the run.
            options: what the command line says; it has a `watch`.
            log: takes log lines.
            level: the level that is logged at.
            on_config: called with a config that runs now.
        """
        assert options.watch is not None and options.config is not None
        self._life = life
        self._options = options
        self._watch = options.watch
        self._log = log
        self._level = level
        self._on_config = on_config
        self._templates = [template.file for template in INSTALLED_TEMPLATES.get({}).values()]
        # What a config has read that cannot run is watched, too: it may be what is to be mended.
        self._inputs = nest_inputs()
        self._changed = threading.Event()
        self._files: frozenset[str] = frozenset()
        self._watcher = FileWatcher(self._list_files, self._on_change)
        # Spark takes a while to start, and files may have changed since they were read.
        self._changed.set()

    def close(self) -> None:
        """Watch no longer."""
        self._watcher.close()

    def _list_files(self) -> Mapping[str, Iterable[str]]:
        named = [self._options.config or "", *self._options.resources, *self._templates]
        return {_NAME: [*named, *self._imported_files()]}

    def _imported_files(self) -> frozenset[str]:
        return self._life.config.inputs.files | self._inputs.files

    def _on_change(self, changes: Changes) -> None:
        self._files |= changes.files
        self._changed.set()

    def poll(self) -> None:
        """Take a change, if there is one; in the thread that polls."""
        if self._changed.is_set():
            self._changed.clear()
            files, self._files = self._files, frozenset()
            self._reload(files)

    def _reload(self, files: frozenset[str]) -> None:
        try:
            config = self._read_config()
            judgement = self._judge_change(config, files)
        except ConfigError as e:
            for lint in e.lints:
                self._log("ERROR", f"{self._refusal()}: {lint}", {"lint": str(lint)})
            return
        except StreamerError as e:
            self._log_refusal(e)
            return
        for change in judgement.changes:
            self._log("INFO", "The config has changed", _list_change_fields(change))
        if judgement.effect is None:
            if files:
                self._log("INFO", "The config's files have changed, and mean the same", {})
            return
        self._deploy(config, judgement)

    def _read_config(self) -> Config:
        options = self._options
        chilled = options.chilled is True
        report: Callable[[Lint], None] | None = self._log_lint if chilled else None
        # Templates are read when a config is, and not after.
        installed = install_templates(self._templates, report) if self._templates else nullcontext()
        with installed, self._inputs.active():
            config = load_config(
                options.config, sets=options.sets, resources=options.resources, chilled=chilled
            )
        for lint in config.lints:
            self._log_lint(lint)
        return config

    def _log_lint(self, lint: Lint) -> None:
        self._log("WARN", "Config lint error", {"lint": str(lint)})

    def _judge_change(self, config: Config, files: frozenset[str]) -> ChangeImpact:
        judgement = judge(self._life.config, config)
        return with_import_changes(judgement, self._imported_files() & files)

    def _deploy(self, config: Config, judgement: ChangeImpact) -> None:
        watch = self._watch
        on_reset = OnReset(watch.on_reset) if watch.on_reset else None
        try:
            change = RevisionChange(config, judgement, on_reset, probation=watch.probation)
            done = self._life.replace(change, self._level())
        except DrainInterruptedError as e:
            self._log("INFO", str(e), {})
            return
        except StreamerError as e:
            self._log_refusal(e)
            return
        self._on_config(config)
        if done.effect == Effect.RESTART:
            self._log("WARN", "The change is seen when the program starts anew", {})
            return
        fields: dict[str, Any] = {"effect": str(done.effect), "pause": round(done.pause, 3)}
        if done.discarded:
            fields["discarded"] = done.discarded
        self._log("INFO", "The changed config runs", fields)

    def _log_refusal(self, error: StreamerError) -> None:
        # What the API calls its parameter is an option here.
        reason = str(error).replace("on_reset=", "--on-reset ")
        self._log("ERROR", f"{self._refusal()}: {reason}", {"reason": reason})

    def _refusal(self) -> str:
        return f"Change of {self._options.config} refused; the stream goes on as it was"


def _list_change_fields(change: Change) -> dict[str, Any]:
    fields: dict[str, Any] = {"path": change.path, "effect": str(change.effect)}
    fields |= {"old": change.old} if change.old is not None else {}
    fields |= {"new": change.new} if change.new is not None else {}
    return {**fields, "note": change.note} if change.note else fields
