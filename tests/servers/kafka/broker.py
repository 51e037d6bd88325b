"""A broker that a test can start, kill, stop and start again where it was."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from streamer.spark.jvm.java import find_java
from tests.servers import lasting_port
from tests.servers.kafka.client import Kafka
from tests.servers.kafka.jars import broker_jars

_PATIENCE = 120.0
_CLUSTER = "c3RyZWFtZXItdGVzdHMtMQ"
_JAVA_OPTIONS = (
    *("-Xms96m", "-Xmx384m", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    *("-XX:-UsePerfData", "-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"),
)

SETTINGS: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    # One broker holds all that is kept of its own topics, in as few partitions as can be.
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # Members of a group need not be waited for, and may be given up as fast as a test wants.
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    # A broker that was killed may come back when the controller has given up the one before it.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "300",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
    "log.cleaner.threads": "1",
    "log.cleaner.dedupe.buffer.size": "4194304",
    # Tests' records are of any time: nothing goes for its age if a topic does not say so.
    "log.retention.ms": "-1",
    "log.message.timestamp.after.max.ms": "9223372036854775807",
    # What a topic may keep is looked at every second, so that tests see it go.
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "1000",
}


class Broker:
    """A broker and controller in one JVM, on loopback, in a directory of its own.

    Args:
        directory: keeps its log segments and what it prints.
        settings: lines of `server.properties` that are added or changed
            (`{"auto.create.topics.enable": "false"}`).
        listeners: further listeners, by name: the security protocol of each
            (`{"SECURE": "SASL_SSL"}`). The one called PLAINTEXT is always there.
        scram: users, as `StorageTool format --add-scram` takes them.
        java_options: further options of the JVM.
        host: where it listens.
        before: what stands before its command, so that it runs elsewhere.
        java: the program that runs it; None for the Java that Spark gets.
    """

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        listeners: Mapping[str, str] | None = None,
        scram: Sequence[str] = (),
        java_options: Sequence[str] = (),
        host: str = "127.0.0.1",
        before: Sequence[str] = (),
        java: Path | None = None,
    ) -> None:
        self.directory = directory
        self._settings = dict(settings or {})
        self._protocols = {"PLAINTEXT": "PLAINTEXT", **(listeners or {})}
        self._scram = scram
        self._java_options = java_options
        self._host, self._before, self._program = host, before, java
        self._ports = {name: lasting_port() for name in (*self._protocols, "CONTROLLER")}
        self._server: subprocess.Popen[bytes] | None = None

    def address(self, listener: str = "PLAINTEXT") -> str:
        """Return where a listener is, for clients: `127.0.0.1:port`, `localhost:port` with TLS."""
        return f"{self._named(self._protocols[listener])}:{self._ports[listener]}"

    def port_of(self, listener: str) -> int:
        """Return the port of a listener, that of controllers too (`CONTROLLER`)."""
        return self._ports[listener]

    def change_settings(self, settings: Mapping[str, str]) -> None:
        """Add settings, before it is started first."""
        self._settings |= settings

    def client(self, listener: str = "PLAINTEXT", **settings: Any) -> Kafka:
        """Return a client; `settings` are librdkafka's, with underscores for dots."""
        return Kafka(
            self.address(listener), {name.replace("_", "."): v for name, v in settings.items()}
        )

    @property
    def pid(self) -> int:
        assert self._server is not None, "the broker does not run"
        return self._server.pid

    @property
    def log(self) -> str:
        """What it printed."""
        return (self.directory / "broker.log").read_text(errors="replace")

    def start(self) -> None:
        """Start it and wait until it answers: the first time, or where it was killed."""
        assert self._server is None, "the broker runs"
        properties = self.directory / "server.properties"
        if not properties.exists():
            self._format(properties)
        with (self.directory / "broker.log").open("ab") as out:
            command = self._java("kafka.Kafka", str(properties), heap=_JAVA_OPTIONS)
            self._server = subprocess.Popen(
                [*self._before, *command], stdout=out, stderr=subprocess.STDOUT
            )
        try:
            self._wait(self._server)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """End it in order, if it runs: it hands over and writes what it has."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once, as a machine ends that loses its power."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Let it answer nobody, with its connections open, until `resume`."""
        os.kill(self.pid, signal.SIGSTOP)
        # On a busy machine its threads go on for a while, and answer.
        until = time.monotonic() + 10
        while _has_running_threads(self.pid) and time.monotonic() < until:
            time.sleep(0.01)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def tool(self, name: str, *arguments: str) -> str:
        """Run one of Kafka's own tools, return what it prints.

        Args:
            name: the class, `org.apache.kafka.tools.consumer.group.ConsumerGroupCommand`.
            arguments: its arguments; `--bootstrap-server` is added.
        """
        command = self._java(name, "--bootstrap-server", self.address(), *arguments)
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
        assert ran.returncode == 0, f"{name} {arguments}: {ran.stdout}{ran.stderr}"
        return ran.stdout

    def lag(self, group: str) -> dict[tuple[str, int], tuple[int, int, int]]:
        """Return what `kafka-consumer-groups --describe` says of a group.

        Returns:
            For a topic and partition: the group's offset, the end of the log, the lag.
        """
        tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
        rows = [
            line.split() for line in self.tool(tool, "--describe", "--group", group).split("\n")
        ]
        return {
            (row[1], int(row[2])): (int(row[3]), int(row[4]), int(row[5]))
            for row in rows
            if row[:1] == [group]
        }

    def __enter__(self) -> Broker:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None
    ) -> None:
        # Nobody needs what it has, and in order it takes a second.
        self.kill()
        shutil.rmtree(self.directory / "log", ignore_errors=True)

    def _named(self, protocol: str) -> str:
        return "localhost" if protocol.endswith("SSL") else self._host

    def _wait(self, server: subprocess.Popen[bytes]) -> None:
        client, until = self.client(), time.monotonic() + _PATIENCE
        while not client.answers():
            assert server.poll() is None, f"the broker ended: {self.log}"
            assert time.monotonic() < until, f"the broker is not up: {self.log}"
            time.sleep(0.05)

    def _end(self, by: signal.Signals) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        if by is not signal.SIGKILL:
            server.send_signal(signal.SIGCONT)  # a paused one would not see it
        server.send_signal(by)
        try:
            server.wait(_PATIENCE)
        finally:
            server.kill()

    def _java(
        self, program: str, *arguments: str, heap: Sequence[str] = ("-Xmx128m",)
    ) -> list[str]:
        java = self._program or find_java(os.environ).home / "bin" / "java"
        options = [*_JAVA_OPTIONS[2:], *heap, *self._java_options]
        return [str(java), *options, "-cp", f"{broker_jars()}/*", program, *arguments]

    def _format(self, properties: Path) -> None:
        """Write the settings, and the cluster's id into its empty directory."""
        protocols = {**self._protocols, "CONTROLLER": "PLAINTEXT"}
        listeners = [
            f"{name}://{self._named(protocols[name])}:{port}" for name, port in self._ports.items()
        ]
        lines = {
            **SETTINGS,
            "listeners": ",".join(listeners),
            "advertised.listeners": ",".join(listeners[:-1]),
            "listener.security.protocol.map": ",".join(f"{a}:{b}" for a, b in protocols.items()),
            "controller.quorum.voters": f"1@{self._host}:{self._ports['CONTROLLER']}",
            "log.dirs": str(self.directory / "log"),
            **self._settings,
        }
        escaped = {name: value.replace("\\", "\\\\") for name, value in lines.items()}
        text = "".join(f"{name}={value}\n" for name, value in escaped.items())
        properties.write_text(text)
        users = [word for user in self._scram for word in ("--add-scram", user)]
        format_it = ["format", "-t", _CLUSTER, "-c", str(properties), *users]
        made = subprocess.run(
            self._java("kafka.tools.StorageTool", *format_it), capture_output=True, text=True
        )
        if made.returncode:
            properties.unlink()
            raise AssertionError(f"the broker's directory: {made.stdout}{made.stderr}")


def _has_running_threads(pid: int) -> bool:
    """Return whether a thread of a process is not stopped; only Linux says so."""
    states = (path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat"))
    return any(state.rpartition(")")[2].split()[0] != "T" for state in states)
