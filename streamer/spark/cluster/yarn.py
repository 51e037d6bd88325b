"""YARN: what a client needs to find it, and applications there, looked at and stopped."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError

from streamer.core.errors import StreamerError
from streamer.spark.cluster.standalone_master import DriverStatus, QuietJvm, root_cause

MASTER: Final = "yarn"

SETTINGS: Mapping[str, str] = {
    # A stream runs for months: what failed long ago is not counted among what may fail.
    "spark.yarn.am.attemptFailuresValidityInterval": "1h",
    "spark.executor.failuresValidityInterval": "1h",
    # The directory of a container has a path that is too long for sockets.
    "spark.python.unix.domain.socket.dir": "/tmp",
    # Before it starts Spark, a driver may have to wait until its checkpoint is free.
    "spark.yarn.am.waitTime": "10m",
}

_DIRECTORY_VARIABLES: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_SITE_FILE: Final = "yarn-site.xml"
_GATEWAY_PORT_VARIABLE: Final = "PYSPARK_GATEWAY_PORT"
"""The variable that a driver has whose JVM is YARN's application master."""

# Hadoop's own client asks for a quarter of an hour.
_TIMEOUT_SETTINGS: Final = {
    "yarn.resourcemanager.connect.max-wait.ms": "10000",
    "yarn.resourcemanager.connect.retry-interval.ms": "2000",
    "yarn.client.failover-max-attempts": "3",
    "ipc.client.connect.timeout": "5000",
    "ipc.client.connect.max.retries": "1",
    "ipc.client.connect.max.retries.on.timeouts": "1",
}
_HADOOP_PREFIX: Final = "spark.hadoop."


def check_configuration(environ: Mapping[str, str]) -> None:
    """Check that Hadoop's configuration is there, without which nobody finds YARN.

    Args:
        environ: has `HADOOP_CONF_DIR` or `YARN_CONF_DIR`.

    Raises:
        StreamerError: it is not.
    """
    if environ.get(_GATEWAY_PORT_VARIABLE):
        return
    directories = {name: environ[name] for name in _DIRECTORY_VARIABLES if environ.get(name)}
    if any((Path(place) / _SITE_FILE).is_file() for place in directories.values()):
        return
    description = " and ".join(
        f"{name} is {place}, without {_SITE_FILE}" for name, place in directories.items()
    )
    first, second = _DIRECTORY_VARIABLES
    raise StreamerError(
        f"spark.master is yarn, which takes Hadoop's configuration, and "
        f"{description or f'neither {first} nor {second} is set'}: let one of them "
        f"name the directory with {_SITE_FILE} and core-site.xml"
    )


def check_manager(jvm: Any, conf: Mapping[str, str]) -> None:
    """Check that the ResourceManager answers; it is not asked when the driver runs in YARN itself.

    Args:
        jvm: one that was started with Hadoop's configuration.
        conf: the user's Spark settings.

    Raises:
        StreamerError: it does not.
    """
    if not os.environ.get(_GATEWAY_PORT_VARIABLE):
        _connect_client(jvm, conf).stop()


def _connect_client(jvm: Any, conf: Mapping[str, str]) -> Any:
    settings = jvm.org.apache.hadoop.yarn.conf.YarnConfiguration()
    for name, text in _TIMEOUT_SETTINGS.items():
        settings.set(name, text)
    for name, text in conf.items():
        if name.startswith(_HADOOP_PREFIX):
            settings.set(name.removeprefix(_HADOOP_PREFIX), text)
    client = jvm.org.apache.hadoop.yarn.client.api.YarnClient.createYarnClient()
    client.init(settings)
    client.start()
    try:
        client.getYarnClusterMetrics()
    except Py4JJavaError as e:
        client.stop()
        at = settings.get("yarn.resourcemanager.address")
        raise StreamerError(
            f"YARN's ResourceManager does not answer at {at}: {root_cause(e)}; expected is the one "
            f"that {_SITE_FILE} names, yarn.resourcemanager.address or "
            "yarn.resourcemanager.hostname"
        ) from None
    return client


class YarnApplications(QuietJvm):
    """Applications of YARN, by their ids (`application_1767225600000_0001`)."""

    def __init__(self, conf: Mapping[str, str]) -> None:
        """Start a JVM, and find the ResourceManager.

        Args:
            conf: the user's Spark settings.

        Raises:
            NoJavaError: there is no Java.
            StreamerError: Hadoop's configuration is not there, or the ResourceManager not.
        """
        check_configuration(os.environ)
        super().__init__(os.environ)
        try:
            self._client = _connect_client(self._gateway.jvm, conf)
        except BaseException:
            self.close()
            raise

    def status(self, id: str) -> DriverStatus | None:
        """Return how an application is; None when YARN does not know it."""
        try:
            report = self._client.getApplicationReport(self._parse_id(id))
        except Py4JJavaError as e:
            if "ApplicationNotFoundException" in e.java_exception.getClass().getName():
                return None
            raise StreamerError(f"YARN does not say how {id} is: {root_cause(e)}") from None
        state = report.getYarnApplicationState().toString()
        final = report.getFinalApplicationStatus().toString()
        if state == "FINISHED" and final != "SUCCEEDED":
            state = final
        host = report.getHost()
        diagnostics = (report.getDiagnostics() or "").strip()
        return DriverStatus(
            state,
            "" if host in (None, "N/A") else str(host),
            diagnostics.partition("\n")[0] if state in ("FAILED", "KILLED") else "",
        )

    def kill(self, id: str) -> None:
        """Have an application stopped.

        Raises:
            StreamerError: YARN does not know it, or it has ended.
        """
        status = self.status(id)
        if status is None:
            raise StreamerError(f"YARN does not know {id}")
        if status.has_ended:
            raise StreamerError(f"{id} has ended before: {status.state}")
        try:
            self._client.killApplication(self._parse_id(id))
        except Py4JJavaError as e:
            raise StreamerError(f"YARN does not stop {id}: {root_cause(e)}") from None

    def _parse_id(self, id: str) -> Any:
        try:
            return self._gateway.jvm.org.apache.hadoop.yarn.api.records.ApplicationId.fromString(id)
        except Py4JJavaError:
            raise StreamerError(
                f"{id} is not an application of YARN: expected application_NUMBER_NUMBER"
            ) from None
