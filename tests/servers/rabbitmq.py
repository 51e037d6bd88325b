"""A RabbitMQ broker, with a port mapper of its own."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.servers import free_port, installed, lasting_port, listens, running

_PROGRAM = "/usr/lib/rabbitmq/bin/rabbitmq-server"
_SETTINGS = """\
listeners.tcp.1 = 127.0.0.1:{port}
disk_free_limit.absolute = 10MB
max_message_size = 1000000
collect_statistics = none
"""


@contextmanager
def rabbitmq_server(
    directory: Path, port: int | None = None, plugins: Sequence[str] = ()
) -> Iterator[str]:
    """Run one; give its address. It is killed at the end, and keeps what is persistent.

    Args:
        directory: for what it keeps, which a later one finds again.
        port: where it listens; one of its own when None.
        plugins: names of plugins that it has.
    """
    installed("rabbitmq-server", "rabbitmq-server", "/usr/sbin/rabbitmq-server")
    mapper = installed("erlang-base", "epmd")
    port = port or lasting_port()
    mapper_port = free_port()
    (directory / "rabbitmq.conf").write_text(_SETTINGS.format(port=port))
    (directory / "plugins").write_text(f"[{','.join(plugins)}].\n")
    variables = {
        "HOME": directory,
        "ERL_EPMD_PORT": mapper_port,
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": "rabbit@localhost",
        "RABBITMQ_DIST_PORT": free_port(),
        "RABBITMQ_MNESIA_BASE": directory,
        "RABBITMQ_LOG_BASE": directory,
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_CONFIG_FILE": directory / "rabbitmq",
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",
        "RABBITMQ_ENABLED_PLUGINS_FILE": directory / "plugins",
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none",
        # The shell makes place for the broker itself, which then has the process id.
        "RUNNING_UNDER_SYSTEMD": "1",
    }
    command = ["env", *(f"{name}={value}" for name, value in variables.items()), _PROGRAM]
    epmd = [mapper, "-port", str(mapper_port), "-address", "127.0.0.1"]
    with (
        running(epmd, directory / "epmd.log", lambda: listens(mapper_port)),
        running(command, directory / "broker.log", lambda: listens(port), ends_at=signal.SIGKILL),
    ):
        yield f"127.0.0.1:{port}"
