"""Each field says what of the machine it reaches, and configs that come by API are held to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from streamer.components import catalog
from streamer.config import parse_config
from streamer.config.sections import SECTIONS
from streamer.core.permissions import ALL, NONE
from streamer.sdk.spec import Access, Field, Kind, ParsedComponent
from streamer.sdk.spec.machine_access import (
    component_access_problems,
    find_access,
    find_database_access,
    is_local_address,
    needs_access,
)
from streamer.service.fleet.api_permissions import ApiPermissions


def walk(fields: tuple[Field, ...], path: str) -> Iterator[tuple[str, Field]]:
    for field in fields:
        name = f"{path}.{field.name}" if field.name else path
        yield name, field
        yield from walk(field.children, name)


def all_fields() -> list[tuple[str, Field]]:
    """Return the fields of all components, and of the sections that streams may have."""
    found: list[tuple[str, Field]] = []
    for kind, names in catalog.COMPONENTS.items():
        for name in names:
            spec = catalog.find_spec(kind, name)
            assert spec is not None
            found += walk((spec.body,), f"{kind} {name}")
    spark = next(field for field in SECTIONS if field.name == "spark")
    return [*found, *walk((spark,), "config")]


def test_every_field_that_may_reach_the_machine_says_what_it_reaches() -> None:
    found = all_fields()
    assert len(found) > 1400
    assert [path for path, field in found if field.access is None and needs_access(field)] == []


@pytest.mark.parametrize(
    ("name", "access"),
    [
        (r"_files?", {Access.FILE}),
        ("paths", {Access.FILE}),
        # A directory of HDFS is a name for its server.
        ("directory", {Access.FILE, Access.REMOTE}),
        ("dsn", {Access.DATABASE_URL}),
        ("driver", {Access.DATABASE}),
        ("network", {Access.NETWORK}),
        ("schema_path", {Access.SCHEMA_URL}),
        ("address", {Access.ADDRESS}),
        ("addresses", {Access.ADDRESS}),
        ("seed_brokers", {Access.ADDRESS}),
        # A queue of SQS is a name for its server; a catalog of tables may be a file.
        ("url", {Access.ADDRESS, Access.DATABASE_URL, Access.REMOTE}),
        ("urls", {Access.ADDRESS}),
    ],
)
def test_names_that_say_it_all_have_the_access_that_they_say(
    name: str, access: set[Access]
) -> None:
    ends = name.replace(r"_files?", "")
    hits = {
        path: field.access
        for path, field in all_fields()
        # Its paths are those of another machine.
        if path != "input sftp.paths"
        and (field.name == name if ends else field.name.endswith(("_file", "_files")))
        and field.type == "string"
    }
    assert hits and set(hits.values()) == access, hits


def test_what_opens_files_and_runs_programs_is_known() -> None:
    at = {path: field.access for path, field in all_fields()}
    files = {path for path, access in at.items() if access is Access.FILE and "file" not in path}
    assert files >= {"input csv.paths", "input parquet.paths", "config.spark.jars_directory"}
    assert at["output file.path"] is at["input file.paths"] is at["cache file.directory"]
    programs = {path for path, access in at.items() if access is Access.PROGRAM}
    assert programs == {
        "input subprocess.name",
        "processor command.name",
        "processor subprocess.name",
        "output subprocess.name",
    }
    python = {path for path, access in at.items() if access is Access.PYTHON}
    assert python == {"processor python.code", "processor python.call"}


def test_a_choice_of_words_with_a_local_one_among_them_has_a_rule() -> None:
    words = ("unix", "sqlite", "file:", "exec")
    for path, field in all_fields():
        if any(option.startswith(words) for option in field.options):
            assert field.access is not None, path


@pytest.mark.parametrize(
    "name", ["path", "key_path", "keytab", "url", "broker", "script", "environment", "library"]
)
def test_a_field_without_a_rule_is_refused(name: str) -> None:
    field = Field(name, "string", "Of a plugin that says nothing.")
    assert needs_access(field)
    assert find_access(field, "x", {}) == ("has no rule for what it reaches", "local")
    said = Field(name, "string", "Of one that does.", access=Access.NONE)
    assert find_access(said, "x", {}) is None


@pytest.mark.parametrize(
    "text",
    [
        "/var/run/docker.sock",
        "./x",
        "../x",
        "~/x",
        "@abstract",
        "unix:/tmp/x",
        "UNIX:/tmp/x",
        "unix:///tmp/x",
        "unixgram:///x",
        "file:///etc/passwd",
        "http+unix://%2Ftmp%2Fx/",
        "ws+unix:///tmp/x",
        "npipe:////./pipe/docker_engine",
        "/tmp/x:11211",
        "redis://a:1,unix:///tmp/x",
        "localhost:9092, /tmp/x",
        "x${! 1 }://a",
        "gopher://x",
    ],
)
def test_addresses_of_this_machine_s_files_are_known(text: str) -> None:
    assert is_local_address(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost:6000",
        ":6000",
        "0.0.0.0:80",
        "[::1]:80",
        "kafka-1:9092,kafka-2:9092",
        "http://user:p%2Fw@host:1/a/b?c=/d",
        "https://h/${! this.path }",
        '${! meta("url") }',
        "redis://:pw@h:6379/1",
        "rediss://h",
        "mqtts://h:1",
        "wss://h/x",
        "unit.example:80",
    ],
)
def test_addresses_of_servers_are_none_of_this_machine(text: str) -> None:
    assert not is_local_address(text)


@pytest.mark.parametrize(
    ("driver", "dsn", "found"),
    [
        ("postgres", "postgres://u:p@h:5432/n?sslmode=disable", ""),
        ("postgres", "host=h user=u password=p dbname=n", ""),
        ("postgres", "host=/var/run user=u password=p", "Unix socket"),
        ("postgres", "host=h,/var/run user=u password=p", "Unix socket"),
        ("postgres", "password=x@/ user=u host=/var/run", "Unix socket"),
        ("postgres", "postgres://u:p@%2Fvar%2Frun/n", "Unix socket"),
        ("postgres", "postgres://u:p@h/n?host=/var/run", "Unix socket"),
        ("postgres", "postgres://u:p@/n", "lacks host"),
        ("postgres", "postgres://u@h/n", "lacks password"),
        ("postgres", "postgres://u:p@h/n?sslrootcert=/etc/passwd", "sets sslrootcert"),
        ("postgres", "postgres://u:p@h/n?sslkey=/k&sslcert=/c", "sets sslcert, sslkey"),
        ("postgres", "postgres://u:p@h/n?passfile=/etc/passwd", "sets passfile"),
        ("postgres", "postgres://u:p@h/n?service=x", "sets service"),
        ("postgres", "nonsense", "cannot be read"),
        ("mysql", "u:p@tcp(h:1)/n", ""),
        ("mysql", "u:p@/n", ""),
        ("mysql", "u:p@unix(/run/mysqld/mysqld.sock)/n", "Unix socket"),
        ("mysql", "unix(/run/mysqld/mysqld.sock)/n", "Unix socket"),
        ("clickhouse", "clickhouse://h", ""),
        ("snowflake", "snowflake://h", "without a rule"),
    ],
)
def test_what_a_database_s_url_reaches(driver: str, dsn: str, found: str) -> None:
    said: Any = find_database_access(dsn, driver)
    assert (said is None) if not found else (found in said), said


def test_an_allowed_config_has_no_finding() -> None:
    config = parse_config("input: { file: { paths: [ /etc/passwd ] } }", "one.yaml")
    assert not list(ApiPermissions(local=True).lint_config(config))
    found = list(ApiPermissions(programs=True).lint_config(config))
    assert [(one.line, one.column) for one in found] == [(1, 10)]
    assert found[0].message == (
        "field paths of input file names a file of the service's machine, "
        "which is off for configs that come by API"
    )
    assert found[0].suggestion == "start the service with --allow-local"
    assert Kind.INPUT in catalog.COMPONENTS


def chains(fields: tuple[Field, ...], above: tuple[Field, ...] = ()) -> Iterator[tuple[Field, ...]]:
    for field in fields:
        yield (*above, field)
        yield from chains(field.children, (*above, field))


def value_of(chain: tuple[Field, ...], text: str) -> Any:
    """Return the value of the first field that has a text in the last one."""
    value: Any = text
    for below, field in zip((None, *reversed(chain[1:])), reversed(chain), strict=True):
        value = value if below is None else {below.name: value}
        value = [value] if field.shape == "array" else value
        value = {"k": value} if field.shape == "map" else value
    return value


def test_whoever_builds_a_component_looks_at_all_of_its_fields_again() -> None:
    looked = []
    for kind, names in catalog.COMPONENTS.items():
        for name in names:
            spec = catalog.find_spec(kind, name)
            assert spec is not None
            for chain in chains((spec.body,)):
                if chain[-1].access not in (Access.FILE, Access.PROGRAM, Access.PYTHON):
                    continue
                component = ParsedComponent(kind, name, config=value_of(chain, "x"))
                found = list(component_access_problems(component, spec, NONE))
                assert len(found) == 1, (kind, name, chain[-1].name)
                assert not list(component_access_problems(component, spec, ALL))
                looked.append(chain)
    assert len(looked) > 80
