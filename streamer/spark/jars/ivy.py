"""Fetch jars from Maven's repositories with Ivy, which PySpark brings.

Spark's own `spark.jars.packages` asks Ivy at every start, leaves a cache in the home directory and
cannot take one version of a module in place of another that a repository lacks: what it excludes it
does not take when it is named either. So Ivy is asked directly, once, for just the jars that are
named; with the settings that the user gives Spark for it.
"""

from __future__ import annotations

import hashlib
import os
import re
import select
import shlex
import ssl
import subprocess
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final
from xml.sax.saxutils import quoteattr

from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.spark.jvm.java import find_java

Module = tuple[str, str, str]
"""A group, an artifact and a version, as Maven names them; `3.0-shaded` has a classifier."""

_SHADED: Final = "-shaded"
_FILE_PATTERN: Final = "[artifact]-[revision](-[classifier]).[ext]"

FETCH_TIMEOUT_S = 600.0
"""How long all of it may take, s; a server that does not answer is given up before."""

_NOT_FOUND_LINE = re.compile(r":: (\S+)#(\S+);(\S+): .*not found")
_URL_CREDENTIALS = re.compile(r"//[^/@\s]+@")
_NETWORK_OPTION_PREFIXES = ("-Dhttp.", "-Dhttps.", "-Djavax.net.", "-Djava.net.", "-DsocksProxy")


class FetchError(StreamerError):
    """Not everything could be fetched; the text says what failed."""


def fetch_jars(
    modules: Sequence[Module],
    into: Path,
    conf: Mapping[str, str],
    environ: Mapping[str, str],
    log: LogLine,
    timeout: float = FETCH_TIMEOUT_S,
    sums: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Fetch jars into a directory. A file in it is whole, whoever else fetches or is killed.

    Args:
        modules: the jars; what they depend on is not fetched.
        into: the directory; it is made, and nothing else is left behind.
        conf: Spark settings: `spark.jars.ivySettings` (an Ivy settings file, which then says all
            about repositories), `spark.jars.repositories` (URLs, asked first), and the network's
            options among `spark.driver.extraJavaOptions` (`-Dhttps.proxyHost=…`).
        environ: where Java is looked for; `DEFAULT_ARTIFACT_REPOSITORY` in place of Maven Central,
            as with Spark.
        log: takes level, text and fields: each jar as it comes.
        timeout: how long it may take, s.
        sums: the SHA-256 of jars, in hexadecimal digits, by the names of their files.

    Raises:
        FetchError: a jar was not found or is another one than it should be, a repository does not
            answer, the disk is full.
    """
    try:
        into.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=into) as directory_name:
            place = Path(directory_name)
            _run_ivy(_command_line(modules, place, conf, environ), log, timeout)
            jars = sorted((place / "jars").iterdir())
            for jar in jars:
                _check_digest(jar, sums.get(jar.name))
            for jar in jars:
                jar.replace(into / jar.name)
    except OSError as e:
        raise FetchError(f"{e.filename or into}: {e.strerror}") from e


def _check_digest(jar: Path, expected: str | None) -> None:
    if expected is None:
        return
    with jar.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != expected:
        raise FetchError(
            f"{jar.name} is not what it should be: its SHA-256 is {actual}, expected {expected}; "
            "look at the repository that it came from"
        )


def _command_line(
    modules: Sequence[Module], place: Path, conf: Mapping[str, str], environ: Mapping[str, str]
) -> list[str]:
    import pyspark

    java = find_java(environ).home / "bin" / "java"
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"), None)
    if ivy is None:
        raise FetchError("PySpark has no Ivy among its jars")
    (place / "ivy.xml").write_text(_module_xml(modules))
    settings = conf.get("spark.jars.ivySettings")
    if not settings:
        settings = str(place / "settings.xml")
        Path(settings).write_text(_settings_xml(conf, environ))
    options = shlex.split(conf.get("spark.driver.extraJavaOptions", ""))
    return [
        str(java),
        # Unless the user says otherwise a server has so long to answer, ms.
        *(
            "-Dsun.net.client.defaultConnectTimeout=15000",
            "-Dsun.net.client.defaultReadTimeout=60000",
        ),
        *_trust_options(place),
        *(option for option in options if option.startswith(_NETWORK_OPTION_PREFIXES)),
        f"-Divy.default.ivy.user.dir={place / 'home'}",
        *("-cp", str(ivy), "org.apache.ivy.Main"),
        *("-settings", settings, "-cache", str(place / "cache"), "-ivy", str(place / "ivy.xml")),
        *(
            "-confs",
            "default",
            "-retrieve",
            f"{place}/jars/[artifact]-[revision](-[classifier]).[ext]",
        ),
    ]


def _trust_options(place: Path) -> list[str]:
    """Return the options by which Java trusts the authorities that the rest of the program does.

    Java has a list of its own, which lacks the authority of a company's proxy.
    """
    from cryptography.hazmat.primitives.serialization import NoEncryption, pkcs12
    from cryptography.x509 import load_der_x509_certificate

    certificates = []
    for number, data in enumerate(ssl.create_default_context().get_ca_certs(binary_form=True)):
        # Old authorities break rules of today, and cryptography warns of them or refuses them.
        with suppress(ValueError), warnings.catch_warnings(action="ignore"):
            one = load_der_x509_certificate(data)
            certificates.append(pkcs12.PKCS12Certificate(one, str(number).encode()))
    if not certificates:
        return []
    store = place / "trusted.p12"
    store.write_bytes(pkcs12.serialize_java_truststore(certificates, NoEncryption()))
    prefix = "-Djavax.net.ssl.trustStore"
    return [f"{prefix}={store}", f"{prefix}Type=PKCS12"]


def _module_xml(modules: Sequence[Module]) -> str:
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="streamer" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(map(_dependency_xml, modules))}</dependencies></ivy-module>"
    )


def _dependency_xml(module: Module) -> str:
    group, name, version = module
    revision = version.removesuffix(_SHADED)
    start = (
        f"<dependency org={quoteattr(group)} name={quoteattr(name)} rev={quoteattr(revision)} "
        'transitive="false" conf="default->master(default)"'
    )
    if revision == version:
        return f"{start}/>"
    classifier = quoteattr(_SHADED.removeprefix("-"))
    artifact = f'<artifact name={quoteattr(name)} type="jar" ext="jar" m:classifier={classifier}/>'
    return f"{start}>{artifact}</dependency>"


def _settings_xml(conf: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """Return where is looked: as Spark does, but for the repository of its packages."""
    first = [url.strip() for url in conf.get("spark.jars.repositories", "").split(",")]
    local = f"{(Path.home() / '.m2' / 'repository').as_uri()}/"
    central = environ.get("DEFAULT_ARTIFACT_REPOSITORY", "")
    roots = [f"root={quoteattr(url)}" for url in (*first, local, central) if url]
    # Without a root it is Maven Central.
    resolvers = "".join(
        f'<ibiblio name="repository-{number}" m2compatible="true" {root} '
        'usepoms="false" useMavenMetadata="false"/>'
        for number, root in enumerate(roots if central else [*roots, ""], 1)
    )
    return (
        '<ivysettings><settings defaultResolver="all"/>'
        f'<resolvers><chain name="all" returnFirst="true">{resolvers}</chain></resolvers>'
        "</ivysettings>"
    )


def _run_ivy(command: list[str], log: LogLine, timeout: float) -> None:
    output_lines: deque[str] = deque(maxlen=200)
    out, quiet = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=quiet, stdout=out, stderr=subprocess.STDOUT) as process:
        try:
            assert process.stdout is not None
            until = time.monotonic() + timeout
            for line in _read_lines(process.stdout.fileno(), until):
                output_lines.append(line)
                if line.startswith("downloading "):
                    log(
                        "INFO",
                        "Fetching a jar",
                        {"from": _URL_CREDENTIALS.sub("//", line.split()[1])},
                    )
            if time.monotonic() >= until:
                raise FetchError(f"not done after {timeout:g} seconds")
            if process.wait():
                raise FetchError(_explain_failure(output_lines))
        finally:
            process.kill()


def _read_lines(pipe: int, until: float) -> Iterator[str]:
    """Give the lines of a pipe, until it is closed or it is time."""
    rest = b""
    # Unlike `select`, it takes descriptors beyond 1023, which a service may have.
    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    while waiting.poll(max(0.0, until - time.monotonic()) * 1e3):
        piece = os.read(pipe, 65536)
        if not piece:
            return
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace").strip()


def _explain_failure(output_lines: Sequence[str]) -> str:
    """Return what was not found, and what the network had to say, out of Ivy's report."""
    absent = [
        match.expand(r"\1:\2:\3") for line in output_lines if (match := _NOT_FOUND_LINE.match(line))
    ]
    network = [line for line in output_lines if line.startswith(("Host ", "Server access error"))]
    broken = [line.partition("]")[2].strip() for line in output_lines if line.startswith("[FAILED")]
    reasons = [f"no repository has {', '.join(dict.fromkeys(absent))}"] if absent else []
    reasons += [*broken[:1], *network[:1]] or (
        [] if absent else [" ".join(list(output_lines)[-5:])]
    )
    return _URL_CREDENTIALS.sub("//", "; ".join(reasons))
