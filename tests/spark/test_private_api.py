"""Every private part of Spark that may change unseen is as it is relied on.

With another PySpark this is where it shows, each part by its name and without a JVM: classes,
methods and texts are looked up in the jars. What does not fail by itself when it is missing is
counted while a program runs: see `streamer.spark.compat`.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import zipfile
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pyspark
import pytest

from streamer.engine.driver import failure_diagnosis
from streamer.spark.checkpoint import remote_checkpoint
from streamer.spark.cluster import worker_preflight
from streamer.spark.compat import Fallback, Fallbacks, note_missing_modules
from streamer.spark.fork_server.fork_client import DAEMONS, PLANNERS
from streamer.spark.fork_server.worker_daemon import WORKER_MODULES
from streamer.spark.query.idle_worker_monitors import _OUTER_FIELD
from streamer.spark.session.session_start import SETTINGS

JARS = Path(pyspark.__file__).parent / "jars"
PYTHON = "org.apache.spark.api.python"
SQL = "org.apache.spark.sql"
SEQ = "Lscala/collection/immutable/Seq;"


@cache
def jar_of(name: str) -> zipfile.ZipFile:
    """Return the one jar of a library, by its name without its versions."""
    found = [one for one in JARS.glob("*.jar") if re.fullmatch(rf"{name}[_-][\d.]+.*", one.name)]
    found = [one for one in found if "sources" not in one.name]
    assert len(found) == 1, f"no jar {name} in {JARS}: Spark's jars are cut otherwise"
    return zipfile.ZipFile(found[0])


def class_file(jar: str, name: str) -> bytes:
    """Return a class as its jar has it; its constants are in there as they are."""
    path = f"{name.replace('.', '/')}.class"
    assert path in jar_of(jar).namelist(), f"Spark has no class {name} any more"
    return jar_of(jar).read(path)


def assert_has(jar: str, name: str, *texts: str) -> None:
    body = class_file(jar, name)
    missing = [text for text in texts if text.encode() not in body]
    assert missing == [], f"Spark's {name} has no {missing} any more"


def parameters(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


@cache
def error_conditions() -> dict[str, Any]:
    conditions: dict[str, Any] = json.loads(
        jar_of("spark-common-utils").read("error/error-conditions.json")
    )
    return conditions


def condition_names() -> list[str]:
    below = (one.get("subClass", ()) for one in error_conditions().values())
    return [*error_conditions(), *chain.from_iterable(below)]


# What forks Python processes: `streamer.spark.fork_server`.


def test_what_forked_processes_call_takes_what_it_is_given() -> None:
    from pyspark.daemon import manager
    from pyspark.serializers import write_int
    from pyspark.util import local_connect_and_auth

    assert parameters(manager) == []
    assert parameters(write_int) == ["value", "stream"]
    assert parameters(local_connect_and_auth) == ["conn_info", "auth_secret"]


def test_a_planner_introduces_itself_to_spark_as_it_is_done_for_a_forked_one() -> None:
    from pyspark.worker_util import get_sock_file_to_executor

    # What `_run_planner` does is a copy of this.
    source = inspect.getsource(get_sock_file_to_executor)
    lines = (
        '"PYTHON_WORKER_FACTORY_SOCK_PATH", int(os.environ.get("PYTHON_WORKER_FACTORY_PORT", -1))',
        'auth_secret = os.environ.get("PYTHON_WORKER_FACTORY_SECRET")',
        "sock_file, sock = local_connect_and_auth(conn_info, auth_secret)",
        "write_int(os.getpid(), sock_file)",
        "sock_file.flush()",
    )
    positions = [source.find(line) for line in lines]
    assert -1 not in positions, f"a planner begins otherwise now:\n{source}"
    assert positions == sorted(positions)
    variables = ("PORT", "SOCK_PATH", "SECRET")
    names = [f"PYTHON_WORKER_FACTORY_{variable}" for variable in variables]
    assert_has("spark-core", f"{PYTHON}.PythonWorkerFactory", *names)


@pytest.mark.parametrize(
    ("module", "java"),
    [
        (
            PLANNERS[0],
            "PythonStreamingSourceRunner",
        ),
        (
            PLANNERS[1],
            "TransformWithStateInPySparkExec",
        ),
    ],
)
def test_spark_starts_planners_by_the_names_that_are_forked(module: str, java: str) -> None:
    assert_has("spark-sql", f"org.apache.spark.sql.execution.python.streaming.{java}", module)
    assert parameters(importlib.import_module(module).main) == ["infile", "outfile"]


def test_all_modules_that_are_imported_ahead_are_there() -> None:
    fallbacks = Fallbacks()
    note_missing_modules((*PLANNERS, *DAEMONS, *WORKER_MODULES), fallbacks)
    lines: list[str] = []
    fallbacks.log_new(lambda level, text, fields: lines.append(text))
    assert (fallbacks.counts()[Fallback.MISSING_MODULE], lines) == (0, [])


# What ends threads that Spark leaves behind: `streamer.spark.query.idle_worker_monitors`.


def test_threads_that_look_after_idle_workers_are_called_as_they_are_looked_for() -> None:
    factory = f"{PYTHON}.PythonWorkerFactory"
    assert_has("spark-core", f"{factory}$MonitorThread", "Idle Worker Monitor for ", _OUTER_FIELD)
    assert_has("spark-core", factory, "useDaemonEnabled", "()Z")
    finder = "org.apache.commons.lang3.ThreadUtils"
    assert_has("commons-lang3", finder, "findThreadsByName", "(Ljava/lang/String;)")


# What is read of Spark's checkpoint, and the classes and settings that are named.


def test_the_log_of_offsets_can_be_held_at_the_form_that_is_read() -> None:
    assert SETTINGS["spark.sql.streaming.offsetLog.formatVersion"] == "1"
    package = "org.apache.spark.sql.execution.streaming.checkpointing"
    assert_has("spark-sql", f"{package}.OffsetSeqLog$", "VERSION_1")
    assert_has("spark-sql", f"{package}.HDFSMetadataLog", "java/lang/String")
    assert_has("spark-sql", f"{package}.CommitLog$", "VERSION_1")


@pytest.mark.parametrize(
    "name",
    [
        SETTINGS["spark.sql.streaming.checkpointFileManagerClass"],
        SETTINGS["spark.sql.streaming.stateStore.providerClass"],
        remote_checkpoint._RENAMING_FILE_MANAGER,
    ],
)
def test_classes_that_settings_name_are_there(name: str) -> None:
    class_file("spark-sql", name)


def test_file_managers_for_s3_have_the_base_that_spark_asks_for() -> None:
    # The class itself is in a jar that is fetched when a checkpoint is in S3.
    package = "org.apache.spark.sql.execution.streaming.checkpointing"
    class_file("spark-sql", f"{package}.CheckpointFileManager")
    class_file("spark-sql", f"{package}.AbstractFileContextBasedCheckpointFileManager")


def test_settings_of_streaming_have_the_names_that_spark_knows() -> None:
    names = [name for name in SETTINGS if name.startswith("spark.sql.streaming.")]
    known = class_file("spark-catalyst", "org.apache.spark.sql.internal.SQLConf$")
    rocksdb = class_file("spark-sql", "org.apache.spark.sql.execution.streaming.state.RocksDBConf$")
    unknown = [name for name in names if name.encode() not in known]
    prefix = "spark.sql.streaming.stateStore.rocksdb."
    of_state = [name.removeprefix(prefix) for name in unknown if name.startswith(prefix)]
    assert [one for one in unknown if not one.startswith(prefix)] == []
    assert [one for one in of_state if one.removesuffix(".enabled").encode() not in rocksdb] == []


# What `streamer submit` asks of a standalone cluster's master: `cluster.standalone_master`.


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        (
            "rpc.RpcEnv$",
            (
                "create",
                "(Ljava/lang/String;Ljava/lang/String;ILorg/apache/spark/SparkConf;"
                "Lorg/apache/spark/SecurityManager;Z)Lorg/apache/spark/rpc/RpcEnv;",
            ),
        ),
        ("rpc.RpcEnv", ("setupEndpointRef",)),
        ("rpc.RpcAddress", ("fromSparkURL",)),
        ("rpc.RpcEndpointRef", ("askSync", "(Ljava/lang/Object;Lscala/reflect/ClassTag;)")),
        ("SecurityManager$", ("$lessinit$greater$default$2", "$lessinit$greater$default$3")),
        ("deploy.Command", (f"(Ljava/lang/String;{SEQ}Lscala/collection/Map;{SEQ}{SEQ}{SEQ})V",)),
        (
            "deploy.DriverDescription",
            (f"(Ljava/lang/String;IIZLorg/apache/spark/deploy/Command;{SEQ})V",),
        ),
        (
            "deploy.DeployMessages$RequestSubmitDriver",
            ("(Lorg/apache/spark/deploy/DriverDescription;)V",),
        ),
        ("deploy.DeployMessages$RequestMasterState$", ()),
        ("deploy.DeployMessages$RequestDriverStatus", ("(Ljava/lang/String;)V",)),
        ("deploy.DeployMessages$RequestKillDriver", ("(Ljava/lang/String;)V",)),
        ("util.Utils$", ("responseFromBackup", "memoryStringToMb")),
        ("api.python.PythonUtils", ("toSeq", "toScalaMap")),
        # What a service that stands by asks for: `cluster.standby_executors`.
        (
            "SparkContext",
            (
                *("requestTotalExecutors", "(IILscala/collection/immutable/Map;)Z"),
                *("requestExecutors", "(I)Z", "killExecutor", "statusStore"),
            ),
        ),
    ],
)
def test_what_is_asked_of_sparks_core_takes_what_it_is_given(
    name: str, texts: tuple[str, ...]
) -> None:
    assert_has("spark-core", f"org.apache.spark.{name}", *texts)


@pytest.mark.parametrize(
    ("jar", "name", "texts"),
    [
        ("hadoop-client-api", "org.apache.hadoop.conf.Configuration", ("updatingResource",)),
        ("spark-catalyst", f"{SQL}.internal.SQLConf$", ("fallbackConf", "getFallbackConf")),
        ("spark-sql", f"{SQL}.internal.SharedState", ("statusStore",)),
        ("spark-sql", f"{SQL}.execution.ui.SQLAppStatusStore", ("listener", "()Lscala/Option;")),
        ("spark-core", "org.apache.spark.scheduler.LiveListenerBus", ("removeListener",)),
    ],
)
def test_what_costs_micro_batches_for_nothing_is_where_it_is_taken_out(
    jar: str, name: str, texts: tuple[str, ...]
) -> None:
    """By `jvm.lean_batches`."""
    assert_has(jar, name, *texts)


# The texts by which failures are known: `engine.driver.failure_diagnosis`, `worker_preflight`.


@pytest.mark.parametrize(
    ("jar", "name", "text", "pattern"),
    [
        (
            *(
                "spark-core",
                f"{PYTHON}.BasePythonRunner$ReaderIterator$$anonfun$1",
            ),
            "Python worker exited unexpectedly (crashed)",
            failure_diagnosis._WORKER_ENDED,
        ),
        (
            *("spark-core", f"{PYTHON}.PythonWorkerFactory"),
            "Python worker failed to connect back.",
            failure_diagnosis._WORKER_NOT_STARTED,
        ),
        ("spark-core", "org.apache.spark.util.Utils$", " exited with code ", re.compile("code")),
    ],
)
def test_spark_says_of_workers_what_is_known_of_it(
    jar: str, name: str, text: str, pattern: re.Pattern[str]
) -> None:
    assert_has(jar, name, text)
    assert pattern.search(text)


def test_spark_says_of_state_and_checkpoints_what_is_known_of_it() -> None:
    for name in ("CANNOT_LOAD_STATE_STORE", "CHECKSUM_VERIFICATION_FAILED", "MALFORMED_LOG_FILE"):
        known = any(name in one for one in condition_names())
        assert known, f"Spark has no error condition {name} any more"
        assert failure_diagnosis._UNREADABLE_STATE.search(name)
    texts = [
        " ".join(one.get("message", ()))
        for condition in error_conditions().values()
        for one in (condition, *condition.get("subClass", {}).values())
    ]
    advised = [text for text in texts if failure_diagnosis._NEW_CHECKPOINT_ADVICE.search(text)]
    assert advised, "no error condition advises a new checkpoint any more"


def test_python_says_that_its_versions_differ_as_it_is_known() -> None:
    conditions = json.loads(
        (Path(pyspark.__file__).parent / "errors/error-conditions.json").read_text()
    )
    text = " ".join(conditions["PYTHON_VERSION_MISMATCH"]["message"])
    text = text.replace("<worker_version>", "3.11").replace("<driver_version>", "3.12")
    found = worker_preflight._VERSION_MISMATCH.search(text)
    assert found and found.groups() == ("3.11", "3.12")


# What a micro-batch costs less by: `spark.query.batch_callback`, `spark.query.source`.


def test_spark_calls_for_each_batch_as_python_registers_it() -> None:
    helper = "org.apache.spark.sql.execution.streaming.sources.PythonForeachBatchHelper"
    assert_has("spark-sql", helper, "callForeachBatch")
    assert_has("spark-sql", helper.replace("Helper", "Function"), "call")


def test_rows_of_a_single_partition_come_with_the_plan() -> None:
    # The planner hands them out when its reader is of this class, after the partitions.
    source = inspect.getsource(importlib.import_module(PLANNERS[0]).partitions_func)
    lines = ("partitions = reader.partitions(", "isinstance(reader, _SimpleStreamReaderWrapper)")
    positions = [source.find(one) for one in (*lines, "reader.getCache(start_offset, end_offset)")]
    assert -1 not in positions and positions == sorted(positions), source
    package = "org.apache.spark.sql.execution.datasources.v2.python"
    assert_has(
        "spark-sql", f"{package}.PythonMicroBatchStreamBase", "cachedInputPartition", "dropCache"
    )


def test_classes_that_the_own_classes_use_are_as_they_were_compiled_for() -> None:
    sql = "org.apache.spark.sql.execution.LogicalRDD"
    assert_has("spark-sql", sql, "()Lorg/apache/spark/rdd/RDD;")
    assert_has("spark-core", "org.apache.spark.api.python.PythonRDD", "serveIterator")
    assert_has("hadoop-client-api", "org.apache.hadoop.fs.RawLocalFileSystem", "setPermission")


def test_the_connection_of_a_context_can_be_replaced() -> None:
    from pyspark import SparkContext

    for name in ("_gateway", "_jvm", "_active_spark_context"):
        assert name in vars(SparkContext), f"PySpark's SparkContext has no {name} any more"
    source = inspect.getsource(SparkContext._ensure_initialized)
    assert "if not SparkContext._gateway" in source
