"""A ClickHouse server: Debian's, version 18.16."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers import free_port, installed, listens, running

_CONFIG = """\
<yandex>
  <logger><level>warning</level><console>1</console></logger>
  <listen_host>127.0.0.1</listen_host>
  <tcp_port>{port}</tcp_port>
  <path>{directory}/data/</path>
  <tmp_path>{directory}/tmp/</tmp_path>
  <users_config>{directory}/users.xml</users_config>
  <default_profile>default</default_profile>
  <default_database>default</default_database>
  <mark_cache_size>1048576</mark_cache_size>
</yandex>
"""
_USERS = """\
<yandex>
  <profiles><default></default></profiles>
  <quotas><default></default></quotas>
  <users><streamer>
    <password>secret</password>
    <networks><ip>127.0.0.1</ip></networks>
    <profile>default</profile>
    <quota>default</quota>
  </streamer></users>
</yandex>
"""


@contextmanager
def clickhouse_server(directory: Path, port: int = 0) -> Iterator[str]:
    """Run one on what the directory has; give its DSN, as Go's driver has it."""
    program = installed("clickhouse-server", "clickhouse-server", "/usr/sbin/clickhouse-server")
    port = port or free_port()
    for name in ("data", "tmp"):
        (directory / name).mkdir(exist_ok=True)
    (directory / "config.xml").write_text(_CONFIG.format(port=port, directory=directory))
    (directory / "users.xml").write_text(_USERS)
    command = [program, f"--config-file={directory}/config.xml"]
    with running(command, directory / "log", lambda: listens(port)):
        yield f"clickhouse://streamer:secret@127.0.0.1:{port}/default"
