"""A REST catalog of Iceberg: the servlet of Iceberg's own tests, over a database in a file.

It runs in a Java of its own, which Py4J starts; so it listens on loopback alone, which its `main`
does not.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from streamer.spark.jars.jar_directories import user_jar_directory
from streamer.spark.jvm.java import find_java
from tests.servers import lasting_port, skip_without

_POM = "deploy/dev/iceberg-rest-pom.xml"
_JAVA_OPTIONS = [
    *("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
]


def _class_path() -> str:
    place = user_jar_directory(os.environ).with_name("iceberg-rest")
    jars = sorted(place.glob("*.jar"))
    if not any(jar.name.startswith("iceberg-core") for jar in jars):
        skip_without(
            "iceberg-rest",
            f"none in {place}; mvn -f {_POM} dependency:copy-dependencies "
            f"-DoutputDirectory={place}",
        )
    spark = Path(pyspark.__file__).parent / "jars"
    return os.pathsep.join(map(str, [*jars, *spark.glob("hadoop-client-*.jar")]))


class IcebergRest:
    """A catalog, which may be ended and started again at the same place.

    Attributes:
        url: where it is.
        warehouse: the directory of its tables.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port = lasting_port()
        self._class_path = _class_path()
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{self._port}"
        self.warehouse = directory / "rest-warehouse"

    def start(self) -> None:
        """Run it; what it knows of tables is that of the run before."""
        port, self._process = launch_gateway(
            classpath=self._class_path,
            javaopts=_JAVA_OPTIONS,
            java_path=str(find_java(os.environ).home / "bin" / "java"),
            die_on_exit=True,
            return_proc=True,
        )
        parameters = GatewayParameters(port=port, auto_convert=True)
        gateway = JavaGateway(gateway_parameters=parameters)
        jvm: Any = gateway.jvm
        properties = {
            "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            "uri": f"jdbc:sqlite:{self._directory}/rest.db",
            "jdbc.schema-version": "V1",
            "warehouse": str(self.warehouse),
        }
        iceberg, jetty = jvm.org.apache.iceberg, jvm.org.eclipse.jetty
        catalog = iceberg.CatalogUtil.buildIcebergCatalog(
            "rest", properties, jvm.org.apache.hadoop.conf.Configuration()
        )
        servlet = iceberg.rest.RESTCatalogServlet(iceberg.rest.RESTCatalogAdapter(catalog))
        handler = jetty.ee10.servlet.ServletContextHandler(0)
        handler.addServlet(jetty.ee10.servlet.ServletHolder(servlet), "/*")
        server = jetty.server.Server(jvm.java.net.InetSocketAddress("127.0.0.1", self._port))
        server.setHandler(handler)
        server.start()
        gateway.close()

    def kill(self) -> None:
        """End it at once, as a crash of its machine does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def iceberg_rest(directory: Path) -> Iterator[IcebergRest]:
    """Run one until the block ends."""
    catalog = IcebergRest(directory)
    try:
        catalog.start()
        yield catalog
    finally:
        catalog.kill()
