"""The jobs, each in a file of its own."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Final

from tests.jobs.job import Job


def _list_jobs() -> tuple[Job, ...]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return tuple(import_module(f"{__name__}.{name}").JOB for name in names)


JOBS: Final = _list_jobs()
