"""Spark's own `spark-submit`, for managers of clusters that start drivers in Python."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from streamer.core.errors import StreamerError


def spark_submit(
    master: str, name: str, conf: Mapping[str, str], program: list[str], settings: Path
) -> str:
    """Submit a driver to its cluster; return what Spark says.

    Args:
        master: the manager's URL.
        name: what the application is called.
        conf: Spark's settings. No command line has them: some are secret.
        program: a Python file, and the arguments of the program.
        settings: the directory that Spark takes for that of its settings.

    Raises:
        NoJavaError: there is no Java.
        StreamerError: it fails; the text has its reason.
    """
    from streamer.spark.jvm.gateway import spark_home
    from streamer.spark.jvm.java import find_java
    from streamer.spark.session.session_start import JAVA_OPTIONS

    own = conf.get("spark.driver.extraJavaOptions", "")
    options = " ".join(filter(None, [*JAVA_OPTIONS, own]))
    lines = {**conf, "spark.driver.extraJavaOptions": options}
    home = spark_home()
    with tempfile.NamedTemporaryFile("w", prefix="streamer-submit-", suffix=".conf") as properties:
        properties.writelines(f"{key} {_escape_value(text)}\n" for key, text in lines.items())
        properties.flush()
        done = subprocess.run(
            [
                *(home / "bin" / "spark-submit", "--master", master, "--deploy-mode", "cluster"),
                *("--name", name, "--properties-file", properties.name, *program),
            ],
            env={
                **os.environ,
                "SPARK_HOME": str(home),
                "SPARK_CONF_DIR": str(settings),
                "JAVA_HOME": str(find_java(os.environ).home),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    output = done.stdout + done.stderr
    if done.returncode:
        raise StreamerError(f"the cluster does not take the driver: {_find_cause(output)}")
    return output


def _escape_value(text: str) -> str:
    """Return a value as a file of properties has it."""
    text = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"\\{text}" if text.startswith(" ") else text


def _find_cause(text: str) -> str:
    """Return the deepest cause that Java tells of."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    thrown = [line for line in lines if "Exception" in line and not line.startswith("at ")]
    return (causes or thrown or lines or ["spark-submit did not say why"])[-1]
