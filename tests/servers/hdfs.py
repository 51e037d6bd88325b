"""A real HDFS: a NameNode and a DataNode of Hadoop on loopback.

    mvn -f deploy/dev/hdfs-pom.xml dependency:copy-dependencies \\
        -DoutputDirectory="$HOME/.cache/streamer/hdfs"
"""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from streamer.spark.jars.jar_directories import user_jar_directory
from streamer.spark.jvm.gateway import spark_home
from streamer.spark.jvm.java import find_java
from tests.servers import lasting_port, running, skip_without

_SERVER = "org.apache.hadoop.hdfs.server"
_JAVA_OPTIONS = (
    *("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
)
# Of pyspark's jars, what the servers need besides their own.
_JARS = ("hadoop-client-*", "slf4j-api-*", "jcl-over-slf4j-*", "log4j-*")
_LOG = """\
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1}: %m%n
"""
_KEPT = ("PATH", "HOME", "LANG", "TZ", "TMPDIR")


@dataclass
class Hdfs:
    """A cluster that runs.

    Attributes:
        host: host and port of the NameNode.
        home: what it keeps is below it.
        processes: NameNode and DataNode.
    """

    host: str
    home: Path
    processes: list[subprocess.Popen[bytes]]

    @property
    def url(self) -> str:
        """The root of its files."""
        return f"hdfs://{self.host}"

    @property
    def client(self) -> Any:
        """A client of the suite's own."""
        from hdfs_native import Client

        return Client(self.url)

    def write(self, path: str, data: bytes) -> None:
        """Write a file."""
        from hdfs_native import WriteOptions

        with self.client.create(path, WriteOptions(overwrite=True, create_parent=True)) as file:
            file.write(data)

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        content: bytes = self.client.read(path).read()
        return content

    def names(self, path: str) -> list[str]:
        """Return the paths of the files below a directory."""
        return sorted(one.path for one in self.client.list_status(path, True) if not one.isdir)


@contextmanager
def hdfs_cluster(directory: Path) -> Iterator[Hdfs]:
    """Run a cluster of one node, whose superusers are those of the group `hdfs-admins`."""
    place = user_jar_directory(os.environ).with_name("hdfs")
    if not list(place.glob("hadoop-client-minicluster-*.jar")):
        pom = "deploy/dev/hdfs-pom.xml"
        skip_without("hdfs", f"mvn -f {pom} dependency:copy-dependencies -DoutputDirectory={place}")
    home, port, page = directory / "hdfs", lasting_port(), lasting_port()
    conf = home / "conf"
    conf.mkdir(parents=True)
    for name, properties in _sites(home, port, page).items():
        (conf / f"{name}.xml").write_text(_xml(properties))
    (conf / "log4j2.properties").write_text(_LOG)
    jars = [
        str(jar) for one in _JARS for jar in sorted(Path(spark_home(), "jars").glob(f"{one}.jar"))
    ]
    java = find_java(os.environ).home
    environ = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environ |= {"JAVA_HOME": str(java), "HADOOP_CONF_DIR": str(conf)}
    classpath = ":".join((str(conf), f"{place}/*", *jars))
    start = [
        *("env", "-i", *(f"{key}={text}" for key, text in environ.items())),
        *(str(java / "bin" / "java"), *_JAVA_OPTIONS, "-cp", classpath),
    ]
    name_node, data_node = f"{_SERVER}.namenode.NameNode", f"{_SERVER}.datanode.DataNode"
    made = subprocess.run(
        [*start, name_node, "-format", "-nonInteractive"], capture_output=True, timeout=120
    )
    assert made.returncode == 0, made.stderr.decode()
    cluster = Hdfs(f"127.0.0.1:{port}", home, [])
    with ExitStack() as stack:
        for program, is_up in ((name_node, lambda: True), (data_node, lambda: _nodes(page) == 1)):
            log = home / f"{program.rpartition('.')[2]}.log"
            cluster.processes.append(stack.enter_context(running([*start, program], log, is_up)))
        yield cluster


def _nodes(page: int) -> int:
    """Return how many DataNodes the NameNode knows; -1 when nobody answers."""
    query = "qry=Hadoop:service=NameNode,name=FSNamesystemState"
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{page}/jmx?{query}", timeout=5) as answer:
            beans = json.load(answer)["beans"]
    except OSError:
        return -1
    return int(beans[0]["NumLiveDataNodes"]) if beans else -1


def _sites(home: Path, port: int, page: int) -> dict[str, dict[str, str]]:
    node = {
        f"dfs.datanode.{part}": f"127.0.0.1:{lasting_port()}"
        for part in ("address", "http.address", "ipc.address")
    }
    return {
        "core-site": {
            "fs.defaultFS": f"hdfs://127.0.0.1:{port}",
            "hadoop.tmp.dir": str(home / "tmp"),
            "ipc.client.connect.retry.interval": "200",
        },
        "hdfs-site": {
            **node,
            "dfs.namenode.http-address": f"127.0.0.1:{page}",
            "dfs.permissions.superusergroup": "hdfs-admins",
            "dfs.replication": "1",
            "dfs.namenode.safemode.extension": "0",
            "dfs.heartbeat.interval": "1",
            "dfs.namenode.handler.count": "4",
        },
    }


def _xml(properties: dict[str, str]) -> str:
    rows = (
        f"  <property><name>{escape(name)}</name><value>{escape(text)}</value></property>\n"
        for name, text in properties.items()
    )
    return f"<configuration>\n{''.join(rows)}</configuration>\n"
