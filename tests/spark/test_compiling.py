"""Which of the options that say how hard the JVM compiles is the one that holds."""

from __future__ import annotations

from collections.abc import Mapping

from streamer.spark.compiling import HARD, for_messages
from streamer.spark.session import _settings

OPTIONS = "spark.driver.extraJavaOptions"


def _levels(conf: Mapping[str, str]) -> list[str]:
    said = _settings("test", "local[2]", conf, "INFO").get(OPTIONS) or ""
    return [option for option in said.split() if option.startswith("-XX:TieredStopAtLevel=")]


def test_the_option_of_kafka_comes_after_the_sessions_and_the_users_after_both() -> None:
    fast = "-XX:TieredStopAtLevel=1"
    assert _levels({}) == [fast]
    assert _levels(for_messages({})) == [fast, HARD]
    own = "-XX:TieredStopAtLevel=3"
    assert _levels(for_messages({OPTIONS: own})) == [fast, HARD, own]


def test_messages_have_a_larger_heap_unless_the_user_says_how_large_it_is() -> None:
    heap = "spark.driver.memory"
    ours = for_messages({})
    assert ours[heap] == "2g" and "-Xmn1g" in ours[OPTIONS].split()
    # Half a gigabyte has no room for a gigabyte of young objects.
    users = for_messages({heap: "512m"})
    assert heap not in users and "-Xmn1g" not in users[OPTIONS].split()


def test_all_cores_clear_the_heap_where_messages_are_rows() -> None:
    said = _settings("test", "local[2]", for_messages({}), "INFO").get(OPTIONS) or ""
    options = said.split()
    # Java refuses to start with two collectors: the session's is taken back first.
    assert options.index("-XX:+UseSerialGC") < options.index("-XX:-UseSerialGC")
    assert options.index("-XX:-UseSerialGC") < options.index("-XX:+UseParallelGC")
