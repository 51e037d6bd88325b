"""Find the jars with which Spark reads Kafka: PySpark does not bring them.

They are taken from the first directory that has all of them; where none has, they are fetched once
from Maven's repositories and kept. What is needed is four jars: all else that the connector asks
for is among Spark's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from streamer.errors import StreamerError
from streamer.plan import Plan
from streamer.spark.cluster import ENVIRONMENT
from streamer.spark.compiling import for_messages
from streamer.spark.ivy import FetchError, fetch
from streamer.spark.jar_directories import VARIABLE, Modules, kept, look, with_jars
from streamer.spark.jar_sums import SUMS
from streamer.spark.s3_jars import s3_settings
from streamer.spec import Kind, Parsed, ParsedComponent
from streamer.spec.inside import inside

LogLine = Callable[[str, str, Mapping[str, Any]], None]

NEEDED: Modules = {
    "spark-sql-kafka-0-10_2.13": ("org.apache.spark", "4.2.0"),
    # Some repositories lack its newer versions; this one works with the connector above.
    "spark-token-provider-kafka-0-10_2.13": ("org.apache.spark", "4.0.0"),
    "kafka-clients": ("org.apache.kafka", "3.9.2"),
    "commons-pool2": ("org.apache.commons", "2.13.1"),
}
"""What Spark needs, as Maven names it: the artifact, its group and the version that is fetched."""

_INPUTS = ("kafka", "kafka_franz", "redpanda")
SHARED = Path("/opt/streamer/jars")
_POM = "deploy/jars/pom.xml"


def spark_conf(
    plan: Plan,
    section: Parsed,
    environ: Mapping[str, str],
    log: LogLine,
    checkpoint: str = "",
) -> Mapping[str, str]:
    """Return the Spark settings of a stream: the user's, and what its input and checkpoint take.

    For Kafka that is the connector, and a JVM that is made for a row for every message.

    Args:
        plan: the stream.
        section: see `with_own_jars`.
        environ: see `connector_settings`.
        log: see `connector_settings`.
        checkpoint: where the checkpoint is, if not on this machine.

    Raises:
        StreamerError: it reads Kafka, and there is no connector; or the same with S3.
    """
    conf = with_own_jars((plan.input,), section, environ, log, checkpoint)
    return {**conf, **(for_messages(conf) if reads_kafka(plan.input) else {})}


def with_own_jars(
    inputs: Iterable[ParsedComponent],
    section: Parsed,
    environ: Mapping[str, str],
    log: LogLine,
    checkpoint: str = "",
) -> Mapping[str, str]:
    """Return the user's Spark settings, with the jars that inputs and a checkpoint take.

    Args:
        inputs: of the streams.
        section: the config's `spark` section.
        environ: see `connector_settings`.
        log: see `connector_settings`.
        checkpoint: where the checkpoint is, if not on this machine.

    Raises:
        StreamerError: one reads Kafka, and there is no connector; or the same with S3.
    """
    directory = section["jars_directory"]
    conf = with_s3(_conf(section), environ, log, directory, checkpoint)
    if any(map(reads_kafka, inputs)):
        conf = {**conf, **connector_settings(conf, environ, log, directory)}
    return conf


def shipped_jars(
    inputs: Iterable[ParsedComponent], section: Parsed, environ: Mapping[str, str], log: LogLine
) -> list[Path]:
    """Return the connector's jars that a driver on another machine takes along; none without Kafka.

    Args:
        inputs: of its streams.
        section: the `spark` section of its config.
        environ: see `connector_settings`.
        log: see `connector_settings`.

    Raises:
        StreamerError: one of them reads Kafka, and there is no connector.
    """
    directory = section["jars_directory"]
    if not any(map(reads_kafka, inputs)):
        return []
    if not connector_settings(section["conf"], environ, log, directory):
        return []
    return connector_jars(environ, directory)


def host_conf(
    section: Parsed,
    inputs: Iterable[ParsedComponent],
    environ: Mapping[str, str],
    log: LogLine,
    shared: Path = SHARED,
    checkpoints: str = "",
) -> Mapping[str, str]:
    """Return the Spark settings of many streams: with the connector for those that come later too.

    Only where one that is known reads Kafka is the JVM made for it: it starts faster without.

    Args:
        section: the `spark` section of the service's config.
        inputs: of the streams that are known; only for these it is fetched.
        environ: see `connector_settings`.
        log: see `connector_settings`.
        shared: see `connector_settings`.
        checkpoints: where their checkpoints are, if not on this machine.

    Raises:
        StreamerError: one of the inputs reads Kafka, and there is no connector; or the same with
            S3.
    """
    directory = section["jars_directory"]
    conf = with_s3(_conf(section), environ, log, directory, checkpoints)
    reads = any(map(reads_kafka, inputs))
    if not reads and not connector_jars(environ, directory, shared):
        return conf
    connector = connector_settings(conf, environ, log, directory, shared)
    return {**conf, **connector, **(for_messages(conf) if reads else {})}


def _conf(section: Parsed) -> Mapping[str, str]:
    """Return the user's settings, and on a cluster how its workers get this program."""
    local = section["master"].startswith("local")
    return {**({} if local else {ENVIRONMENT: section["environment"]}), **section["conf"]}


def with_s3(
    conf: Mapping[str, str],
    environ: Mapping[str, str],
    log: LogLine,
    directory: str | None,
    checkpoint: str,
) -> Mapping[str, str]:
    """Return Spark settings with the jars that a checkpoint takes.

    Args:
        conf: the user's settings.
        environ: see `s3_settings`.
        log: see `s3_settings`.
        directory: the config's `jars_directory`.
        checkpoint: where it is, if not on this machine.

    Raises:
        StreamerError: it is in S3, and the jars for that cannot be had.
    """
    if not checkpoint.startswith("s3a://"):
        return conf
    return {**conf, **s3_settings(conf, environ, log, directory)}


def no_connector(environ: Mapping[str, str]) -> StreamerError:
    """Return what is wrong when a stream reads Kafka in a Spark that was started without it."""
    return StreamerError(
        "Spark was started without the jars with which it reads Kafka; start the program again "
        f"when they are there. {_with_maven(kept(environ))}"
    )


def reads_kafka(input: ParsedComponent) -> bool:
    """Whether Spark reads an input, or a part of it, from Kafka."""
    if input.kind is Kind.INPUT and input.name in _INPUTS:
        return True
    return any(reads_kafka(one) for one in inside(input))


def connector_settings(
    conf: Mapping[str, str],
    environ: Mapping[str, str],
    log: LogLine,
    directory: str | None = None,
    shared: Path = SHARED,
) -> dict[str, str]:
    """Return what Spark has to be told so that it finds its Kafka connector.

    Args:
        conf: the user's Spark settings. Where `spark.jars` or `spark.jars.packages` name the
            connector, it is the user's; other jars that they name are kept.
        environ: has `STREAMER_JARS`, a directory of jars, and where caches are kept.
        log: takes level, text and fields; hears when jars are fetched.
        directory: the config's `jars_directory`.
        shared: the machine's directory of jars, which need not be there.

    Returns:
        Settings to put over `conf`; none when the user sees to it.

    Raises:
        StreamerError: a directory that was named lacks a jar, or no directory has them and they
            cannot be fetched. The text says where was looked, and what can be done.
    """
    if names_connector(conf):
        return {}
    jars = connector_jars(environ, directory, shared) or _fetched(conf, environ, log, shared)
    return with_jars(conf, jars)


def names_connector(conf: Mapping[str, str]) -> bool:
    """Tell whether the user's settings of Spark name the connector."""
    keys = "spark.jars", "spark.jars.packages"
    return any("spark-sql-kafka" in conf.get(key, "") for key in keys)


def connector_jars(
    environ: Mapping[str, str], directory: str | None = None, shared: Path = SHARED
) -> list[Path]:
    """Return the connector's jars; none when no directory has them. Nothing is fetched.

    Raises:
        StreamerError: a directory that was named lacks a jar.
    """
    return _named(environ, directory) or look(shared, NEEDED)[0] or look(kept(environ), NEEDED)[0]


def _named(environ: Mapping[str, str], directory: str | None) -> list[Path]:
    """Return the jars of the directory that somebody named, if somebody did."""
    for name, place in ((VARIABLE, environ.get(VARIABLE)), ("spark.jars_directory", directory)):
        if place:
            jars, lacking = look(Path(place), NEEDED)
            if lacking:
                raise StreamerError(
                    f"{name} names {place}, which {lacking}; reading Kafka takes all of "
                    f"{', '.join(NEEDED)}. {_with_maven(Path(place))}"
                )
            return jars
    return []


def _fetched(
    conf: Mapping[str, str], environ: Mapping[str, str], log: LogLine, shared: Path
) -> list[Path]:
    own = kept(environ)
    seen = [f"{VARIABLE} is not set", "spark.jars_directory is not set"]
    seen += [f"{place} {look(place, NEEDED)[1]}" for place in (shared, own)]
    wanted = [(group, name, version) for name, (group, version) in NEEDED.items()]
    log("INFO", "Fetching the jars with which Spark reads Kafka", {"into": str(own)})
    try:
        fetch(wanted, own, conf, environ, log, sums=SUMS)
    except FetchError as e:
        raise StreamerError(
            f"The input reads Kafka, for which Spark needs jars that PySpark does not bring, and "
            f"they were not found: {'; '.join(seen)}; and they could not be fetched: {e}. "
            f"{_with_maven(own)} Or name a repository that has them in spark.conf: "
            "spark.jars.repositories, or an Ivy settings file as spark.jars.ivySettings."
        ) from e
    jars, lacking = look(own, NEEDED)
    if lacking:
        raise StreamerError(f"{own} {lacking} though it was fetched: is somebody deleting there?")
    log("INFO", "Fetched the jars with which Spark reads Kafka", {"into": str(own)})
    return jars


def _with_maven(place: Path) -> str:
    command = f"mvn -f {_POM} dependency:copy-dependencies -DoutputDirectory={place}"
    return f"Fetch them with Maven: {command}."
