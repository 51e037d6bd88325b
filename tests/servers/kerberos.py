"""A KDC of Kerberos, and a broker of Kafka whose clients sign in by its tickets."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.servers import free_port, installed, listens, running
from tests.servers.kafka.broker import Broker

REALM = "STREAMER.TEST"
LISTENER = "TICKETS"
_LIFE = "1h"


@dataclass(frozen=True)
class Kdc:
    """A running KDC.

    Attributes:
        directory: has its database, its settings and the keytabs.
        environment: the variables by which Kerberos's library finds it.
    """

    directory: Path
    environment: dict[str, str]

    def add_principal(self, name: str) -> Path:
        """Add a principal; return the keytab that has its keys."""
        keytab = self.directory / f"{name.replace('/', '-')}.keytab"
        self.run_tool("kadmin.local", "-q", f"addprinc -randkey {name}")
        self.run_tool("kadmin.local", "-q", f"ktadd -k {keytab} {name}")
        return keytab

    def run_tool(self, name: str, *arguments: str) -> None:
        """Run one of its tools."""
        command = [installed("krb5-kdc", name, f"/usr/sbin/{name}"), *arguments]
        environment = {**os.environ, **self.environment}
        subprocess.run(command, check=True, capture_output=True, timeout=60, env=environment)


@contextmanager
def kdc(directory: Path) -> Iterator[Kdc]:
    """Run one, on loopback."""
    program = installed("krb5-kdc", "krb5kdc", "/usr/sbin/krb5kdc")
    port = free_port()
    (directory / "krb5.conf").write_text(
        f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n rdns = false\n"
        " dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
        f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{port}\n }}\n"
    )
    (directory / "kdc.conf").write_text(
        f'[kdcdefaults]\n kdc_listen = ""\n kdc_tcp_listen = 127.0.0.1:{port}\n'
        f"[realms]\n {REALM} = {{\n  database_name = {directory}/principal\n"
        f"  key_stash_file = {directory}/stash\n  max_life = {_LIFE}\n }}\n"
    )
    files = {"KRB5_CONFIG": "krb5.conf", "KRB5_KDC_PROFILE": "kdc.conf"}
    environment = {name: str(directory / file) for name, file in files.items()}
    server = Kdc(directory, environment)
    server.run_tool("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
    command = ["env", *(f"{name}={value}" for name, value in environment.items()), program, "-n"]
    with running(command, directory / "kdc.log", lambda: listens(port)):
        yield server


@contextmanager
def kerberos_broker(directory: Path, server: Kdc) -> Iterator[Broker]:
    """Run a broker whose listener `TICKETS` takes clients of the realm."""
    keytab = server.add_principal("kafka/localhost")
    prefix = f"listener.name.{LISTENER.lower()}"
    settings = {
        "sasl.enabled.mechanisms": "GSSAPI",
        f"{prefix}.sasl.kerberos.service.name": "kafka",
        f"{prefix}.gssapi.sasl.jaas.config": (
            "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
            f'keyTab="{keytab}" principal="kafka/localhost@{REALM}";'
        ),
    }
    options = (f"-Djava.security.krb5.conf={server.environment['KRB5_CONFIG']}",)
    listeners = {LISTENER: "SASL_PLAINTEXT"}
    # The runtime that Spark gets lacks the module with GSSAPI for servers.
    java = Path(installed("default-jre-headless", "java"))
    broker = Broker(directory, settings, listeners, (), options, "localhost", java=java)
    with broker:
        yield broker
