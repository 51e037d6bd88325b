"""Which of the options that say how hard the JVM compiles is the one that holds."""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from streamer.config import parse_config
from streamer.spark.jvm import jvm_options
from streamer.spark.jvm.java import find_java
from streamer.spark.jvm.jvm_options import (
    EXECUTOR_OPTIONS_SETTING,
    FULL_OPTIMISATION_OPTION,
    per_message_jvm_settings,
)
from streamer.spark.session.session_start import _build_settings

DIRECTIVES = Path(jvm_options.__file__).with_name("compiler-directives.json")
OPTIONS = "spark.driver.extraJavaOptions"


def _levels(conf: Mapping[str, str], master: str = "local[2]", options: str = OPTIONS) -> list[str]:
    said = _build_settings("test", master, conf, "INFO").get(options) or ""
    return [option for option in said.split() if option.startswith("-XX:TieredStopAtLevel=")]


def test_the_option_of_kafka_comes_after_the_sessions_and_the_users_after_both() -> None:
    fast = "-XX:TieredStopAtLevel=1"
    assert _levels({}) == [fast]
    assert _levels(per_message_jvm_settings({})) == [fast, FULL_OPTIMISATION_OPTION]
    own = "-XX:TieredStopAtLevel=3"
    assert _levels(per_message_jvm_settings({OPTIONS: own})) == [
        fast,
        FULL_OPTIMISATION_OPTION,
        own,
    ]


def test_executors_optimise_only_where_they_handle_every_message() -> None:
    fast, cluster = "-XX:TieredStopAtLevel=1", "spark://host:7077"
    assert _levels({}, options=EXECUTOR_OPTIONS_SETTING) == []
    assert _levels({}, cluster, EXECUTOR_OPTIONS_SETTING) == [fast]
    assert _levels(per_message_jvm_settings({}), cluster, EXECUTOR_OPTIONS_SETTING) == [
        fast,
        FULL_OPTIMISATION_OPTION,
    ]
    own = "-XX:TieredStopAtLevel=3"
    assert _levels(
        per_message_jvm_settings({EXECUTOR_OPTIONS_SETTING: own}), cluster, EXECUTOR_OPTIONS_SETTING
    ) == [fast, FULL_OPTIMISATION_OPTION, own]
    # They have no file of ours when they start.
    assert "Directives" not in per_message_jvm_settings({})[EXECUTOR_OPTIONS_SETTING]


def test_executors_have_the_collector_that_the_user_wants() -> None:
    def collectors(conf: Mapping[str, str]) -> list[str]:
        said = (
            _build_settings("test", "spark://host:7077", conf, "INFO").get(EXECUTOR_OPTIONS_SETTING)
            or ""
        )
        return re.findall(r"Use\w+GC", said)

    assert collectors({}) == ["UseSerialGC"]
    assert collectors({EXECUTOR_OPTIONS_SETTING: "-verbose:gc -XX:+UseG1GC"}) == ["UseG1GC"]


def test_messages_have_a_larger_heap_unless_the_user_says_how_large_it_is() -> None:
    heap = "spark.driver.memory"
    ours = per_message_jvm_settings({})
    assert ours[heap] == "2g" and "-Xmn1g" in ours[OPTIONS].split()
    # Half a gigabyte has no room for a gigabyte of young objects.
    users = per_message_jvm_settings({heap: "512m"})
    assert heap not in users and "-Xmn1g" not in users[OPTIONS].split()


def test_all_cores_clear_the_heap_where_messages_are_rows() -> None:
    said = (
        _build_settings("test", "local[2]", per_message_jvm_settings({}), "INFO").get(OPTIONS) or ""
    )
    options = said.split()
    # Java refuses to start with two collectors: the session's is taken back first.
    assert options.index("-XX:+UseSerialGC") < options.index("-XX:-UseSerialGC")
    assert options.index("-XX:-UseSerialGC") < options.index("-XX:+UseParallelGC")


def test_java_takes_the_list_of_what_is_not_optimised() -> None:
    java = find_java(os.environ).home / "bin" / "java"
    [option] = [o for o in shlex.split(per_message_jvm_settings({})[OPTIONS]) if "Directives" in o]
    command = [java, "-XX:+UnlockDiagnosticVMOptions", option, "-version"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and "1 compiler directives added" in run.stdout, run.stderr


@pytest.mark.parametrize(
    "method",
    [
        "org/apache/kafka/common/record/DefaultRecord.readFrom",
        "org/apache/kafka/clients/consumer/internals/CompletedFetch.fetchRecords",
        "org/apache/spark/sql/kafka010/consumer/KafkaDataConsumer.get",
        "org/apache/spark/sql/catalyst/expressions/codegen/UnsafeWriter.write",
        "org/apache/spark/sql/catalyst/expressions/GeneratedClass$GeneratedIteratorForCodegenStage1.processNext",
        "org/apache/spark/sql/execution/arrow/ArrowWriter.write",
        "org/apache/arrow/vector/BaseVariableWidthVector.setSafe",
        "sun/security/ssl/SSLEngineImpl.unwrap",
        "com/sun/crypto/provider/GaloisCounterMode.implGCMCrypt",
        "java/util/zip/CRC32C.update",
    ],
)
def test_what_a_message_passes_is_optimised(method: str) -> None:
    text = DIRECTIVES.read_text()
    left = re.findall(r'^ +"(.+)",?$', text, re.MULTILINE)
    assert len(left) > 40
    assert not [pattern for pattern in left if fnmatch.fnmatchcase(method, pattern)]


def test_the_form_of_the_log_of_offsets_is_pinned() -> None:
    name = "spark.sql.streaming.offsetLog.formatVersion"
    config = parse_config(f"spark: {{ conf: {{ {name}: 1 }} }}", "own.yaml")
    assert config.spark["conf"] == {name: "1"}
    said = _build_settings("test", "local[2]", {}, "INFO")
    assert said.get(name) == "1"
