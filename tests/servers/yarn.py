"""A real YARN: a ResourceManager and one NodeManager on loopback, and no HDFS.

    mvn -f deploy/dev/yarn-pom.xml dependency:copy-dependencies \\
        -DoutputDirectory="$HOME/.cache/streamer/yarn"
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from streamer.spark.jars.jar_directories import user_jar_directory
from streamer.spark.jvm.gateway import spark_home
from streamer.spark.jvm.java import find_java
from tests.servers import lasting_port, running

_POM = "deploy/dev/yarn-pom.xml"
_SERVER = "org.apache.hadoop.yarn.server"
_JAVA_OPTIONS = (
    *("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
    *("--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/java.util=ALL-UNNAMED"),
)
_LOG = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""
_KEPT = ("PATH", "HOME", "LANG", "TZ", "TMPDIR")


@dataclass(frozen=True)
class Yarn:
    """A cluster that runs.

    Attributes:
        home: what it keeps is below it.
        url: of the ResourceManager's REST API.
        conf: Spark's settings for clients on this machine, which need not upload Spark's jars.
    """

    home: Path
    url: str
    conf: Mapping[str, str]

    @property
    def environ(self) -> dict[str, str]:
        """The environment in which programs find the cluster."""
        return {**os.environ, "HADOOP_CONF_DIR": str(self.home / "conf")}

    def applications(self) -> list[dict[str, Any]]:
        """Return what the ResourceManager says of its applications."""
        with urllib.request.urlopen(f"{self.url}/ws/v1/cluster/apps", timeout=10) as answer:
            found = json.load(answer)["apps"]
        return list(found["app"]) if found else []

    def written(self, application: str, stream: str) -> str:
        """Return what the drivers of an application have written to `stdout` or `stderr`."""
        files = (self.home / "logs" / application).glob(f"container_*_000001/{stream}")
        return "".join(file.read_text() for file in sorted(files))

    def containers(self) -> list[int]:
        """Return the process ids of what runs in containers, which is below its directory."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cwd"):
            try:
                if Path(os.readlink(path)).is_relative_to(self.home / "local"):
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return found

    def named(self, part: str) -> list[int]:
        """Return those of them that have a text in their command lines."""
        found = []
        for pid in self.containers():
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if part in line:
                found.append(pid)
        return found


@contextmanager
def yarn(directory: Path) -> Iterator[Yarn]:
    """Run a cluster with 7 GB of memory on one node, or skip the test and say what to fetch."""
    place = Path(
        os.environ.get("STREAMER_YARN_JARS") or user_jar_directory(os.environ).with_name("yarn")
    )
    if not list(place.glob("hadoop-yarn-server-nodemanager-*.jar")):
        pytest.skip(
            f"no YARN in {place} (fetch: mvn -f {_POM} dependency:copy-dependencies "
            f"-DoutputDirectory={place})"
        )
    home, page = directory / "yarn", lasting_port()
    conf = home / "conf"
    conf.mkdir(parents=True)
    for name, properties in _sites(home, page).items():
        (conf / f"{name}.xml").write_text(_xml(properties))
    (conf / "log4j.properties").write_text(_LOG)
    found = Yarn(
        home,
        f"http://127.0.0.1:{page}",
        {
            "spark.yarn.jars": f"local:{spark_home()}/jars/*",
            "spark.yarn.stagingDir": f"file://{home}/staging",
        },
    )
    java = find_java(os.environ).home
    # As on hosts of a cluster: what the driver's environment has is not there.
    environ = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environ |= {"JAVA_HOME": str(java), "HADOOP_CONF_DIR": str(conf)}
    classpath = f"{conf}:{place}/*"
    with ExitStack() as stack:
        for part in ("resourcemanager.ResourceManager", "nodemanager.NodeManager"):
            name = part.partition(".")[0]
            command = [
                *("env", "-i", *(f"{key}={text}" for key, text in environ.items())),
                *(str(java / "bin" / "java"), *_JAVA_OPTIONS, "-cp", classpath),
                f"{_SERVER}.{part}",
            ]

            def up(name: str = name) -> bool:
                return _nodes(found.url) >= (name == "nodemanager")

            stack.enter_context(running(command, home / f"{name}.log", up))
        try:
            yield found
        finally:
            _end(found)


def _nodes(url: str) -> int:
    """Return how many nodes run; -1 when nobody answers."""
    try:
        with urllib.request.urlopen(f"{url}/ws/v1/cluster/metrics", timeout=5) as answer:
            return int(json.load(answer)["clusterMetrics"]["activeNodes"])
    except OSError:
        return -1


def _end(cluster: Yarn) -> None:
    """Stop what still runs, so that no container outlives its NodeManager."""
    for one in cluster.applications():
        if one["state"] not in ("FINISHED", "FAILED", "KILLED"):
            asked = urllib.request.Request(
                f"{cluster.url}/ws/v1/cluster/apps/{one['id']}/state?user.name={one['user']}",
                json.dumps({"state": "KILLED"}).encode(),
                {"Content-Type": "application/json"},
                method="PUT",
            )
            urllib.request.urlopen(asked, timeout=10).close()
    until = time.monotonic() + 10
    while (left := cluster.containers()) and time.monotonic() < until:
        time.sleep(0.2)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(cluster.home / "local", ignore_errors=True)


def _sites(home: Path, page: int) -> dict[str, dict[str, str]]:
    manager = "yarn.resourcemanager"
    node = "yarn.nodemanager"
    queue = "yarn.scheduler.capacity"
    addresses = {
        f"{part}.address": f"127.0.0.1:{lasting_port()}"
        for part in (
            *(manager, f"{manager}.scheduler", f"{manager}.resource-tracker", f"{manager}.admin"),
            *(node, f"{node}.localizer", f"{node}.webapp", f"{node}.collector-service"),
        )
    }
    disks = f"{node}.disk-health-checker"
    return {
        "core-site": {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(home / "tmp")},
        "yarn-site": {
            **addresses,
            f"{manager}.webapp.address": f"127.0.0.1:{page}",
            f"{node}.resource.memory-mb": "7168",
            f"{node}.resource.cpu-vcores": "4",
            f"{node}.vmem-check-enabled": "false",
            f"{node}.pmem-check-enabled": "false",
            f"{node}.local-dirs": str(home / "local"),
            f"{node}.log-dirs": str(home / "logs"),
            f"{node}.user-home-dir": str(home / "local"),
            f"{disks}.max-disk-utilization-per-disk-percentage": "99",
            "yarn.scheduler.minimum-allocation-mb": "256",
        },
        "capacity-scheduler": {
            f"{queue}.root.queues": "default",
            f"{queue}.root.default.capacity": "100",
            f"{queue}.maximum-am-resource-percent": "1.0",
        },
    }


def _xml(properties: Mapping[str, str]) -> str:
    rows = (
        f"  <property><name>{escape(name)}</name><value>{escape(text)}</value></property>\n"
        for name, text in properties.items()
    )
    return f"<configuration>\n{''.join(rows)}</configuration>\n"
