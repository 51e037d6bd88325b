"""A real Cassandra: one node on loopback, whose superuser is `cassandra` with the same password.

    mvn -f deploy/dev/cassandra-pom.xml dependency:copy-dependencies \\
        -DoutputDirectory="$HOME/.cache/streamer/cassandra"
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamer.spark.jars.jar_directories import user_jar_directory
from tests.servers import installed, lasting_port, running, skip_without

_DAEMON = "org.apache.cassandra.service.CassandraDaemon"
_IS_UP = "Created default superuser role"
_IS_BACK = "Startup complete"
_SETTINGS = """\
cluster_name: tests
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
authenticator: PasswordAuthenticator
commitlog_sync: batch
commitlog_segment_size: 4MiB
memtable_heap_space: 64MiB
memtable_offheap_space: 64MiB
concurrent_reads: 4
concurrent_writes: 4
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
native_transport_port: {port}
storage_port: {storage_port}
data_file_directories: [{home}/data]
commitlog_directory: {home}/commitlog
saved_caches_directory: {home}/caches
hints_directory: {home}/hints
cdc_raw_directory: {home}/cdc
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{{ seeds: "127.0.0.1:{storage_port}" }}]
"""
_LOG = """\
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %p %c{1}: %m%n</pattern></encoder>
  </appender>
  <TOP level="INFO"><appender-ref ref="out"/></TOP>
</configuration>
"""
_OPENED = (
    *("java.base/java.io", "java.base/java.lang", "java.base/java.lang.module"),
    *("java.base/java.lang.ref", "java.base/java.lang.reflect", "java.base/java.math"),
    *("java.base/java.net", "java.base/java.nio", "java.base/java.nio.charset"),
    *("java.base/java.util", "java.base/java.util.concurrent"),
    *("java.base/java.util.concurrent.atomic", "java.base/jdk.internal.loader"),
    *("java.base/jdk.internal.math", "java.base/jdk.internal.misc"),
    *("java.base/jdk.internal.module", "java.base/jdk.internal.ref"),
    *("java.base/jdk.internal.reflect", "java.base/jdk.internal.util.jar"),
    *("java.base/sun.nio.ch", "java.rmi/sun.rmi.registry", "java.rmi/sun.rmi.server"),
    *("java.rmi/sun.rmi.transport.tcp", "java.management/com.sun.jmx.mbeanserver"),
    *("java.management.rmi/javax.management.remote.rmi", "java.sql/java.sql"),
    *("java.logging/java.util.logging", "jdk.management/com.sun.management.internal"),
)


@contextmanager
def cassandra_server(directory: Path, port: int | None = None) -> Iterator[int]:
    """Run one; give its port. It is killed at the end, and keeps what was written.

    Args:
        directory: for what it keeps, which a later one finds again.
        port: where it listens; one of its own when None.
    """
    place = user_jar_directory(os.environ).with_name("cassandra")
    if not list(place.glob("cassandra-all-*.jar")):
        pom = "deploy/dev/cassandra-pom.xml"
        how = f"mvn -f {pom} dependency:copy-dependencies -DoutputDirectory={place}"
        skip_without("cassandra", how)
    java = installed("openjdk-17-jre-headless", "java17", "/usr/lib/jvm/java-17-*/bin/java")
    port = port or lasting_port()
    is_new = not (directory / "data").exists()
    text = _SETTINGS.format(port=port, storage_port=lasting_port(), home=directory)
    (directory / "cassandra.yaml").write_text(text)
    (directory / "logback.xml").write_text(_LOG.replace("TOP", "root"))
    opened = [f"--add-{what}={one}=ALL-UNNAMED" for one in _OPENED for what in ("opens", "exports")]
    (agent,) = place.glob("jamm-*.jar")
    properties = {
        "cassandra.config": f"file://{directory}/cassandra.yaml",
        "cassandra.storagedir": directory,
        "cassandra-foreground": "yes",
        "cassandra.initial_token": 0,
        "cassandra.ring_delay_ms": 100,
        "cassandra.skip_wait_for_gossip_to_settle": 0,
        "cassandra.superuser_setup_delay_ms": 0,
        "logback.configurationFile": f"{directory}/logback.xml",
    }
    command = [
        *(java, "-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *("-Xshare:auto", "-XX:-UsePerfData", *opened, f"-javaagent:{agent}"),
        *(f"-D{name}={value}" for name, value in properties.items()),
        *("-cp", f"{place}/*", _DAEMON),
    ]
    log = directory / "cassandra.log"
    awaited = _IS_UP if is_new else _IS_BACK

    def is_up() -> bool:
        return awaited in log.read_text()

    with running(command, log, is_up, ends_at=signal.SIGKILL):
        yield port
