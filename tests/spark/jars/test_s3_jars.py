"""Where the jars for S3 are found, how they are fetched, and what is said when they are not."""

from __future__ import annotations

import os
import re
import ssl
import threading
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from hashlib import sha1, sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from streamer.config import parse_config
from streamer.core.errors import StreamerError
from streamer.spark.jars import s3_jars
from streamer.spark.jars.ivy import FetchError, fetch_jars
from streamer.spark.jars.jar_checksums import JAR_SHA256
from streamer.spark.jars.jar_directories import user_jar_directory
from streamer.spark.jars.s3_jars import S3_JARS, s3_settings
from streamer.spark.jars.spark_settings import stream_spark_settings
from tests.servers import free_port
from tests.servers.kafka.certificates import Authority

ROOT = Path(__file__).parents[3]
FILES = [f"{name}-{version}.jar" for name, (_, version) in S3_JARS.items()]
STREAMS = ("org.reactivestreams", "reactive-streams", "1.0.4")
"""One of them, which is fetched by itself."""


def _silent(level: str, text: str, fields: Mapping[str, Any]) -> None:
    pass


def _fill(directory: Path, *names: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        (directory / name).write_bytes(b"")
    return directory


def _found(conf: Mapping[str, str], home: Path, named: str = "", directory: str = "") -> str:
    environ = {"XDG_CACHE_HOME": str(home), "STREAMER_JARS": named}
    settings = s3_settings(conf, environ, _silent, directory, shared=home / "shared")
    return settings.get("spark.jars", "")


def _paths(place: Path) -> str:
    return ",".join(str(place / name) for name in FILES)


def test_the_pom_and_the_program_name_the_same_versions() -> None:
    names = {"m": "http://maven.apache.org/POM/4.0.0"}
    pom = ElementTree.parse(ROOT / "deploy/image/s3-pom.xml")
    sdk = pom.findtext("m:properties/m:sdk", "", names)
    for one in pom.iterfind("m:dependencies/m:dependency", names):
        name, group, version = (
            one.findtext(f"m:{part}", "", names) for part in ("artifactId", "groupId", "version")
        )
        assert S3_JARS[name] == (group, version or sdk)


def test_every_jar_that_is_fetched_has_its_sum_for_the_image_as_well() -> None:
    lines = (ROOT / "deploy/image/s3-SHA256SUMS").read_text().splitlines()
    written = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    assert written == JAR_SHA256 and written.keys() == set(FILES)


def test_the_directory_that_is_named_goes_before_the_machines_and_the_users(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("variable", "config", "shared", "streamer/jars/s3")]
    variable, config, *_ = [str(_fill(place, *FILES)) for place in places]
    assert _found({}, tmp_path, variable, config) == _paths(places[0])
    assert _found({}, tmp_path, "", config) == _paths(places[1])
    assert _found({"spark.jars": "own.jar"}, tmp_path) == f"own.jar,{_paths(places[2])}"
    (places[2] / FILES[0]).unlink()
    assert _found({}, tmp_path) == _paths(places[3])
    assert _found({"spark.jars": "/x/hadoop-aws-3.5.0.jar"}, tmp_path, variable) == ""


def test_of_two_versions_the_newer_is_taken_and_other_jars_are_left(tmp_path: Path) -> None:
    more = ["hadoop-aws-3.10.0.jar", "hadoop-aws-3.4.9.jar", "postgresql-42.7.jar"]
    place = _fill(tmp_path / "jars", *FILES, *more)
    assert _found({}, tmp_path, str(place)) == _paths(place).replace(FILES[0], more[0])
    # As Spark's own downloads name them.
    files = [f"{group}_{name}-{version}.jar" for name, (group, version) in S3_JARS.items()]
    place = _fill(tmp_path / "downloads", *files)
    assert _found({}, tmp_path, str(place)) == ",".join(str(place / name) for name in files)


def test_only_a_checkpoint_in_s3_takes_jars(tmp_path: Path) -> None:
    place = _fill(tmp_path / "jars", *FILES)
    config = parse_config(f"spark: {{jars_directory: {place}, conf: {{spark.a: b}}}}")
    kafka = parse_config("input: {redpanda: {seed_brokers: [a], topics: [t]}}")
    assert stream_spark_settings(kafka.spark, {}, _silent) == {}
    for checkpoint, jars in (("", {}), ("s3a://b/c", {"spark.jars": _paths(place)})):
        conf = stream_spark_settings(config.spark, {}, _silent, checkpoint)
        assert conf == {"spark.a": "b", **jars}


def _repository(place: Path, lacks: str = "") -> str:
    """Make a Maven repository with jars of a few bytes; give its URL."""
    for name, (group, version) in S3_JARS.items():
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
    fakes = {
        f"{name}-{version}.jar": sha256(f"jar of {name}".encode()).hexdigest()
        for name, (_, version) in S3_JARS.items()
    }
    monkeypatch.setattr(s3_jars, "JAR_SHA256", fakes)
    lines: list[str] = []
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "home"), "STREAMER_JARS": ""}
    conf = _settings_file(tmp_path, _repository(tmp_path / "maven2"))
    for _ in range(2):
        settings = s3_settings(
            conf, environ, lambda *line: lines.append(line[1]), shared=tmp_path / "shared"
        )
    place = user_jar_directory(environ) / "s3"
    assert settings == {"spark.jars": _paths(place)}
    assert sorted(one.name for one in place.iterdir()) == sorted(FILES)
    assert lines == [
        "Fetching the jars with which Spark reaches S3",
        *["Fetching a jar"] * len(FILES),
    ]


@pytest.mark.slow
def test_repositories_of_spark_conf_are_asked_first(tmp_path: Path) -> None:
    environ = {**os.environ, "DEFAULT_ARTIFACT_REPOSITORY": f"http://127.0.0.1:{free_port()}/"}
    conf = {"spark.jars.repositories": _repository(tmp_path / "maven2")}
    fetch_jars([STREAMS], tmp_path / "jars", conf, environ, _silent)
    (jar,) = (tmp_path / "jars").iterdir()
    assert (jar.name, jar.read_text()) == ("reactive-streams-1.0.4.jar", "jar of reactive-streams")


@pytest.mark.slow
def test_one_paragraph_says_what_was_not_found_and_what_to_do(tmp_path: Path) -> None:
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "STREAMER_JARS": ""}
    conf = _settings_file(tmp_path, _repository(tmp_path / "maven2", lacks="sts"))
    with pytest.raises(StreamerError) as e:
        s3_settings(conf, environ, _silent, shared=tmp_path / "shared")
    own = tmp_path / "streamer/jars/s3"
    assert str(e.value) == (
        "The checkpoint is in S3, for which Spark needs jars that PySpark does not bring, and they "
        "could not be fetched: no repository has software.amazon.awssdk:sts:2.35.4. Fetch them "
        "with Maven: mvn -f deploy/image/s3-pom.xml dependency:copy-dependencies "
        f"-DoutputDirectory={own}. Or name a repository that has them in spark.conf: "
        "spark.jars.repositories."
    )
    assert not list(own.iterdir())


@pytest.mark.slow
def test_a_jar_that_came_broken_or_has_another_sum_is_not_taken(tmp_path: Path) -> None:
    conf = _settings_file(tmp_path, _repository(tmp_path / "maven2"))
    with pytest.raises(FetchError, match="is not what it should be: its SHA-256 is"):
        fetch_jars([STREAMS], tmp_path / "jars", conf, os.environ, _silent, sums=JAR_SHA256)
    (jar,) = (tmp_path / "maven2").rglob("reactive-streams-1.0.4.jar")
    jar.write_text("half of")
    with pytest.raises(FetchError, match="reactive-streams.jar: invalid sha1"):
        fetch_jars([STREAMS], tmp_path / "jars", conf, os.environ, _silent)
    assert not list((tmp_path / "jars").iterdir())


@pytest.mark.slow
def test_a_repository_that_is_not_there_or_never_answers_is_named(tmp_path: Path) -> None:
    port = free_port()
    conf = _settings_file(tmp_path, f"http://who:secret@127.0.0.1:{port}/maven2/")
    with pytest.raises(FetchError) as e:
        fetch_jars([STREAMS], tmp_path / "jars", conf, os.environ, _silent)
    assert re.match(
        "no repository has org.reactivestreams:reactive-streams:1.0.4; Server access error at url "
        f"http://127.0.0.1:{port}/maven2/.* \\(java.net.ConnectException: Connection refused\\)",
        str(e.value),
    )
    assert "secret" not in str(e.value)
    with pytest.raises(FetchError, match="not done after 0.01 seconds"):
        fetch_jars([STREAMS], tmp_path / "jars", conf, os.environ, _silent, timeout=0.01)
    assert not list((tmp_path / "jars").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("is_trusted", [True, False])
def test_repositories_are_trusted_as_the_rest_of_the_program_trusts_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_trusted: bool
) -> None:
    place = tmp_path / "org/reactivestreams/reactive-streams/1.0.4"
    jar = _fill(place, "reactive-streams-1.0.4.jar") / "reactive-streams-1.0.4.jar"
    jar.with_name(f"{jar.name}.sha1").write_text(sha1(jar.read_bytes()).hexdigest())
    authority = Authority(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.sign("repository"))
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *line: None)
    trusted = authority if is_trusted else Authority(tmp_path, "another")
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted.file))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))  # which may have a repository of its own
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        conf = {"spark.jars.repositories": f"https://127.0.0.1:{server.server_port}/"}
        nowhere = f"http://127.0.0.1:{free_port()}/"
        environ = {**os.environ, "DEFAULT_ARTIFACT_REPOSITORY": nowhere}
        with nullcontext() if is_trusted else pytest.raises(FetchError, match="."):
            fetch_jars([STREAMS], tmp_path / "jars", conf, environ, _silent)
        server.shutdown()
    assert (tmp_path / "jars" / jar.name).exists() is is_trusted
