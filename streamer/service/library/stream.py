"""A stream in a program: its config, its checks, its runs and its results."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from streamer.config import Config
from streamer.config.secrets import add_variable_values
from streamer.core.errors import ConfigError, StreamerError
from streamer.core.redaction import Redaction
from streamer.plan.checkpoint_dir import choose_checkpoint, default_checkpoint
from streamer.service.library.checks import Explanation, LintFindings, TestReport
from streamer.service.library.config_source import ConfigSource
from streamer.service.library.messages import SampleMessages, read_sample
from streamer.service.library.results import ResultSelection, Time, read_duration, read_time

if TYPE_CHECKING:
    from datetime import timedelta

    import pyarrow as pa

    from streamer.service.library.handle import StreamHandle
    from streamer.service.library.status import StreamStatus
    from streamer.tools.unit_tests.suite import CaseResult

_TEMPORARY: Final = "(a directory that goes with the stream object)"
_DEFAULT_LIMIT: Final = 1_000


class Stream:
    """A stream: its config and all that can be done with it. `streamer.load` makes it.

    The file of a config is read by each method, so that changes of the file count. Nothing runs
    until `run` or `start`; the other methods need no Spark. Its representation has no part of the
    config, which may have secrets.
    """

    def __init__(self, source: ConfigSource, name: str = "", checkpoint: str | None = None) -> None:
        """Take a config.

        Args:
            source: the config.
            name: the stream's; empty for that of the file.
            checkpoint: the checkpoint directory, which wins over that of the config.
        """
        self._source = source
        self._given_name, self._given_checkpoint = name, checkpoint
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    def __repr__(self) -> str:
        where = f" of {self._source.path}" if self._source.path else ""
        return f"<Stream {self.name}{where}>"

    @property
    def name(self) -> str:
        """The name of the stream: as it was given, or that of the file."""
        return self._given_name or Path(self._source.path).stem or "stream"

    @property
    def text(self) -> str:
        """The text of a config that is no file: line and column of findings are places in it."""
        return self._source.text

    def lint(self) -> LintFindings:
        """Return all findings about the config: place, text, code and remedy of each.

        Example:
            >>> import streamer
            >>> streamer.loads("input: { stdin: { codecs: lines } }").lint()
            (1,19) field codecs not recognised; did you mean codec? [unknown_field]
        """
        try:
            return LintFindings(self._source.lint())
        except ConfigError as e:
            # The findings of a file of templates.
            return LintFindings(e.lints)

    def explain(self) -> Explanation:
        """Return the plan: stages, shards, windows, and the place of each processor.

        Raises:
            ConfigError: the config has findings; the error has all of them.
            StreamerError: it cannot run.
        """
        # Imported here: lint does not need it.
        from streamer.plan import make_plan
        from streamer.plan.explain import explain

        with self._read() as config:
            plan = make_plan(config, name=self.name)
            text = explain(plan, self._find_checkpoint(config) or _TEMPORARY)
            return Explanation(_make_redaction(config).redact_text(text))

    def test(self) -> TestReport:
        """Run the unit tests of the config: those in it, and those of the file of tests beside it.

        Raises:
            ConfigError: a file of templates is wrong. Findings about the config are in the report.
        """
        from streamer.config.templates.installation import install_templates
        from streamer.tools.unit_tests.suite import find_suites, run_suite
        from streamer.tools.unit_tests.suite_environment import SuiteEnvironment

        source = self._source
        with install_templates(source.templates), source.open_file() as (path, directory):
            suites = find_suites([path])
            if not suites:
                return TestReport((), self.lint())
            results = [
                run_suite(
                    suite,
                    SuiteEnvironment(suite.config, source.resources, files_directory=directory),
                )
                for suite in suites
            ]
        cases = [case for result in results for case in result.cases]
        lints = [lint for result in results for lint in result.lints]
        if not source.path:
            # The text has no file; the one that it was read from has gone.
            cases = [_without_file(case, path) for case in cases]
            lints = [replace(lint, file="") for lint in lints]
        return TestReport(cases, lints)

    def simulate(
        self,
        messages: SampleMessages,
        *,
        clock: Time | None = None,
        step: str | timedelta | None = None,
        arrival: str = "",
        dropped: bool = False,
    ) -> pa.Table:
        """Run messages through the stream on a scripted clock, without Spark; see `simulate`.

        Raises:
            ConfigError: the config has findings; the error has all of them.
            StreamerError: a message has no form, or no time of arrival.
        """
        import time

        from streamer.engine.offline.arrival_clock import ArrivalTimes
        from streamer.engine.results.window_frame import build_window_frame
        from streamer.plan import make_plan
        from streamer.tools.simulation.simulate import DROPPED_COLUMNS, simulate_stream

        arrivals = ArrivalTimes(
            None if clock is None else read_time("clock", clock),
            None if step is None else read_duration("step", step),
            arrival,
            "arrival",
        )
        sample = read_sample(messages)
        with self._read() as config:
            plan = make_plan(config, "OFF", self.name)
            with config.inputs.active():
                outcome = simulate_stream(plan, sample, arrivals, time.time_ns)
        if dropped:
            return build_window_frame(outcome.dropped, DROPPED_COLUMNS)
        return build_window_frame(outcome.emitted)

    def start(self, *, log_level: str | None = None) -> StreamHandle:
        """Start the stream in a thread, and return a handle at once.

        All streams of a process share one Spark, which the first one starts. Outputs are written as
        by `streamer -c`; log lines go to `logging.getLogger("streamer")`.

        Args:
            log_level: the lowest level of the log; that of the config's `logger` when None.

        Raises:
            ConfigError: the config has findings; the error has all of them.
            StreamerError: it cannot run, or runs in this process already. Later errors are in the
                handle's status, and `wait` raises them.
        """
        from streamer.plan import make_plan
        from streamer.service.library.handle import StreamHandle, track_handle
        from streamer.service.library.run_thread import RunSettings, RunThread

        with self._read() as config:
            level = (log_level or config.logger["level"]).upper()
            plan = make_plan(config, level, self.name)
            redaction = _make_redaction(config)
        checkpoint = self._find_checkpoint(config) or self._make_temporary()
        settings = RunSettings(self.name, config, plan, checkpoint, level, redaction)
        thread = RunThread(settings)
        handle = StreamHandle(self, thread)
        track_handle(handle, thread)
        thread.start()
        return handle

    def run(self, timeout: float | None = None, *, log_level: str | None = None) -> StreamStatus:
        """Run the stream until its input ends, and return its last status.

        Ctrl-C stops it between two micro-batches, and is raised then.

        Args:
            timeout: seconds after which it is stopped; None for no limit.
            log_level: as of `start`.

        Raises:
            ConfigError: the config has findings; the error has all of them.
            StreamFailedError: the stream has failed.
            StreamTimeoutError: it was not over in time, and was stopped.
        """
        with self.start(log_level=log_level) as handle:
            return handle.wait(timeout)

    def results(
        self,
        *,
        key: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        all_revisions: bool = False,
        newest_first: bool = False,
        limit: int = _DEFAULT_LIMIT,
    ) -> pa.Table:
        """Return results of windows that the stream keeps, while it runs or not.

        The window buffer needs the field `retention`. The columns are those of `simulate`, and
        `revision`.

        Args:
            key: results of this key alone.
            since: windows that start at or after this time.
            until: windows that end at or before this time.
            all_revisions: all revisions of a window; else the latest one.
            newest_first: windows that end last come first.
            limit: results at most.

        Raises:
            StreamerError: the stream keeps none, or has none yet.
        """
        from streamer.service.library.results import query_results

        selection = ResultSelection(key, since, until, all_revisions, newest_first, limit)
        return query_results(self._find_results(), selection)

    def select(self, sql: str, *, limit: int = _DEFAULT_LIMIT) -> pa.Table:
        """Return the answer to a SELECT over the table `results` of the results that it keeps.

        Args:
            sql: the statement, in DuckDB's SQL.
            limit: rows at most.

        Raises:
            StreamerError: the stream keeps no results, or the statement is wrong.
        """
        from streamer.service.library.results import select_results

        return select_results(self._find_results(), sql, limit)

    def _find_results(self) -> Path:
        from streamer.engine.results.results_directory import find_results_directory

        with self._read() as config:
            checkpoint = self._find_checkpoint(config) or self._make_temporary()
            return find_results_directory(checkpoint, config, f"the stream {self.name}")

    @contextmanager
    def _read(self) -> Iterator[Config]:
        """Give the config; errors of the block have no secrets."""
        config = self._source.read()
        try:
            yield config
        except ConfigError:
            raise
        except StreamerError as e:
            text = _make_redaction(config).redact_text(str(e))
            raise StreamerError(text) from None

    def _find_checkpoint(self, config: Config) -> str | None:
        """Return the checkpoint; None for one that goes with this object."""
        named = self._given_checkpoint or config.spark["checkpoint"]
        if named or self._source.path:
            return choose_checkpoint(config, named, os.environ)
        return str(default_checkpoint(self._given_name, os.environ)) if self._given_name else None

    def _make_temporary(self) -> str:
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(
                prefix="streamer-", ignore_cleanup_errors=True
            )
        return self._temporary.name


def _without_file(case: CaseResult, path: str) -> CaseResult:
    failures = tuple(
        tuple(line._replace(text=line.text.replace(path, "")) for line in failure)
        for failure in case.failures
    )
    return replace(case, file="", failures=failures)


def _make_redaction(config: Config) -> Redaction:
    return Redaction(add_variable_values(config.secrets, config.inputs))


StreamDocument = Mapping[str, Any]
"""A config as a document: the sections of the file as dicts and lists."""
