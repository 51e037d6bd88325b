"""Find the jars with which Spark's own source reads Kafka: PySpark does not bring them.

Only `spark.kafka.reader: jvm` needs them.

They are taken from the first directory that has all of them; where none has, they are fetched once
from Maven's repositories and kept. What is needed is four jars: all else that the connector asks
for is among Spark's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.engine.planner.kafka_inputs import JVM_READER
from streamer.plan import Plan
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields
from streamer.sdk.spec.children import child_components
from streamer.spark.cluster.worker_setup import ENVIRONMENT_SETTING
from streamer.spark.jars.ivy import FetchError, fetch_jars
from streamer.spark.jars.jar_checksums import JAR_SHA256
from streamer.spark.jars.jar_directories import (
    JARS_VARIABLE,
    Modules,
    find_jars,
    user_jar_directory,
    with_jars,
)
from streamer.spark.jars.s3_jars import s3_settings
from streamer.spark.jvm.jvm_options import per_message_jvm_settings

KAFKA_JARS: Modules = {
    "spark-sql-kafka-0-10_2.13": ("org.apache.spark", "4.2.0"),
    # Some repositories lack its newer versions; this one works with the connector above.
    "spark-token-provider-kafka-0-10_2.13": ("org.apache.spark", "4.0.0"),
    "kafka-clients": ("org.apache.kafka", "3.9.2"),
    "commons-pool2": ("org.apache.commons", "2.13.1"),
}
"""What Spark needs, as Maven names it: the artifact, its group and the version that is fetched."""

_KAFKA_INPUTS = ("kafka", "kafka_franz", "redpanda", "redpanda_common")
SHARED_DIRECTORY = Path("/opt/streamer/jars")
_POM = "deploy/jars/pom.xml"


def stream_spark_settings(
    plan: Plan,
    section: ParsedFields,
    environ: Mapping[str, str],
    log: LogLine,
    checkpoint: str = "",
) -> Mapping[str, str]:
    """Return the Spark settings of a stream: the user's, and what its input and checkpoint take.

    For Kafka that is the connector, and a JVM that is made for a row for every message.

    Args:
        plan: the stream.
        section: see `settings_with_jars`.
        environ: see `connector_settings`.
        log: see `connector_settings`.
        checkpoint: where the checkpoint is, if not on this machine.

    Raises:
        StreamerError: it reads Kafka, and there is no connector; or the same with S3.
    """
    conf = settings_with_jars((plan.input,), section, environ, log, checkpoint)
    by_jvm = needs_connector(section, (plan.input,))
    return {**conf, **(per_message_jvm_settings(conf) if by_jvm else {})}


def settings_with_jars(
    inputs: Iterable[ParsedComponent],
    section: ParsedFields,
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
    conf = with_s3_jars(_user_settings(section), environ, log, directory, checkpoint)
    if needs_connector(section, inputs):
        conf = {**conf, **connector_settings(conf, environ, log, directory)}
    return conf


def jars_to_ship(
    inputs: Iterable[ParsedComponent],
    section: ParsedFields,
    environ: Mapping[str, str],
    log: LogLine,
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
    if not needs_connector(section, inputs):
        return []
    if not connector_settings(section["conf"], environ, log, directory):
        return []
    return find_connector_jars(environ, directory)


def service_spark_settings(
    section: ParsedFields,
    inputs: Iterable[ParsedComponent],
    environ: Mapping[str, str],
    log: LogLine,
    shared: Path = SHARED_DIRECTORY,
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
    conf = with_s3_jars(_user_settings(section), environ, log, directory, checkpoints)
    if section["kafka"]["reader"] != JVM_READER:
        return conf
    has_kafka_input = any(map(reads_kafka, inputs))
    if not has_kafka_input and not find_connector_jars(environ, directory, shared):
        return conf
    connector = connector_settings(conf, environ, log, directory, shared)
    return {**conf, **connector, **(per_message_jvm_settings(conf) if has_kafka_input else {})}


def _user_settings(section: ParsedFields) -> Mapping[str, str]:
    """Return the user's settings, and on a cluster how its workers get this program."""
    local = section["master"].startswith("local")
    return {**({} if local else {ENVIRONMENT_SETTING: section["environment"]}), **section["conf"]}


def with_s3_jars(
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


def missing_connector_error(environ: Mapping[str, str]) -> StreamerError:
    """Return what is wrong when a stream reads Kafka in a Spark that was started without it."""
    return StreamerError(
        "Spark was started without the jars with which it reads Kafka; leave spark.kafka.reader "
        "out, or start the program again when they are there (a service needs spark.kafka.reader: "
        f"jvm in its own config). {_maven_hint(user_jar_directory(environ))}"
    )


def needs_connector(section: ParsedFields, inputs: Iterable[ParsedComponent]) -> bool:
    """Return whether Spark reads Kafka with its own source, for which it takes jars.

    Args:
        section: the config's `spark` section, which says who reads Kafka.
        inputs: of the streams.
    """
    return section["kafka"]["reader"] == JVM_READER and any(map(reads_kafka, inputs))


def reads_kafka(input: ParsedComponent) -> bool:
    """Return whether an input, or a part of it, is Kafka's."""
    if input.kind is Kind.INPUT and input.name in _KAFKA_INPUTS:
        return True
    return any(reads_kafka(one) for one in child_components(input))


def connector_settings(
    conf: Mapping[str, str],
    environ: Mapping[str, str],
    log: LogLine,
    directory: str | None = None,
    shared: Path = SHARED_DIRECTORY,
) -> dict[str, str]:
    """Return the settings with which Spark finds its Kafka connector.

    Args:
        conf: the user's Spark settings. Where `spark.jars` or `spark.jars.packages` name the
            connector, it is the user's; other jars that they name are kept.
        environ: has `STREAMER_JARS`, a directory of jars, and where caches are kept.
        log: takes level, text and fields; called when jars are fetched.
        directory: the config's `jars_directory`.
        shared: the machine's directory of jars, which need not be there.

    Returns:
        Settings to put over `conf`; none when the user sees to it.

    Raises:
        StreamerError: a directory that was named lacks a jar, or no directory has them and they
            cannot be fetched. The text says where was looked, and what can be done.
    """
    if has_user_connector(conf):
        return {}
    jars = find_connector_jars(environ, directory, shared) or _fetch_connector_jars(
        conf, environ, log, shared
    )
    return with_jars(conf, jars)


def has_user_connector(conf: Mapping[str, str]) -> bool:
    """Return whether the user's settings of Spark name the connector."""
    keys = "spark.jars", "spark.jars.packages"
    return any("spark-sql-kafka" in conf.get(key, "") for key in keys)


def find_connector_jars(
    environ: Mapping[str, str], directory: str | None = None, shared: Path = SHARED_DIRECTORY
) -> list[Path]:
    """Return the connector's jars; none when no directory has them. Nothing is fetched.

    Raises:
        StreamerError: a directory that was named lacks a jar.
    """
    return (
        _find_named_jars(environ, directory)
        or find_jars(shared, KAFKA_JARS)[0]
        or find_jars(user_jar_directory(environ), KAFKA_JARS)[0]
    )


def _find_named_jars(environ: Mapping[str, str], directory: str | None) -> list[Path]:
    """Return the jars of the directory that somebody named, if somebody did."""
    for name, place in (
        (JARS_VARIABLE, environ.get(JARS_VARIABLE)),
        ("spark.jars_directory", directory),
    ):
        if place:
            jars, lacking = find_jars(Path(place), KAFKA_JARS)
            if lacking:
                raise StreamerError(
                    f"{name} names {place}, which {lacking}; reading Kafka takes all of "
                    f"{', '.join(KAFKA_JARS)}. {_maven_hint(Path(place))}"
                )
            return jars
    return []


def _fetch_connector_jars(
    conf: Mapping[str, str], environ: Mapping[str, str], log: LogLine, shared: Path
) -> list[Path]:
    own = user_jar_directory(environ)
    searched = [f"{JARS_VARIABLE} is not set", "spark.jars_directory is not set"]
    searched += [f"{place} {find_jars(place, KAFKA_JARS)[1]}" for place in (shared, own)]
    modules = [(group, name, version) for name, (group, version) in KAFKA_JARS.items()]
    log("INFO", "Fetching the jars with which Spark reads Kafka", {"into": str(own)})
    try:
        fetch_jars(modules, own, conf, environ, log, sums=JAR_SHA256)
    except FetchError as e:
        raise StreamerError(
            f"The input reads Kafka, for which Spark needs jars that PySpark does not bring, and "
            f"they were not found: {'; '.join(searched)}; and they could not be fetched: {e}. "
            f"{_maven_hint(own)} Or name a repository that has them in spark.conf: "
            "spark.jars.repositories, or an Ivy settings file as spark.jars.ivySettings."
        ) from e
    jars, lacking = find_jars(own, KAFKA_JARS)
    if lacking:
        raise StreamerError(f"{own} {lacking} though it was fetched: is somebody deleting there?")
    log("INFO", "Fetched the jars with which Spark reads Kafka", {"into": str(own)})
    return jars


def _maven_hint(place: Path) -> str:
    command = f"mvn -f {_POM} dependency:copy-dependencies -DoutputDirectory={place}"
    return f"Fetch them with Maven: {command}."
