"""What a worker of a cluster starts where the driver is to run (`streamer submit`).

It is copied to where all workers can read it, and Spark calls it with the Python 3 that it finds:
nothing but the standard library is used until the program's environment is there. That is made
once in the driver's working directory. The program runs below this process, which outlives neither
Spark's nor its own end, and leaves its last words for whoever has submitted it.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
from collections import deque

JOB = "job.json"
OUTCOME = "outcome.json"
FILES = "files"
INSIDE = "STREAMER_SUBMITTED"
"""The variable that tells the program's process from the one that looks after it."""

_HERE = os.path.dirname(os.path.abspath(__file__))
# What Spark's PythonRunner says: the program starts a JVM of its own, as it does everywhere.
_RUNNERS = (
    *("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "PYSPARK_PIN_THREAD"),
    *("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH"),
)
_PATIENCE = 60.0
"""Seconds that the program has for a clean stop once Spark's process has gone."""
_REST = 2.0
_LAST = 20
_DIES_WITH_ITS_PARENT = 1


def main() -> int:
    """Run the job that lies beside this file; return its exit code."""
    with open(os.path.join(_HERE, JOB)) as file:
        job = json.load(file)
    if INSIDE in os.environ:
        return _inside(job["arguments"])
    parent = os.getppid()
    try:
        python = _environment(job["archive"]) if job["archive"] else sys.executable
    except OSError as e:
        text = f"error: {os.uname().nodename} cannot unpack {job['archive']}: {e}"
        print(text, file=sys.stderr)
        _leave(1, [text])
        return 1
    environ = {name: text for name, text in os.environ.items() if name not in _RUNNERS}
    environ.setdefault("JAVA_HOME", _java(parent))
    environ.update(job["variables"], **{INSIDE: "1", "PYTHONUNBUFFERED": "1"})
    return _run([python, os.path.abspath(__file__)], environ, parent)


def _inside(arguments: list[str]) -> int:
    # What lies beside this file is no code.
    sys.path.remove(_HERE)
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


def _environment(archive: str) -> str:
    """Unpack the archive, if an earlier start has not; return its Python."""
    into = os.path.abspath("environment")
    if not os.path.isdir(into):
        draft = f"{into}.{os.getpid()}"
        shutil.rmtree(draft, ignore_errors=True)
        packed = archive
        if "://" in archive:
            packed = f"{draft}.tar.gz"
            _fetch(archive, packed)
        with tarfile.open(packed) as file:
            # It is what `streamer pack` has made. Newer ones ask to be told what to refuse.
            if hasattr(tarfile, "tar_filter"):
                file.extraction_filter = tarfile.tar_filter
            file.extractall(draft)
        if packed != archive:
            os.unlink(packed)
        os.rename(draft, into)
    return os.path.join(into, "bin", "python3")


def _fetch(url: str, to: str) -> None:
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


def _java(parent: int) -> str:
    """Return the home of the Java that has started this process; it is the one that is there."""
    try:
        return os.path.dirname(os.path.dirname(os.readlink(f"/proc/{parent}/exe")))
    except OSError:
        return ""


def _run(command: list[str], environ: dict[str, str], parent: int) -> int:
    child = subprocess.Popen(
        command,
        env=environ,
        cwd=os.path.join(_HERE, FILES),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=_bound,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: child.terminate())
    threading.Thread(target=_stop_with_spark, args=(child,), daemon=True).start()
    last: deque[str] = deque(maxlen=_LAST)
    reader = threading.Thread(target=_pass_on, args=(child, parent, last), daemon=True)
    reader.start()
    code = child.wait()
    # Somebody whom the program has started may still hold the other end.
    reader.join(_REST)
    code = code if code >= 0 else 128 - code
    _leave(code, list(last))
    return code


def _bound() -> None:
    """In the program's process: end it with this one, which nobody can do after a kill -9."""
    ctypes.CDLL(None).prctl(_DIES_WITH_ITS_PARENT, signal.SIGKILL)


def _stop_with_spark(child: subprocess.Popen[bytes]) -> None:
    # Spark's process holds the other end, and writes nothing.
    while os.read(0, 65536):
        pass
    child.terminate()
    try:
        child.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        child.kill()


def _pass_on(child: subprocess.Popen[bytes], parent: int, last: deque[str]) -> None:
    """Pass on the log, and keep its last lines."""
    assert child.stderr is not None
    # PythonRunner joins both streams of this process; results are not to stand among log lines.
    try:
        out = os.open(f"/proc/{parent}/fd/2", os.O_WRONLY)
    except OSError:
        out = 2
    for line in child.stderr:
        last.append(line.decode(errors="replace").rstrip("\n"))
        try:
            os.write(out, line)
        except OSError:
            continue  # the worker has gone; the program is being stopped


def _leave(code: int, last: list[str]) -> None:
    """Leave the exit code and the last lines where the job lies, if that can be written."""
    path = os.path.join(_HERE, OUTCOME)
    try:
        with open(f"{path}.new", "w") as file:
            json.dump({"code": code, "host": os.uname().nodename, "last": last}, file)
        os.replace(f"{path}.new", path)
    except OSError:
        return


if __name__ == "__main__":
    sys.exit(main())
