"""The one import order, the layout of the repository, and what the command line starts with.

Imports are looked at wherever they stand: at the top, in functions, under `TYPE_CHECKING`, and as
the names of modules that are imported when they are needed.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest

from streamer.components.catalog import COMPONENTS, module_name
from tests.slowness import relative_cpu

ROOT = Path(__file__).parents[1]

# Low to high: a room imports nothing of a later one.
ROOMS = (
    *("core", "bloblang", "window", "sdk", "connectors", "components", "config", "plan", "engine"),
    *("spark", "tools", "service", "cli"),
)
# The wheel carries its licence in the package, and so do the image and the workers' archive.
BESIDE_ROOMS = {"docs", "__init__.py", "__main__.py", "py.typed", "LICENSE"}

COMPONENT_KINDS = tuple(sorted({module_name(kind, "x").split(".")[2] for kind in COMPONENTS}))

# Low to high inside of a room, of which those of a tuple import nothing of each other.
INNER_ROOMS: dict[str, tuple[str | tuple[str, ...], ...]] = {
    "window": (
        *(
            "settings",
            "contract",
            "state_store",
            "pack",
            "evaluate",
            "aggregate",
            "assign",
            "state",
            "fire",
        ),
        *(("panes", "keyed"), "shard", "rescale", "inspect"),
    ),
    "sdk": (
        ("api_version", "monitoring", "spec", "worker_resources"),
        "deferred_resource",
        ("regex_field", "component_ref", "mapping_query", "backoff", "sync_response"),
        ("metadata_filter", "rate_limit", "cache", "processing", "thread_pool", "window_buffer"),
        "lookup_table",
        ("input", "output"),
        "testing",
    ),
    "connectors": (
        (
            "tls",
            "files",
            "generated",
            "javascript",
            "merged_source",
            "otlp",
            "protobuf",
            "subprocess_client",
            "wasm",
        ),
        ("http_client", "loop_thread", "mongodb", "mqtt", "objects", "secrets", "spool"),
        ("amqp", "aws", "azure", "cassandra", "google", "hdfs", "inproc", "nats"),
        "locations",
        ("amqp_1", "formats", "http_server", "kafka", "redis", "search", "sql", "tables"),
        ("cdc", "delta", "duckdb", "expectations", "iceberg", "python", "schema_registry", "sftp"),
        "ai",
        "qdrant",
    ),
    "components": (
        COMPONENT_KINDS,
        *("component_names", "plugin_index", "plugin_specs", "plugins", "catalog"),
    ),
    "engine": ("report", ("planner", "results"), ("canary", "stage"), "driver", "offline"),
    "spark": (
        *("compat", ("jvm", "tasks", "worker_archive"), ("checkpoint", "cluster")),
        *("jars", "query", "fork_server", "session"),
    ),
    "tools": (
        *(
            "drawing",
            "text_style",
            "docs_index",
            "docs_search",
            "markdown_rendering",
            "child_environment",
            (
                *("graph", "timeline", "playground", "unit_tests", "tap", "dry_run", "migration"),
                *("component_kit", "simulation", "comparison"),
            ),
            ("cost", "doctor", "config_trial"),
        ),
    ),
    "service": (
        *(("access", "monitoring"), ("backfill", "console", "run")),
        *("fleet", "api", "library"),
    ),
}

# A component imports no other component, except what is named here.
NEIGHBOURS = {
    # What a command prints is cut into lines, which it has no field to change.
    ("streamer.components.inputs.subprocess", "streamer.components.scanners.lines"),
    # Two names of one processor.
    ("streamer.components.processors.bloblang", "streamer.components.processors.mapping"),
    # The page of all metrics is made of their list.
    ("streamer.components.metrics.docs_page", "streamer.components.metrics.metric_names"),
    ("streamer.components.metrics.docs_page", "streamer.components.metrics.metric"),
    ("streamer.components.metrics.process_metrics", "streamer.components.metrics.metric"),
    ("streamer.components.metrics.metric_names", "streamer.components.metrics.process_metrics"),
    ("streamer.components.metrics.metric_names", "streamer.components.metrics.component_metrics"),
    ("streamer.components.metrics.metric_names", "streamer.components.metrics.stream_metrics"),
    ("streamer.components.metrics.component_metrics", "streamer.components.metrics.metric"),
    ("streamer.components.metrics.stream_metrics", "streamer.components.metrics.metric"),
}

# The test kit for authors is a door of `sdk` to `tools`: no module of ours goes through it.
TEST_KIT = "streamer.sdk.testing"

# The package itself is the door for programs: its names are those of the library in `service`.
LIBRARY_DOOR = "streamer"

# What workers need is packed without Spark.
WORKER_ARCHIVE = "streamer.spark.worker_archive"

# Definitions of windows in few lines, which all that `window/` does is compared with.
TESTS_OF_THEIR_OWN = {"spark/upgrades", "window/oracle"}

TOP_LEVEL = {"pyproject.toml", "streamer", "configs", "schemas", "tests", "deploy", "README.md"}
GRAB_BAGS = {"utils", "util", "helpers", "helper", "common", "base", "misc"}
LONGEST = 500
REASON = "In one file because "
STARTS_WITHOUT = (
    *("pyspark", "pyarrow", "duckdb", "numpy", "jsonschema", "aiohttp", "httpx2", "prompt_toolkit"),
)
_SPECS_PROBE = f"""
import sys
from streamer.components import catalog
assert len(list(catalog.all_specs())) > 200
print(*(name for name in {STARTS_WITHOUT!r} if name in sys.modules and name != "httpx2"))
"""
_MODULE_NAME = re.compile(r"(streamer|pyspark)(\.\w+)+")


class Import(NamedTuple):
    """One import: who, what, and how.

    Attributes:
        module: the module that imports.
        target: the module that is imported.
        line: where.
        at_start: whether importing `module` imports `target` too.
    """

    module: str
    target: str
    line: int
    at_start: bool

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


SOURCES = {_dotted(path): path for path in sorted((ROOT / "streamer").rglob("*.py"))}


def _room(module: str, depth: int = 1) -> str:
    """Return the room of `streamer` that a module is in, or the room in that; "" above them."""
    return ".".join(module.split(".")[depth : depth + 1])


def _targets(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.module is not None and node.level == 0, "imports are absolute"
        below = [f"{node.module}.{alias.name}" for alias in node.names]
        # `from streamer import catalog` imports a module, `from streamer.core.errors import Lint`
        # none.
        return [name if name in SOURCES else node.module for name in below]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        name = node.value
        if _MODULE_NAME.fullmatch(name) and (name in SOURCES or name.startswith("pyspark")):
            return [name]
    return []


def _later(tree: ast.Module) -> set[ast.AST]:
    """Return the nodes that do not run when the module is imported."""
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        type_checking = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or type_checking:
            found.update(chain.from_iterable(map(ast.walk, ast.iter_child_nodes(node))))
    return found


@cache
def imports() -> tuple[Import, ...]:
    """Return every import of our own modules and of pyspark."""
    found = set()
    for module, path in SOURCES.items():
        tree = ast.parse(path.read_text(), str(path))
        later = _later(tree)
        for node in ast.walk(tree):
            for target in _targets(node):
                if target.split(".")[0] in ("streamer", "pyspark") and target != module:
                    # The name of a module in a text is imported at some time, not at the start.
                    at_start = node not in later and not isinstance(node, ast.Constant)
                    found.add(Import(module, target, getattr(node, "lineno", 0), at_start))
    return tuple(sorted(found))


def _texts(found: list[Import]) -> list[str]:
    return [str(one) for one in found]


def test_the_package_has_thirteen_rooms() -> None:
    assert len(ROOMS) == len(set(ROOMS)) == 13
    below = {path.relative_to(ROOT / "streamer").parts[0] for path in _tracked("streamer")}
    assert below == {*ROOMS, *BESIDE_ROOMS}


@pytest.mark.parametrize("room", INNER_ROOMS)
def test_rooms_in_rooms_have_their_place_in_the_order(room: str) -> None:
    inner = {_room(module, 2) for module in SOURCES if _room(module) == room}
    assert inner - {""} == set(_ranks(INNER_ROOMS[room]))


def test_tests_stand_where_what_they_test_does() -> None:
    places = {path.parent.relative_to(ROOT / "tests") for path in _tracked("tests")}
    # Of what is no Python, `data/` and the like may stand beside the tests.
    ours = {one for one in places if one.parts and one.parts[0] in ROOMS}
    code = {one for one in ours if any((ROOT / "tests" / one).glob("*.py"))}
    missing = {str(one) for one in code if not any((ROOT / "streamer" / one).glob("*.py"))}
    assert missing == TESTS_OF_THEIR_OWN


def test_imports_are_found_at_the_top_in_functions_and_in_texts() -> None:
    edges = {(one.module, one.target, one.at_start) for one in imports()}
    assert ("streamer.window.contract", "streamer.window.settings.back_pressure", True) in edges
    assert ("streamer.cli.run_stream", "streamer.spark.session.session_start", False) in edges
    assert ("streamer.cli.main", "streamer.cli.run_stream", False) in edges
    assert ("streamer.window", "streamer.window.shard", False) in edges  # TYPE_CHECKING
    assert ("streamer.config.components", "streamer.components.catalog", True) in edges


def _ranks(order: tuple[str | tuple[str, ...], ...]) -> dict[str, int]:
    return {
        room: rank
        for rank, rooms in enumerate(order)
        for room in ((rooms,) if isinstance(rooms, str) else rooms)
    }


def test_imports_follow_the_order() -> None:
    # The package itself is the lowest of all, and what starts it the highest.
    ranks = {"": -1, **_ranks(ROOMS), "__main__": len(ROOMS)}
    wrong = [
        one
        for one in imports()
        if one.target.startswith("streamer")
        and ranks[_room(one.target)] > ranks[_room(one.module)]
        and one.module not in (TEST_KIT, LIBRARY_DOOR)
    ]
    assert _texts(wrong) == []
    assert [str(one) for one in imports() if one.target == TEST_KIT] == []


@pytest.mark.parametrize("room", INNER_ROOMS)
def test_imports_in_a_room_follow_its_order(room: str) -> None:
    # What the room itself offers is above all that is in it, and nothing in it imports that.
    ranks = {**_ranks(INNER_ROOMS[room]), "": len(INNER_ROOMS[room])}
    wrong = [
        one
        for one in imports()
        if _room(one.module) == _room(one.target) == room
        and (low := _room(one.target, 2)) != (high := _room(one.module, 2))
        and ranks[low] >= ranks[high]
        and (one.module, one.target) not in NEIGHBOURS
    ]
    assert _texts(wrong) == []


def test_components_do_not_import_each_other() -> None:
    between = {
        (one.module, one.target)
        for one in imports()
        if _room(one.module) == _room(one.target) == "components"
        and _room(one.module, 2) != "catalog"
        and _room(one.target, 3)
    }
    assert between == NEIGHBOURS


def test_only_the_spark_package_imports_pyspark() -> None:
    outside = [
        one
        for one in imports()
        if one.target.startswith("pyspark") and _room(one.module) != "spark"
    ]
    assert _texts(outside) == []


def test_what_is_tested_without_a_jvm_imports_no_pyspark() -> None:
    free = {
        f"streamer.spark.{name}"
        for name in ("checkpoint.checkpoint", "jvm.java", "jvm.launchers", "tasks.shard_labels")
    }
    free |= {module for module in SOURCES if module.startswith(WORKER_ARCHIVE)}
    assert free <= set(SOURCES)
    assert [str(one) for one in imports() if one.module in free and "pyspark" in one.target] == []


def test_the_spark_package_is_imported_when_a_stream_starts_and_not_before() -> None:
    early = [
        one
        for one in imports()
        if one.at_start
        and _room(one.target) == "spark" != _room(one.module)
        and not one.target.startswith(WORKER_ARCHIVE)
    ]
    assert _texts(early) == []


def _assert_no_circle(found: list[Import]) -> None:
    edges: dict[str, set[str]] = {}
    for one in found:
        edges.setdefault(one.module, set()).add(one.target)
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, " → ".join((*way[way.index(module) :], module))
        if module not in done:
            for target in sorted(edges.get(module, ())):
                visit(target, (*way, module))
            done.add(module)

    for module in SOURCES:
        visit(module, ())


def test_modules_do_not_import_each_other_in_circles() -> None:
    _assert_no_circle([one for one in imports() if one.at_start and one.target in SOURCES])


def test_modules_of_bloblang_do_not_import_each_other_in_circles_by_functions_or_texts() -> None:
    package = "streamer.bloblang."
    inner = [one for one in imports() if one.module.startswith(package) and one.target in SOURCES]
    assert any(not one.at_start for one in inner), "imports in functions are among them"
    _assert_no_circle(inner)


@cache
def _tracked(under: str = ".") -> tuple[Path, ...]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    command = ["git", "ls-files", "-z", under]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    paths = (ROOT / name for name in listed.stdout.decode().split("\0") if name)
    return tuple(path for path in paths if path.exists())


def test_the_top_level_is_what_it_is_said_to_be() -> None:
    top = {path.relative_to(ROOT).parts[0] for path in _tracked()}
    assert {name for name in top if not name.startswith(".")} == TOP_LEVEL


def test_no_file_is_a_grab_bag() -> None:
    names = [path.relative_to(ROOT) for path in _tracked()]
    assert [name for name in names if {Path(part).stem for part in name.parts} & GRAB_BAGS] == []


def test_long_files_say_why() -> None:
    long = []
    for path in _tracked():
        if path.suffix == ".py" and len((text := path.read_text()).splitlines()) > LONGEST:
            docstring = ast.get_docstring(ast.parse(text)) or ""
            long += [] if REASON in docstring else [str(path)]
    assert long == []


def test_no_path_of_a_machine_is_in_a_file() -> None:
    # Put together, so that this file is not found itself.
    private = re.compile(rf"(?<![\w.}}])/({'work'}|{'root'})(?![\w-])")
    # Images have a home of root's too, wherever they are built.
    images = ("deploy/Dockerfile", "deploy/image/", "tests/deploy/")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in _tracked()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if private.search(line)
        and not (str(path.relative_to(ROOT)).startswith(images) and f"/{'root'}/." in line)
    ]
    assert found == []


def test_what_must_be_on_the_disk_is_written_by_the_one_way_that_every_system_has() -> None:
    found = [
        module
        for module, path in SOURCES.items()
        if re.search(r"\bf(data)?sync\b", path.read_text()) and module != "streamer.core.disk"
    ]
    assert found == []


_PROBE = f"""
import shlex, sys, time
from streamer.cli.main import invoke
codes = [invoke(shlex.split(command)) for command in sys.argv[1:]]
loaded = [name for name in {STARTS_WITHOUT!r} if name in sys.modules]
print("PROBE", max(codes), time.process_time(), *loaded, file=sys.stderr)
"""


class Started(NamedTuple):
    code: int
    seconds: float
    loaded: list[str]


def _start(*commands: str) -> Started:
    """Start Python, and let it run commands one after the other."""
    run = subprocess.run(
        [sys.executable, "-c", _PROBE, *commands],
        cwd=ROOT,
        input=b'{"a": 1}\n',
        capture_output=True,
        timeout=60,
        # A start that compiles all modules says nothing about the second one.
        env={k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
    )
    *_, last = run.stderr.decode().splitlines()
    mark, code, seconds, *loaded = last.split()
    assert mark == "PROBE", run.stderr
    return Started(int(code), float(seconds), loaded)


# What several take together in one process, none of them takes alone.
@pytest.mark.parametrize(
    "commands",
    [
        ("blobl 'root.b = this.a + 1'",),
        (
            *(f"{name} --help" for name in ("", "test", "timeline", "tap", "dry-run", "run")),
            *("blobl server --help", "list bloblang-methods", "create"),
            "docs processors mapping",
        ),
        (
            "lint configs/traffic_light.yaml",
            *(f"{name} -c configs/traffic_light.yaml" for name in ("explain", "echo", "graph")),
            "explain -c configs/event_time_late.yaml",
            "diff configs/traffic_light.yaml configs/traffic_light.yaml",
        ),
    ],
    ids=["a mapping", "help and lists", "configs"],
)
def test_a_command_that_needs_no_spark_starts_at_once(commands: tuple[str, ...]) -> None:
    started = _start(*commands)
    assert (started.code, started.loaded) == (0, [])
    assert started.seconds < 0.5 or relative_cpu(0.5, lambda: _start(*commands).seconds) < 1


def test_the_specs_of_all_components_need_no_library_of_theirs() -> None:
    """The schema, `list` and completion have them all."""
    run = subprocess.run(
        [sys.executable, "-c", _SPECS_PROBE], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (run.stdout, run.returncode) == ("\n", 0), run.stderr
