"""Entry of a driver that a cluster's worker starts (`streamer submit`).

It is copied to where all workers can read it, and Spark calls it with the Python 3 that it finds:
nothing but the standard library is used until the program's environment is there. That is made
once in the driver's working directory. The program runs below this process, which outlives neither
Spark's nor its own end, and leaves its last words for whoever has submitted it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable

JOB_FILE = "job.json"
OUTCOME_FILE = "outcome.json"
FILES_DIRECTORY = "files"
LOG_FILE = "streamer.log"
"""Where the log is on YARN, among those of the container."""

SUBMITTED_VARIABLE = "STREAMER_SUBMITTED"
"""The variable that tells the program's process from the one that looks after it."""

_KEY_VARIABLE = "STREAMER_JOB_KEY"  # as in `sealed_variables.py`
_JOB_DIRECTORY = os.path.dirname(os.path.abspath(__file__))
# What Spark's PythonRunner says of Python, and of the way into its JVM.
_PYTHON_VARIABLES = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH")
_GATEWAY_VARIABLES = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "PYSPARK_PIN_THREAD")
_STOP_TIMEOUT_S = 60.0
"""Seconds that the program has for a clean stop once Spark's process has gone."""
_LOG_DRAIN_TIMEOUT_S = 2.0
_MAX_LAST_LINES = 20
_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Run the job that lies beside this file; return its exit code.

    A job has `arguments`, `variables` or the same `sealed`, and an `archive` or null. The key is in
    the environment of this process alone. One that runs in Spark's own JVM
    (`joins`), and not in one that it starts, as elsewhere, is on YARN: it has `beside`, which are
    variables with paths in the working directory, and `outcome`, a directory or null.
    """
    with open(os.path.join(_JOB_DIRECTORY, JOB_FILE)) as file:
        job = json.load(file)
    if SUBMITTED_VARIABLE in os.environ:
        return _invoke_command_line(job["arguments"])
    parent, outcome_directory = os.getppid(), job.get("outcome", _JOB_DIRECTORY)
    log, cache_lock = _open_log(parent, "joins" in job), None

    def write_log_line(text: str) -> None:
        with contextlib.suppress(OSError):
            os.write(log, f"{text}\n".encode())

    try:
        python = sys.executable
        if job["archive"]:
            python, cache_lock = _unpack_environment(job["archive"], write_log_line)
    except OSError as e:
        text = f"error: {os.uname().nodename} cannot unpack {job['archive']}: {e}"
        print(text, file=sys.stderr)
        _write_outcome(outcome_directory, 1, [text])
        return 1
    key, variables = os.environ.pop(_KEY_VARIABLE, ""), job.get("variables")
    if variables is None:
        # It lies beside this file, and is not to be there for the program.
        from sealed_variables import open_variables  # type: ignore[import-not-found]

        variables = open_variables(job["sealed"], key)
    left_out = _PYTHON_VARIABLES if job.get("joins") else (*_PYTHON_VARIABLES, *_GATEWAY_VARIABLES)
    environ = {name: text for name, text in os.environ.items() if name not in left_out}
    environ.setdefault("JAVA_HOME", _find_java_home(parent))
    environ.update(variables, **{SUBMITTED_VARIABLE: "1", "PYTHONUNBUFFERED": "1"})
    environ.update({name: os.path.abspath(path) for name, path in job.get("beside", {}).items()})
    inherited = () if cache_lock is None else (cache_lock,)
    code, last = _supervise_program([python, os.path.abspath(__file__)], environ, log, inherited)
    _write_outcome(outcome_directory, code, last)
    return code


def _invoke_command_line(arguments: list[str]) -> int:
    # What lies beside this file is no code. Python has followed links to it.
    del sys.path[0]
    try:
        from streamer.cli.main import invoke
    except ImportError as e:
        text = (
            f"the worker {os.uname().nodename} lacks the Python package {e.name}: let "
            "spark.environment be `packed`, or install the same version there as here"
        )
        print(f"error: {text}", file=sys.stderr)
        return 1
    return invoke(arguments)


def _unpack_environment(
    archive: str, write_log_line: Callable[[str], None]
) -> tuple[str, int | None]:
    """Return the archive's Python, unpacked, and the descriptor that keeps it in the cache."""
    own = os.path.abspath("environment")
    if "://" in archive and not os.path.isdir(own):
        packed = os.path.abspath("environment.tar.gz")
        if not os.path.exists(packed):
            draft = f"{packed}.{os.getpid()}"
            _fetch_file(archive, draft)
            os.rename(draft, packed)
        archive = packed
    if os.path.isdir(own):
        # An earlier start's, or YARN's.
        return os.path.join(own, "bin", "python3"), None
    # It lies beside this file, and is not to be there for the program.
    from environment_cache import acquire_environment  # type: ignore[import-not-found]

    place, cache_lock = acquire_environment(archive, own, dict(os.environ), write_log_line)
    return os.path.join(place, "bin", "python3"), cache_lock


def _fetch_file(url: str, to: str) -> None:
    """Copy a file by Hadoop, in the JVM that has started this process.

    Raises:
        OSError: it cannot be read.
    """
    # Spark's own, which PythonRunner puts on the path.
    from py4j.java_gateway import GatewayParameters, JavaGateway
    from py4j.protocol import Py4JJavaError

    environ = os.environ
    gateway = JavaGateway(
        gateway_parameters=GatewayParameters(
            port=int(environ["PYSPARK_GATEWAY_PORT"]), auth_token=environ["PYSPARK_GATEWAY_SECRET"]
        )
    )
    jvm = gateway.jvm
    try:
        source = jvm.org.apache.hadoop.fs.Path(url)
        system = source.getFileSystem(jvm.org.apache.spark.deploy.SparkHadoopUtil.get().conf())
        system.copyToLocalFile(source, jvm.org.apache.hadoop.fs.Path(f"file://{to}"))
    except Py4JJavaError as e:
        raise OSError(e.java_exception.toString()) from None
    finally:
        gateway.close()


def _find_java_home(parent: int) -> str:
    """Return the home of the Java that has started this process; it is the one that is there."""
    try:
        return os.path.dirname(os.path.dirname(os.readlink(f"/proc/{parent}/exe")))
    except OSError:
        return ""


def _open_log(parent: int, joins: bool) -> int:
    """Return what gets the log: PythonRunner joins both streams of this process.

    Results are not to stand among log lines, so it is the standard error of Spark's process. That
    of YARN's is a file, in which each would write over the other: there it is one beside it.
    """
    logs = os.environ.get("LOG_DIRS", "").partition(",")[0]
    try:
        if joins and logs:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            return os.open(os.path.join(logs, LOG_FILE), flags, 0o640)
        return os.open(f"/proc/{parent}/fd/2", os.O_WRONLY)
    except OSError:
        return 2


def _supervise_program(
    command: list[str], environ: dict[str, str], out: int, inherited: tuple[int, ...]
) -> tuple[int, list[str]]:
    """Run the program; return its exit code, and the last lines of its log.

    Args:
        command: what runs.
        environ: its environment.
        out: what gets the log.
        inherited: descriptors that it inherits.
    """
    child = subprocess.Popen(
        command,
        env=environ,
        cwd=os.path.join(_JOB_DIRECTORY, FILES_DIRECTORY),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=inherited,
        preexec_fn=_end_with_parent,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: child.terminate())
    threading.Thread(target=_stop_with_spark, args=(child,), daemon=True).start()
    last: deque[str] = deque(maxlen=_MAX_LAST_LINES)
    reader = threading.Thread(target=_forward_log, args=(child, out, last), daemon=True)
    reader.start()
    code = child.wait()
    # Somebody whom the program has started may still hold the other end.
    reader.join(_LOG_DRAIN_TIMEOUT_S)
    return code if code >= 0 else 128 - code, list(last)


def _end_with_parent() -> None:
    """In the program's process: end it with this one, which nobody can do after a kill -9."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _stop_with_spark(child: subprocess.Popen[bytes]) -> None:
    # Spark's process holds the other end, and writes nothing.
    while os.read(0, 65536):
        pass
    child.terminate()
    try:
        child.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        child.kill()


def _forward_log(child: subprocess.Popen[bytes], out: int, last: deque[str]) -> None:
    """Pass on the log, and keep its last lines."""
    assert child.stderr is not None
    for line in child.stderr:
        last.append(line.decode(errors="replace").rstrip("\n"))
        try:
            os.write(out, line)
        except OSError:
            continue  # the worker has gone; the program is being stopped


def _write_outcome(directory: str | None, code: int, last: list[str]) -> None:
    """Leave the exit code and the last lines in a directory, if that can be written."""
    if directory is None:
        return
    path = os.path.join(directory, OUTCOME_FILE)
    try:
        with open(f"{path}.new", "w") as file:
            json.dump({"code": code, "host": os.uname().nodename, "last": last}, file)
        os.replace(f"{path}.new", path)
    except OSError:
        return


if __name__ == "__main__":
    sys.exit(main())
