"""How Spark's JVM is started: directly, or by `spark-submit` where that does more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamer.spark.jvm import gateway
from streamer.spark.jvm.gateway import (
    MODULE_OPTIONS,
    JvmExitError,
    JvmOptions,
    JvmProcess,
    can_start_directly,
    class_path,
    spark_home,
    user_jars,
)
from streamer.spark.jvm.java import find_java

LOCAL = {"spark.master": "local[2]", "spark.driver.memory": "1g"}


def test_on_this_machine_no_script_is_needed() -> None:
    assert can_start_directly(LOCAL, {})


@pytest.mark.parametrize(
    "setting",
    [
        {"spark.master": "yarn"},
        {"spark.master": "spark://127.0.0.1:7077"},
        {"spark.jars.packages": "a:b:1"},
        {"spark.jars.ivySettings": "ivy.xml"},
        {"spark.jars": "hdfs://host/a.jar"},
        {"spark.jars": "/nowhere/a.jar"},
        {"spark.submit.pyFiles": "a.py"},
        {"spark.kerberos.keytab": "a"},
        {"spark.archives": "a.zip"},
        {"spark.driver.extraClassPath": "a.jar"},
        {"spark.driver.extraLibraryPath": "lib"},
    ],
)
def test_what_spark_submit_acts_on_goes_through_it(setting: dict[str, str]) -> None:
    assert not can_start_directly({**LOCAL, **setting}, {})


@pytest.mark.parametrize(
    "variable",
    [
        "SPARK_CONF_DIR",
        "HADOOP_CONF_DIR",
        "YARN_CONF_DIR",
        "PYSPARK_SUBMIT_ARGS",
        # A driver that spark-submit has started has a JVM already.
        "PYSPARK_GATEWAY_PORT",
    ],
)
def test_so_does_what_variables_say(variable: str) -> None:
    assert not can_start_directly(LOCAL, {variable: "/etc/somewhere"})
    assert can_start_directly(LOCAL, {variable: ""})


def test_jars_come_after_sparks_own_in_an_order_of_names(tmp_path: Path) -> None:
    for name in ("b.jar", "a.jar", "own.jar"):
        (tmp_path / name).touch()
    environ = {"SPARK_DIST_CLASSPATH": f"{tmp_path}/*"}
    base = class_path({})
    assert base == sorted(base) and len(base) > 200
    assert class_path(environ) == [*base, *(f"{tmp_path}/{n}.jar" for n in ("a", "b", "own"))]
    settings = {**LOCAL, "spark.jars": f"{tmp_path}/own.jar, {tmp_path}/a.jar"}
    assert user_jars(settings) == [f"{tmp_path}/own.jar", f"{tmp_path}/a.jar"]
    assert can_start_directly(settings, environ)
    options = JvmOptions.from_settings(find_java(os.environ), settings)
    assert list(options.class_path) == [*base, *user_jars(settings)]


def test_a_directory_of_classes_goes_through_spark_submit(tmp_path: Path) -> None:
    assert not can_start_directly(LOCAL, {"SPARK_DIST_CLASSPATH": str(tmp_path)})


def test_machine_learning_and_hive_are_left_out() -> None:
    names = [Path(jar).name for jar in class_path({})]
    assert not [name for name in names if name.startswith(("spark-mllib_", "spark-hive"))]
    assert [name for name in names if name.startswith("spark-sql_")]


def test_users_options_come_after_ours() -> None:
    settings = {**LOCAL, "spark.driver.extraJavaOptions": "-XX:+UseSerialGC '-Da=b c'"}
    command = JvmOptions.from_settings(find_java(os.environ), settings).command_line(
        ["-Xmore"], {"spark.x": "y"}
    )
    at = [command.index(part) for part in ("-Xmore", "-XX:+UseSerialGC", "-Da=b c", "-Dspark.x=y")]
    assert at == sorted(at)
    assert command[-1].endswith("PythonGatewayServer")


@pytest.mark.slow
def test_the_options_are_those_of_sparks_own_launcher() -> None:
    """A new version of Spark may open other packages: then this list is to follow."""
    home = spark_home()
    java = find_java(os.environ)
    said = subprocess.run(
        [
            str(java.executable),
            *("-cp", f"{home}/jars/*"),
            "org.apache.spark.launcher.Main",
            "org.apache.spark.deploy.SparkSubmit",
            "pyspark-shell",
        ],
        env={**os.environ, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    theirs = [option for option in said.split("\0") if option.strip().startswith("-")]
    known = {"-cp", "-Xmx1g", "--add-modules=jdk.incubator.vector"}
    assert [option for option in theirs if option not in known] == list(MODULE_OPTIONS)


def test_a_jvm_that_ends_at_once_is_not_waited_for(tmp_path: Path) -> None:
    process = JvmProcess([sys.executable, "-c", "pass"], {"stderr": subprocess.DEVNULL})
    with pytest.raises(JvmExitError):
        process.connect()
    assert not Path(process._directory).exists()


def test_a_program_that_is_not_there_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway.tempfile, "tempdir", str(tmp_path))
    with pytest.raises(FileNotFoundError):
        JvmProcess([str(tmp_path / "java")], {})
    assert not list(tmp_path.iterdir())


def test_one_that_is_not_needed_is_ended(tmp_path: Path) -> None:
    process = JvmProcess([sys.executable, "-c", "input()"], {})
    process.kill()
    assert process.process.poll() is not None
    assert not Path(process._directory).exists()
