"""Many files linted in one go, by several processes when they are worth their start."""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streamer.bloblang import forbid_impure
from streamer.config import LintOptions, lint_config
from streamer.core.errors import Lint, StreamerError

_FILES_PER_PROCESS: Final = 100
"""Files: what a process lints in the time that it takes to start and to send its findings."""
_FILES_PER_CHUNK: Final = 16


@dataclass(frozen=True, slots=True)
class LintJob:
    """Settings of linting files.

    Attributes:
        options: what to look for.
        resources: files with further resources.
        impure: whether mappings may use impure functions.
    """

    options: LintOptions
    resources: tuple[str, ...] = ()
    impure: bool = True

    def lint(self, file: str) -> tuple[Lint, ...]:
        """Return everything that is wrong with one file, and with the resources for it."""
        with forbid_impure(not self.impure):
            others = tuple(path for path in self.resources if path != file)
            try:
                return lint_config(file, options=self.options, resources=others)
            except StreamerError:
                raise
            except Exception as e:  # whatever one file breaks must not lose what others have
                return (_report_fault(file, e),)


def _report_fault(file: str, error: Exception) -> Lint:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    place = traceback.extract_tb(error.__traceback__)[-1]
    message = f"lint broke down over this file: {text} ({Path(place.filename).name}:{place.lineno})"
    hint = "this is a bug in the program; report it, with the file"
    return Lint(file, 1, 1, "lint_fault", message, hint)


def lint_files(files: Sequence[str], job: LintJob) -> Iterator[tuple[str, tuple[Lint, ...]]]:
    """Return each file with its findings, in order.

    What is wrong with files of resources is found with every config that uses them. It is said
    once, of the file that it stands in.
    """
    results = _lint_each(files, job)
    return _group_by_file(dict(results)) if job.resources else results


def _group_by_file(
    results: dict[str, tuple[Lint, ...]],
) -> Iterator[tuple[str, tuple[Lint, ...]]]:
    by_file: dict[str, dict[tuple[int, int, str], Lint]] = {file: {} for file in results}
    for file, lints in results.items():
        for lint in lints:
            # What is suggested may depend on what the file is read as.
            key = (lint.line, lint.column, lint.message)
            by_file.get(lint.file, by_file[file]).setdefault(key, lint)
    for file, lints_by_key in by_file.items():
        yield file, tuple(lints_by_key[key] for key in sorted(lints_by_key))


def _lint_each(files: Sequence[str], job: LintJob) -> Iterator[tuple[str, tuple[Lint, ...]]]:
    processes = min(_count_cores(), len(files) // _FILES_PER_PROCESS)
    # Only a forked process has what this one has imported already. Where other threads run, one of
    # them may hold a lock at that moment, which in the child nobody would ever release.
    if processes < 2 or not hasattr(os, "fork") or threading.active_count() > 1:
        yield from ((file, job.lint(file)) for file in files)
        return
    import multiprocessing

    # A pool ends its processes by SIGTERM, which a program that runs a stream has taken over.
    context = multiprocessing.get_context("fork")
    with context.Pool(processes, signal.signal, (signal.SIGTERM, signal.SIG_DFL)) as pool:
        yield from zip(files, pool.imap(job.lint, files, _FILES_PER_CHUNK), strict=True)


def _count_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
