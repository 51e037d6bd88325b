"""Where the jars of Spark's Kafka connector are found, and what is said when they are not."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha1, sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock
from xml.etree import ElementTree

import pytest
from pyspark.errors import AnalysisException

from streamer.config import parse_config
from streamer.core.errors import StreamerError
from streamer.engine.stage.kafka_messages import NeededColumns
from streamer.plan import Plan, make_plan
from streamer.sdk.spec import ParsedFields
from streamer.spark.jars import s3_jars
from streamer.spark.jars.ivy import FetchError, fetch_jars
from streamer.spark.jars.jar_checksums import JAR_SHA256
from streamer.spark.jars.jar_directories import user_jar_directory
from streamer.spark.jars.kafka_jars import (
    KAFKA_JARS,
    connector_settings,
    service_spark_settings,
    stream_spark_settings,
)
from streamer.spark.jvm.jvm_options import FULL_OPTIMISATION_OPTION, per_message_jvm_settings
from streamer.spark.kafka.kafka_source import make_kafka_rows
from tests.servers import free_port

ROOT = Path(__file__).parents[3]
OPTIONS = "spark.driver.extraJavaOptions"
FILES = [f"{name}-{version}.jar" for name, (_, version) in KAFKA_JARS.items()]


def _silent(level: str, text: str, fields: Mapping[str, Any]) -> None:
    pass


def _fill(directory: Path, *names: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        (directory / name).write_bytes(b"")
    return directory


def _found(conf: Mapping[str, str], home: Path, named: str = "", directory: str = "") -> list[str]:
    environ = {"XDG_CACHE_HOME": str(home), "STREAMER_JARS": named}
    settings = connector_settings(conf, environ, _silent, directory, shared=home / "shared")
    return settings["spark.jars"].split(",")


def test_the_pom_and_the_program_name_the_same_jars() -> None:
    names = {"m": "http://maven.apache.org/POM/4.0.0"}
    pom = ElementTree.parse(ROOT / "deploy/jars/pom.xml")
    in_pom = {
        tuple(one.findtext(f"m:{part}", "", names) for part in ("artifactId", "groupId", "version"))
        for one in pom.iterfind(".//m:dependency", names)
    }
    assert in_pom == {(name, group, version) for name, (group, version) in KAFKA_JARS.items()}


def test_the_pom_for_s3_and_the_program_name_the_same_versions() -> None:
    names = {"m": "http://maven.apache.org/POM/4.0.0"}
    pom = ElementTree.parse(ROOT / "deploy/image/s3-pom.xml")
    sdk = pom.findtext("m:properties/m:sdk", "", names)
    for one in pom.iterfind("m:dependencies/m:dependency", names):
        name, group, version = (
            one.findtext(f"m:{part}", "", names) for part in ("artifactId", "groupId", "version")
        )
        assert s3_jars.S3_JARS[name] == (group, version or sdk)


def _with_s3(conf: Mapping[str, str], home: Path, directory: Path) -> str:
    environ = {"XDG_CACHE_HOME": str(home)}
    settings = s3_jars.s3_settings(conf, environ, _silent, str(directory), shared=home / "none")
    return settings.get("spark.jars", "")


def test_the_jars_for_s3_are_found_where_all_of_them_are(tmp_path: Path) -> None:
    files = [f"{name}-{version}.jar" for name, (_, version) in s3_jars.S3_JARS.items()]
    kept_here = _fill(tmp_path / "streamer/jars/s3", *files)
    some = _fill(tmp_path / "some", *files[1:])
    expected = [str(kept_here / name) for name in files]
    assert _with_s3({"spark.jars": "own.jar"}, tmp_path, some) == ",".join(["own.jar", *expected])
    _fill(some, files[0])
    assert _with_s3({}, tmp_path, some) == ",".join(str(some / name) for name in files)
    assert _with_s3({"spark.jars": "/x/hadoop-aws-3.5.0.jar"}, tmp_path, some) == ""


def test_the_directory_that_is_named_goes_before_the_machines_and_the_users(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("variable", "config", "shared", "streamer/jars")]
    variable, config, *_ = [str(_fill(place, *FILES)) for place in places]
    assert user_jar_directory({"XDG_CACHE_HOME": str(tmp_path)}) == places[3]
    for named, directory, place in (
        (variable, config, places[0]),
        ("", config, places[1]),
        ("", "", places[2]),
    ):
        expected = [str(place / name) for name in FILES]
        assert _found({}, tmp_path, named, directory) == expected
    (places[2] / FILES[0]).unlink()
    assert _found({}, tmp_path) == [str(places[3] / name) for name in FILES]


def test_of_two_versions_the_newer_is_taken_and_other_jars_are_left(tmp_path: Path) -> None:
    more = ["kafka-clients-3.10.0.jar", "kafka-clients-3.9.1.jar", "postgresql-42.7.jar"]
    place = _fill(tmp_path / "jars", *FILES, *more)
    expected = [str(place / name) for name in (*FILES[:2], more[0], FILES[3])]
    assert _found({}, tmp_path, str(place)) == expected


def test_jars_are_known_as_sparks_own_downloads_name_them(tmp_path: Path) -> None:
    files = [f"{group}_{name}-{version}.jar" for name, (group, version) in KAFKA_JARS.items()]
    place = _fill(tmp_path / "jars", *files)
    assert _found({}, tmp_path, str(place)) == [str(place / name) for name in files]


def test_what_spark_conf_names_is_kept_and_a_connector_of_the_users_is_left_alone(
    tmp_path: Path,
) -> None:
    place = _fill(tmp_path / "jars", *FILES)
    assert _found({"spark.jars": "/a.jar,/b.jar"}, tmp_path, str(place))[:2] == ["/a.jar", "/b.jar"]
    for conf in (
        {"spark.jars": "/x/spark-sql-kafka-0-10_2.13-4.1.0.jar"},
        {"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.0"},
    ):
        assert connector_settings(conf, {"STREAMER_JARS": "/not/there"}, _silent) == {}


def _planned(text: str) -> tuple[Plan, Any]:
    config = parse_config(text)
    return make_plan(config), config.spark


def test_only_a_stream_that_reads_kafka_is_given_the_connector(tmp_path: Path) -> None:
    place = _fill(tmp_path / "jars", *FILES)
    spark = f"spark: {{kafka: {{reader: jvm}}, jars_directory: {place}, conf: {{spark.a: b}}}}"
    plan, section = _planned(f"input: {{broker: {{inputs: [stdin: {{}}]}}}}\n{spark}")
    assert stream_spark_settings(plan, section, {}, _silent) == {"spark.a": "b"}
    (child,) = plan.input.config["inputs"]
    kafka = replace(child, name="kafka")
    broker = replace(plan.input, config=ParsedFields({"inputs": (kafka,)}))
    jars = ",".join(str(place / name) for name in FILES)
    for reads in (kafka, broker):
        conf = stream_spark_settings(replace(plan, input=reads), section, {}, _silent)
        assert conf == {"spark.a": "b", "spark.jars": jars, **per_message_jvm_settings({})}
        by_workers, section_of_workers = _planned(spark.replace("jvm", "workers"))
        conf = stream_spark_settings(
            replace(by_workers, input=reads), section_of_workers, {}, _silent
        )
        assert conf == {"spark.a": "b"}


def test_options_of_the_users_come_after_that_of_kafka(tmp_path: Path) -> None:
    place = _fill(tmp_path / "jars", *FILES)
    conf = f"conf: {{{OPTIONS}: '-XX:TieredStopAtLevel=3'}}"
    spark = f"spark: {{kafka: {{reader: jvm}}, jars_directory: {place}, {conf}}}"
    plan, section = _planned(spark)
    reads = replace(plan.input, name="kafka")
    conf = stream_spark_settings(replace(plan, input=reads), section, {}, _silent)
    assert conf[OPTIONS].startswith(FULL_OPTIMISATION_OPTION) and conf[OPTIONS].endswith(
        " -XX:TieredStopAtLevel=3"
    )


def test_a_service_has_the_connector_where_it_is_for_streams_that_come_later(
    tmp_path: Path,
) -> None:
    place = _fill(tmp_path / "jars", *FILES)
    plan, section = _planned(f"spark: {{kafka: {{reader: jvm}}, jars_directory: {place}}}")
    jars = ",".join(str(place / name) for name in FILES)
    assert service_spark_settings(section, [plan.input], {}, _silent) == {"spark.jars": jars}
    kafka = replace(plan.input, name="kafka")
    conf = service_spark_settings(section, [plan.input, kafka], {}, _silent)
    assert conf == {"spark.jars": jars, **per_message_jvm_settings({})}
    _, nowhere = _planned("spark: {kafka: {reader: jvm}, conf: {spark.a: b}}")
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    shared = tmp_path / "shared"
    assert service_spark_settings(nowhere, [plan.input], environ, _silent, shared) == {
        "spark.a": "b"
    }
    (place / FILES[0]).unlink()
    with pytest.raises(StreamerError, match="spark.jars_directory names"):
        service_spark_settings(section, [], {}, _silent)


def test_a_spark_without_the_connector_is_named_when_a_stream_needs_it() -> None:
    class NoKafka:
        """A session as Spark's is without the connector."""

        @property
        def readStream(self) -> NoKafka:
            return self

        def format(self, name: str) -> NoKafka:
            return self

        def options(self, **options: str) -> NoKafka:
            return self

        def load(self) -> None:
            text = "[KAFKA_DATA_SOURCE_NOT_ENABLED] Failed to find data source: kafka."
            raise AnalysisException(text)

    plan, _ = _planned("input: {stdin: {}}")
    child: Any = SimpleNamespace(options=lambda: {"subscribe": "a"}, place=None)
    session: Any = NoKafka()
    jvm = MagicMock()
    session.sparkContext = SimpleNamespace(getConf=dict, _jvm=jvm)
    jvm.java.lang.Runtime.getRuntime().maxMemory.return_value = 1 << 30
    with pytest.raises(StreamerError, match="Spark was started without the jars with which it"):
        make_kafka_rows(session, plan, [child], NeededColumns())


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (None, "is not there"),
        ([], "has none of them"),
        (FILES[:2], "lacks kafka-clients, commons-pool2"),
    ],
)
@pytest.mark.parametrize("by", ["STREAMER_JARS", "spark.jars_directory"])
def test_a_directory_that_is_named_and_lacks_jars_is_an_error(
    tmp_path: Path, by: str, files: list[str] | None, said: str
) -> None:
    place = tmp_path / "jars"
    if files is not None:
        _fill(place, *files)
    both = (str(place), "") if by == "STREAMER_JARS" else ("", str(place))
    with pytest.raises(StreamerError) as e:
        _found({}, tmp_path, *both)
    assert str(e.value).startswith(f"{by} names {place}, which {said}; reading Kafka takes all of ")
    assert f"mvn -f deploy/jars/pom.xml dependency:copy-dependencies -DoutputDirectory={place}" in (
        str(e.value)
    )


FAKES = {name: f"{name}-{version}.jar" for name, (_, version) in KAFKA_JARS.items()}


def _repository(place: Path, lacks: str = "") -> str:
    """Make a Maven repository with jars of a few bytes; give its URL."""
    for name, (group, version) in KAFKA_JARS.items():
        directory = place / group.replace(".", "/") / name / version
        directory.mkdir(parents=True)
        jar = directory / f"{name}-{version}.jar"
        if name != lacks:
            jar.write_bytes(f"jar of {name}".encode())
            (directory / f"{jar.name}.sha1").write_text(sha1(jar.read_bytes()).hexdigest())
    return f"{place.as_uri()}/"


def _settings_file(tmp_path: Path, url: str) -> dict[str, str]:
    """Let Ivy know one repository only: not the one in the home directory, nor the network's."""
    file = tmp_path / "ivysettings.xml"
    file.write_text(
        '<ivysettings><settings defaultResolver="one"/><resolvers>'
        f'<ibiblio name="one" m2compatible="true" usepoms="false" root="{url}"/>'
        "</resolvers></ivysettings>"
    )
    return {"spark.jars.ivySettings": str(file)}


@pytest.mark.slow
def test_jars_are_fetched_once_and_nothing_else_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes = {file: sha256(f"jar of {name}".encode()).hexdigest() for name, file in FAKES.items()}
    monkeypatch.setattr("streamer.spark.jars.kafka_jars.JAR_SHA256", fakes)
    lines: list[tuple[str, str, Mapping[str, Any]]] = []
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "home"), "STREAMER_JARS": ""}
    conf = _settings_file(tmp_path, _repository(tmp_path / "maven2"))
    for _ in range(2):
        settings = connector_settings(
            conf, environ, lambda *line: lines.append(line), shared=tmp_path / "shared"
        )
    place = user_jar_directory(environ)
    assert settings == {"spark.jars": ",".join(str(place / name) for name in FILES)}
    assert sorted(one.name for one in place.iterdir()) == sorted(FILES)
    assert [text for _, text, _ in lines] == [
        "Fetching the jars with which Spark reads Kafka",
        *["Fetching a jar"] * 4,
        "Fetched the jars with which Spark reads Kafka",
    ]
    assert [fields["from"].rsplit("/", 1)[-1] for _, _, fields in lines[1:-1]] == FILES


@pytest.mark.slow
def test_repositories_of_spark_conf_are_asked_first(tmp_path: Path) -> None:
    environ = {**os.environ, "DEFAULT_ARTIFACT_REPOSITORY": f"http://127.0.0.1:{free_port()}/"}
    conf = {"spark.jars.repositories": _repository(tmp_path / "maven2")}
    wanted = [("org.apache.kafka", "kafka-clients", "3.9.2")]
    fetch_jars(wanted, tmp_path / "jars", conf, environ, _silent)
    (jar,) = (tmp_path / "jars").iterdir()
    assert (jar.name, jar.read_text()) == ("kafka-clients-3.9.2.jar", "jar of kafka-clients")


@pytest.mark.slow
def test_one_paragraph_says_where_was_looked_and_what_to_do(tmp_path: Path) -> None:
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "STREAMER_JARS": ""}
    conf = _settings_file(tmp_path, _repository(tmp_path / "maven2", lacks="commons-pool2"))
    with pytest.raises(StreamerError) as e:
        connector_settings(conf, environ, _silent, shared=tmp_path / "shared")
    own = tmp_path / "streamer/jars"
    assert str(e.value) == (
        "The input reads Kafka, for which Spark needs jars that PySpark does not bring, and they "
        "were not found: STREAMER_JARS is not set; spark.jars_directory is not set; "
        f"{tmp_path / 'shared'} is not there; {own} is not there; and they could not be fetched: "
        "no repository has org.apache.commons:commons-pool2:2.13.1. Fetch them with Maven: mvn -f "
        f"deploy/jars/pom.xml dependency:copy-dependencies -DoutputDirectory={own}. Or name a "
        "repository that has them in spark.conf: spark.jars.repositories, or an Ivy settings file "
        "as spark.jars.ivySettings."
    )
    assert not list(own.iterdir())


@pytest.mark.slow
def test_a_jar_that_came_broken_is_not_taken(tmp_path: Path) -> None:
    conf = _settings_file(tmp_path, _repository(tmp_path / "maven2"))
    (jar,) = (tmp_path / "maven2").rglob("kafka-clients-3.9.2.jar")
    jar.write_text("half of")
    wanted = [("org.apache.kafka", "kafka-clients", "3.9.2")]
    with pytest.raises(FetchError, match="kafka-clients.jar: invalid sha1"):
        fetch_jars(wanted, tmp_path / "jars", conf, os.environ, _silent)
    assert not list((tmp_path / "jars").iterdir())


@pytest.mark.slow
def test_a_jar_of_another_sum_is_not_taken(tmp_path: Path) -> None:
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "home"), "STREAMER_JARS": ""}
    conf = _settings_file(tmp_path, _repository(tmp_path / "maven2"))
    with pytest.raises(StreamerError, match="is not what it should be: its SHA-256 is"):
        connector_settings(conf, environ, _silent, shared=tmp_path / "shared")
    assert not list(user_jar_directory(environ).iterdir())


def test_every_jar_that_is_fetched_has_its_sum_for_the_image_as_well() -> None:
    written: dict[str, str] = {}
    for needed, file in ((KAFKA_JARS, "jars/SHA256SUMS"), (s3_jars.S3_JARS, "image/s3-SHA256SUMS")):
        lines = (ROOT / "deploy" / file).read_text().splitlines()
        found = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
        assert found.keys() == {f"{name}-{version}.jar" for name, (_, version) in needed.items()}
        written |= found
    assert written == JAR_SHA256


@pytest.mark.slow
def test_a_repository_that_is_not_there_or_never_answers_is_named(tmp_path: Path) -> None:
    wanted = [("org.apache.kafka", "kafka-clients", "3.9.2")]
    port = free_port()
    conf = _settings_file(tmp_path, f"http://who:secret@127.0.0.1:{port}/maven2/")
    with pytest.raises(FetchError) as e:
        fetch_jars(wanted, tmp_path / "jars", conf, os.environ, _silent)
    assert re.match(
        "no repository has org.apache.kafka:kafka-clients:3.9.2; Server access error at url "
        f"http://127.0.0.1:{port}/maven2/.* \\(java.net.ConnectException: Connection refused\\)",
        str(e.value),
    )
    assert "secret" not in str(e.value)
    with pytest.raises(FetchError, match="not done after 0.01 seconds"):
        fetch_jars(wanted, tmp_path / "jars", conf, os.environ, _silent, timeout=0.01)
    assert not list((tmp_path / "jars").iterdir())
