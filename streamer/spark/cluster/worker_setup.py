"""A cluster's workers: how this program gets to them.

The JVM of the driver and those of the executors start Python by the same name. It is that of a
script: on an executor one that finds the environment in its host's cache, or unpacks it there
(`streamer.spark.worker_archive.environment_cache`), and on the driver one in a directory of ours,
from which its JVM is started. On YARN, which unpacks archives once for a node, it is in the archive
itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.spark.jvm.launchers import write_launcher
from streamer.spark.worker_archive import environment_cache, find_or_pack
from streamer.spark.worker_archive.archive import (
    ARCHIVE_PYTHON,
    ENVIRONMENT_DIRECTORY,
    LOCAL_SCHEME,
    WORKER_PYTHON,
    worker_launcher_script,
)
from streamer.spark.worker_archive.environment_cache import archive_key

ENVIRONMENT_SETTING: Final = "spark.streamer.environment"
"""The setting that carries `spark.environment` to here."""

REQUIREMENTS_SETTING: Final = "spark.streamer.requirements"
"""The setting with the packages that code of configs needs, as JSON."""

YARN: Final = "yarn"

DIRECTORY_VARIABLE: Final = "STREAMER_DIRECTORY"
"""The variable that tells the driver's Python where the program was started."""

SETTINGS: Mapping[str, str] = {
    # A task that is run twice at once would send twice what it sends.
    "spark.speculation": "false",
    # Workers that stop for good hand what others still need of a shuffle to those that stay.
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.enabled": "true",
    "spark.storage.decommission.shuffleBlocks.enabled": "true",
    # One that waits for a task that hangs would never end, and so nor would its machine.
    "spark.executor.decommission.forceKillTimeout": "60s",
    # An executor that sends nothing is given up after 35 to 40 s, and others do its tasks; by
    # default it takes two to three minutes. A network that is cut for 20 s costs no executor: TCP
    # tries again ever more seldom, and what was lost comes up to 31 s after the cut. Collecting
    # garbage in heaps of several GB takes a few seconds.
    "spark.network.timeout": "35s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "5s",
    # What was shuffled is asked for twice, of a host that takes connections and does not answer:
    # 33 s, until it is given up anyway. Four times, as by default, hold a micro-batch for longer.
    "spark.shuffle.io.connectionTimeout": "15s",
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "3s",
    # Tasks go back to where their state is: to the executor whose disk is full, until the
    # micro-batch has failed. After two failures there they run elsewhere; an executor where four
    # have failed gets none for five minutes. It is not killed: on the same disk none would start.
    "spark.excludeOnFailure.enabled": "true",
    "spark.excludeOnFailure.timeout": "5m",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerExecutor": "2",
    "spark.excludeOnFailure.application.maxFailedTasksPerExecutor": "4",
    # Several executors of one host may be all that there are.
    "spark.excludeOnFailure.task.maxTaskAttemptsPerNode": "3",
    "spark.excludeOnFailure.stage.maxFailedExecutorsPerNode": "1000",
    "spark.excludeOnFailure.application.maxFailedExecutorsPerNode": "1000",
    # Where no executor may take a task, one is replaced; if that takes longer, the micro-batch
    # fails and is tried again, which says so in the log.
    "spark.scheduler.excludeOnFailure.unschedulableTaskSetTimeout": "30s",
    # Where executors come and go with the work (spark.dynamicAllocation.enabled), one is there
    # before the first task, and one stays: the next micro-batch would wait until it has started.
    "spark.dynamicAllocation.initialExecutors": "1",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.executor.memory": "1g",
    # What an input has received travels inside of tasks, and one message may be large; MiB.
    "spark.rpc.message.maxSize": "512",
}

_MAX_FAILURES_SETTING: Final = "spark.task.maxFailures"
_MAX_FAILURES_PER_HOST_SETTING: Final = "spark.excludeOnFailure.task.maxTaskAttemptsPerNode"

_PATH_SETTINGS: Final = ("spark.archives", "spark.files", "spark.jars", "spark.submit.pyFiles")

_DRIVER_LAUNCHER_SCRIPT: Final = """#!/bin/sh
# The driver's own Python, under the name that executors know theirs by.
cd "${{{directory}:?}}" || exit
export PYTHONPATH={path}
# In a service, most are forked from one that has imported all
# (`streamer.spark.fork_server.fork_server`).
if [ -n "$STREAMER_FORKS" ]; then exec {python} -E -S {client} "$@"; fi
exec {python} "$@"
"""


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """Settings by which workers start Python.

    Attributes:
        python: the name of the interpreter.
        directory: where the driver's JVM is started; None for where the program was.
        settings: Spark's, which bring it there.
    """

    python: str
    directory: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


def with_default_settings(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the user's Spark settings, and those of ours that they leave to us.

    Args:
        conf: the user's.
    """
    merged = {**SETTINGS, **conf}
    attempts = conf.get(_MAX_FAILURES_SETTING, "").strip()
    if attempts.isdecimal() and int(attempts) <= int(merged[_MAX_FAILURES_PER_HOST_SETTING]):
        # With so few attempts Spark would refuse to pass executors over.
        merged = {**merged, "spark.excludeOnFailure.enabled": "false", **conf}
    return merged


def prepare_worker_setup(conf: Mapping[str, str], log: LogLine, master: str) -> WorkerSetup:
    """Decide how workers get this program.

    Args:
        conf: the user's Spark settings; `ENVIRONMENT` is `packed`, `installed`, or an archive that
            `streamer pack` has made: a path here, one that workers have (`local:/path`), or a URL
            that executors can read.
        log: called with what takes its time.
        master: Spark's master URL.

    Raises:
        StreamerError: the environment cannot be packed, or the archive is not there.
    """
    environment = conf.get(ENVIRONMENT_SETTING, "packed")
    if environment == "installed":
        # As Spark names it; without a name, the one on the workers' PATH.
        return WorkerSetup(conf.get("spark.pyspark.python", "python3"))
    if environment == "packed":
        cache = cache_directory(os.environ)
        try:
            requirements = json.loads(conf.get(REQUIREMENTS_SETTING, "[]"))
            archive = str(find_or_pack(cache, lambda text: log("INFO", text, {}), requirements))
        except OSError as e:
            raise StreamerError(
                f"the workers' environment cannot be written to {cache}: {e}; make room there, or "
                "set spark.environment to an archive of `streamer pack`, or to `installed`"
            ) from None
    else:
        archive = _resolve_archive(environment)
    if master == YARN and not archive.startswith(LOCAL_SCHEME):
        # YARN brings it to a node once, before executors start.
        setting = "spark.yarn.dist.archives"
        shipped, python = [f"{archive}#{ENVIRONMENT_DIRECTORY}"], ARCHIVE_PYTHON
    else:
        setting = "spark.yarn.dist.files" if master == YARN else "spark.files"
        shipped, python = _write_worker_launcher(archive), f"./{WORKER_PYTHON}"
    user_files = [text for text in conf.get(setting, "").split(",") if text]
    files = ",".join([*map(_absolute_path, user_files), *shipped])
    return WorkerSetup(
        python, _write_driver_launcher(python), {**_with_absolute_paths(conf), setting: files}
    )


def _write_worker_launcher(archive: str) -> list[str]:
    """Return what Spark brings to an executor's directory, so that it starts Python there."""
    if archive.startswith(LOCAL_SCHEME):
        path = archive.removeprefix(LOCAL_SCHEME)
        visible_path, shipped = path, []
    else:
        path, visible_path, shipped = archive, archive.rpartition("/")[2], [archive]
    try:
        # Whoever knows it need not open the archive.
        key = archive_key(path) if "://" not in path and os.path.exists(path) else ""
    except OSError as e:
        raise StreamerError(f"spark.environment: {e}; make it anew with `streamer pack`") from None
    text = worker_launcher_script(sys.version_info[:2], visible_path, key)
    mark = hashlib.sha256(text.encode()).hexdigest()[:8]
    script = write_launcher(f"worker-{mark}", WORKER_PYTHON, text) / WORKER_PYTHON
    return [str(script), environment_cache.__file__, *shipped]


def cache_directory(environ: Mapping[str, str]) -> Path:
    """Return where archives that were packed are kept for this user."""
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamer"


def _resolve_archive(environment: str) -> str:
    if "://" in environment or environment.startswith(LOCAL_SCHEME):
        return environment
    path = Path(environment).expanduser().absolute()
    if not path.is_file():
        raise StreamerError(
            f"spark.environment is {environment}, and there is no such file: make it with "
            f"`streamer pack {environment}`, or set it to `packed` or `installed`"
        )
    return str(path)


def _with_absolute_paths(conf: Mapping[str, str]) -> dict[str, str]:
    """Return settings with paths, which the JVM would look for from another directory."""
    return {
        name: ",".join(map(_absolute_path, filter(None, conf[name].split(","))))
        for name in _PATH_SETTINGS
        if name in conf
    }


def _absolute_path(text: str) -> str:
    return text if "://" in text else os.path.abspath(text.strip())


def _write_driver_launcher(name: str) -> Path:
    os.environ[DIRECTORY_VARIABLE] = os.getcwd()
    path = shlex.quote(os.pathsep.join(sys.path[1:] if sys.path[0] == "" else sys.path))
    python = shlex.quote(sys.executable)
    client = shlex.quote(str(Path(__file__).parents[1] / "fork_server" / "fork_client.py"))
    text = _DRIVER_LAUNCHER_SCRIPT.format(
        directory=DIRECTORY_VARIABLE, path=path, python=python, client=client
    )
    return write_launcher("driver", name, text)
