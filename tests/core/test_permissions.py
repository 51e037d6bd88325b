"""What a config may do is asked where something is opened, and nothing is opened past that."""

from __future__ import annotations

import ast
import pickle
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from streamer.bloblang import compile_interpolation
from streamer.components.caches.file import FileCache
from streamer.components.catalog import build_context
from streamer.components.inputs.subprocess import SubprocessInput
from streamer.components.outputs.socket import SocketConnection
from streamer.components.outputs.subprocess import OutputProcess
from streamer.components.processors.command import CommandProcessor
from streamer.components.scanners.lines import LineScanner
from streamer.config import parse_config
from streamer.connectors.files.file_source import FileSource
from streamer.connectors.formats.schema_text import read_schema
from streamer.connectors.spool.sockets import bind_socket
from streamer.connectors.sql.drivers import find_driver
from streamer.connectors.subprocess_client import LINES, RunError, SubprocessClient
from streamer.connectors.tls import tls_context
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.core.permissions import (
    ALL,
    NONE,
    NotPermittedError,
    Permissions,
    current_permissions,
    limit_permissions,
)
from streamer.engine.driver.writers import FileWriter
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.plan.component_text import parse_component
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields
from tests.components.inputs.rooms import lodging
from tests.servers.hostile import raw_server

EX = Execution(lambda: 0)
ROOT = Path(__file__).parents[2] / "streamer"

OPENERS = {"components", "connectors", "sdk"}
"""The parts of the program that open what fields of components name."""

_SPOOL, _LISTED = "the spool in the checkpoint", "files that Files has listed, which asks"
OWN_FILES = {
    "components/inputs/socket_server.py": "asks for each name",
    "components/rate_limits/local.py": "a file of the run's own directory",
    "connectors/files/line_files.py": _LISTED,
    "connectors/files/file_identity.py": _LISTED,
    "connectors/azure/account.py": "the port of an emulator",
    "connectors/duckdb/child_process.py": "a process of this program, which opens no file",
    "connectors/duckdb/child_server.py": "how much memory its own process has",
    "connectors/files/file_source.py": "its own `expand`, whose callers ask",
    "connectors/files/scanned_files.py": _LISTED,
    "connectors/files/tar_entries.py": "a stream that is open",
    "connectors/formats/grok/patterns.py": "patterns that come with the program",
    "connectors/google/api.py": "the address of an emulator",
    "connectors/http_server/component_server.py": "its callers ask for its certificate's names",
    "connectors/hdfs/client.py": "the user's name for the library, which reads it there",
    "connectors/iceberg/data_files.py": "a file of a table that may be written, which it has made",
    "connectors/iceberg/file_rows.py": "its reader asks for each name",
    "connectors/javascript/runtime.py": "a file that comes with the program",
    "components/processors/python.py": "the source of an installed module, which python allows",
    "connectors/protobuf/compiler.py": "a directory that it makes itself",
    "connectors/python/mapping_functions.py": "the source of a module, which python allows",
    "connectors/python/memory.py": "the size of its own process",
    "connectors/locations/stores.py": "credentials of the clouds' chains, after it has asked",
    "connectors/objects/read_objects.py": "what an input has read, in the checkpoint",
    "connectors/python/modules.py": "modules beside the config, where local and python allow it",
    "connectors/secrets/lookup.py": "the environment of the program, for stores of --secrets",
    "connectors/secrets/vault_login.py": "tokens of the program, for stores of --secrets",
    "connectors/spool/byte_spool.py": _SPOOL,
    "connectors/spool/checksums.py": _SPOOL,
    "connectors/spool/damage.py": _SPOOL,
    "connectors/spool/pointer.py": _SPOOL,
    "connectors/spool/self_signed.py": "a certificate that it makes itself",
    "connectors/spool/spool_source.py": _SPOOL,
    "connectors/spool/store.py": _SPOOL,
    "connectors/sql/sqlite.py": "asks for the name",
    "connectors/tables/growing_places.py": "asks for each name",
    "connectors/tables/parquet_journal.py": _SPOOL,
    "connectors/tls.py": "asks for each name, and a file that it makes itself",
    "sdk/cache/shared.py": "the socket of the run's own directory, between its workers",
}
"""What opens files by itself, and why no config says which."""

CALLS = {"open", "read_text", "read_bytes", "write_text", "write_bytes", "load_cert_chain"}
CALLS |= {"Popen", "check_output", "check_call", "getenv", "create_unix_connection", "system"}
NAMES = {"environ", "AF_UNIX"}


def openings(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in NAMES:
            yield node.lineno
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in CALLS:
            yield node.lineno
        if isinstance(node.func, ast.Attribute):
            on, name = ast.unparse(node.func.value), node.func.attr
            # Components have methods of this name; paths and modules open files.
            file = name != "open" or on in ("os", "tarfile", "gzip", "io") or "path" in on.lower()
            run = on == "subprocess" and name in ("run", "call")
            if "permissions" not in on and ((name in CALLS and file) or run):
                yield node.lineno
            if on == "sqlite3" and name == "connect":
                yield node.lineno


def test_what_fields_name_is_opened_by_permission_only() -> None:
    found: dict[str, list[int]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name.partition("/")[0] in OPENERS:
            lines = list(openings(ast.parse(path.read_text())))
            if lines:
                found[name] = lines
    assert {name: lines for name, lines in found.items() if name not in OWN_FILES} == {}
    assert OWN_FILES.keys() == found.keys()


@pytest.mark.parametrize(
    "text",
    [
        "open('x')",
        "Path(x).read_bytes()",
        "subprocess.run(x)",
        "subprocess.Popen(x)",
        "socket.socket(socket.AF_UNIX)",
        "os.environ['x']",
        "os.open(x, 0)",
        "sqlite3.connect(x)",
        "path.open()",
    ],
)
def test_openings_are_found(text: str) -> None:
    assert list(openings(ast.parse(text))) == [1]


def test_by_permission_they_are_none() -> None:
    assert not list(openings(ast.parse("self.permissions.open(x)\nparsed.permissions.run(x)")))


def frame(route: str) -> Frame:
    return Frame(FrameKind.DATA, 0, 0, 0, 0, route, b"x")


def command(name: str) -> CommandProcessor:
    origin = ComponentRef(ParsedComponent(Kind.PROCESSOR, "command"))
    return CommandProcessor(compile_interpolation(name), None, origin, NONE)


def closed(**values: Any) -> ParsedFields:
    with limit_permissions(NONE):
        return ParsedFields(values)


REFUSED: dict[str, Callable[[Path], object]] = {
    "file output": lambda at: FileWriter(at / "j", True, NONE).write(1, [frame(str(at / "x"))]),
    "file output, whole": lambda at: FileWriter(at / "j", False, NONE).write(
        1, [frame(str(at / "x"))]
    ),
    "file input": lambda at: FileSource((__file__,), LineScanner(), permissions=NONE).continue_from(
        []
    ),
    "file input, probe": lambda at: FileSource(
        (__file__,), LineScanner(), permissions=NONE
    ).probe(),
    "cache": lambda at: FileCache(at, NONE).set("k", b"v", None, EX),
    "cache, get": lambda at: FileCache(at, NONE).get("k", EX),
    "subprocess output": lambda at: OutputProcess(["touch", str(at / "x")], NONE).start(),
    "subprocess input": lambda at: SubprocessInput(
        ("id",), False, LineScanner(), NONE
    )._start_process(),
    "subprocess": lambda at: SubprocessClient(["id"], 9, LINES, LINES, NONE).request(
        b"x", lambda *_: None
    ),
    "command": lambda at: command("${! content() }").process([Message(b"id")], EX),
    "schema": lambda at: read_schema(f"file://{__file__}", NONE),
    "sqlite": lambda at: find_driver("sqlite", NONE).engine(str(at / "x")),
    "mysql": lambda at: find_driver("mysql", NONE).engine("u:p@unix(/run/x.sock)/n"),
    "socket output": lambda at: SocketConnection("unix", str(at / "s"), None, NONE).open(),
    "socket_server": lambda at: bind_socket("unix", str(at / "s"), permissions=NONE),
    "tls": lambda at: tls_context(
        closed(root_cas_file=__file__, root_cas="", client_certs=(), skip_cert_verify=False)
    ),
    "environment": lambda at: _with_nothing(lambda: compile_interpolation('${! env("HOME") }')),
}


def _with_nothing(run: Callable[[], object]) -> object:
    with limit_permissions(NONE):
        return run()


@pytest.mark.parametrize("what", REFUSED)
def test_nothing_is_opened_that_is_out_of_reach(what: str, tmp_path: Path) -> None:
    error: BaseException
    with pytest.raises(Exception) as caught:  # noqa: PT011
        REFUSED[what](tmp_path)
    error = caught.value
    assert isinstance(error, NotPermittedError) or "switched off here" in str(error)
    assert not list(tmp_path.iterdir())


OF_MACHINE = [
    *("169.254.169.254", "169.254.170.2", "fe80::1", "fe80::1%eth0", "fd00:ec2::254"),
    *("::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "100.100.100.200", "168.63.129.16"),
]
OTHERS = ["127.0.0.1", "::1", "10.0.0.1", "169.253.0.1", "100.100.100.201", "fd00::1", "64:ff9b::1"]


def test_addresses_of_the_machine_alone_are_out_of_reach() -> None:
    for address in OF_MACHINE:
        assert ALL.address(address) == address
        with pytest.raises(NotPermittedError, match="start the service with --allow-local"):
            NONE.address(address)
    for address in OTHERS:
        assert NONE.address(address) == address


CONNECTING = {
    "http_client": "http: {{url: 'http://{0}/x', retries: 0, timeout: 5s}}",
    "http_client by a number": "http: {{url: 'http://{1}/x', retries: 0, timeout: 5s}}",
    "oauth2": (
        "http: {{url: 'http://127.0.0.1:1/x', retries: 0, timeout: 5s, oauth2: {{enabled: true, "
        "token_url: 'http://{0}/t', client_key: a, client_secret: b}}}}"
    ),
}
METADATA = ("169.254.169.254:80", "2852039166:80")


def without_permission(text: str) -> Any:
    with limit_permissions(NONE):
        return parse_config(text, env={})


@pytest.mark.parametrize("yaml", CONNECTING.values(), ids=CONNECTING)
def test_http_clients_of_the_api_reach_no_metadata_of_a_cloud(yaml: str) -> None:
    config = without_permission(f"pipeline: {{processors: [{yaml.format(*METADATA)}]}}")
    [processor] = build_context(config.resources).build_all(config.processors)
    [[message]] = processor.process([Message(b"x")], EX)
    assert "the address 169.254.169.254 is link-local" in str(message.error)


def test_a_redirect_of_a_server_leads_to_no_metadata_either() -> None:
    answer = (
        b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/x\r\nContent-Length: 0\r\n\r\n"
    )

    def serve(connection: socket.socket, over: Event) -> None:
        connection.recv(1 << 16)
        connection.sendall(answer)

    with raw_server(serve) as address:
        yaml = f"http: {{url: 'http://{address}/', retries: 0, timeout: 5s}}"
        config = without_permission(f"pipeline: {{processors: [{yaml}]}}")
        [processor] = build_context(config.resources).build_all(config.processors)
        [[message]] = processor.process([Message(b"x")], EX)
    assert "the address 169.254.169.254 is link-local" in str(message.error)


def _input(text: str) -> Any:
    config = without_permission(f"input: {{{text}}}")
    return build_context(config.resources).build(config.input)


def _output(text: str) -> Any:
    config = without_permission(f"output: {{{text}}}")
    return build_context(config.resources).build(config.output)


PROBED: dict[str, Callable[[], object]] = {
    "schema": lambda: read_schema("http://169.254.169.254/s", NONE),
    "socket": lambda: _input("socket: {network: tcp, address: '169.254.169.254:80'}").probe(),
    "socket output": lambda: SocketConnection("tcp", "169.254.169.254:80", None, NONE).open(),
    "datagrams": lambda: SocketConnection("udp", "169.254.169.254:80", None, NONE).open(),
    "websocket output": lambda: _output("websocket: {url: 'ws://169.254.169.254/x'}").probe(),
}


@pytest.mark.parametrize("connect", PROBED.values(), ids=PROBED)
def test_sockets_of_the_api_reach_no_metadata_of_a_cloud(connect: Callable[[], object]) -> None:
    with pytest.raises(Exception, match="the address 169.254.169.254 is link-local"):
        connect()


def test_the_input_websocket_of_the_api_reaches_no_metadata_of_a_cloud(tmp_path: Path) -> None:
    with lodging(tmp_path) as lodged:
        _input("websocket: {url: 'ws://169.254.169.254/x'}").open(lodged.room)
        until = time.monotonic() + 10
        while not lodged.log:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert "the address 169.254.169.254 is link-local" in lodged.log[0][1]


def test_values_keep_what_they_may_in_other_threads_and_processes() -> None:
    with limit_permissions(NONE):
        parsed = ParsedFields({"a": 1})
        component = ParsedComponent(Kind.CACHE, "file", permissions=current_permissions())
    seen = []
    thread = Thread(target=lambda: seen.append((parsed.permissions, current_permissions())))
    thread.start()
    thread.join()
    assert seen == [(NONE, ALL)]
    assert pickle.loads(pickle.dumps(parsed)).permissions == NONE
    assert pickle.loads(pickle.dumps(component)).permissions == NONE
    assert ParsedFields({}).permissions == ALL


NAMED = {
    Kind.INPUT: [
        "file: { paths: [ /etc/passwd ] }",
        "csv: { paths: [ /etc/passwd ] }",
        "parquet: { paths: [ /etc/passwd ] }",
        "subprocess: { name: id }",
        "socket: { network: unix, address: /run/x }",
        "socket_server: { network: unix, address: /run/x }",
        "http_server: { address: '127.0.0.1:0', cert_file: /a, key_file: /b }",
        "sql_raw: { driver: sqlite, dsn: /a, query: x }",
        "dynamic: {}",
    ],
    Kind.OUTPUT: [
        "file: { path: '${! content() }' }",
        "subprocess: { name: id }",
        "socket: { network: unix, address: /run/x }",
        "http_client: { url: 'http://h', tls: { enabled: true, root_cas_file: /a } }",
        "kafka: { addresses: [ 'h:1' ], topic: t, tls: { enabled: true, root_cas_file: /a } }",
        "dynamic: {}",
    ],
    Kind.PROCESSOR: [
        "command: { name: '${! content() }' }",
        "subprocess: { name: id }",
        "avro: { operator: to_json, schema_path: 'file:///a' }",
        "json_schema: { schema_path: 'file:///a' }",
        "grok: { expressions: [ x ], pattern_paths: [ /etc ] }",
        "sql_raw: { driver: mysql, dsn: 'u:p@unix(/run/x)/n', query: x }",
        "branch: { processors: [ { command: { name: id } } ] }",
    ],
}


def component(kind: Kind, text: str) -> ParsedComponent:
    where = f"pipeline: {{ processors: [ {{ {text} }} ] }}"
    config = parse_config(where if kind == Kind.PROCESSOR else f"{kind}: {{ {text} }}", env={})
    made: ParsedComponent = (
        config.processors[0] if kind == Kind.PROCESSOR else getattr(config, str(kind))
    )
    return made


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in NAMED.items() for text in texts]
)
def test_what_no_check_has_seen_is_not_built(kind: Kind, text: str) -> None:
    with limit_permissions(NONE):
        made = component(kind, text)
    with pytest.raises(NotPermittedError, match="is off for configs that come by API; start the"):
        build_context().build(pickle.loads(pickle.dumps(made)))
    assert component(kind, text).permissions == ALL


def test_programs_and_files_are_permitted_apart(tmp_path: Path) -> None:
    files, programs = Permissions(local=True, programs=False), Permissions(False, True)
    assert files.read(__file__).startswith(b'"""What')
    with pytest.raises(NotPermittedError, match="--allow-programs"):
        files.run(["id"], b"")
    assert programs.run(["cat"], b"x").stdout == b"x"
    with pytest.raises(NotPermittedError, match="--allow-local"):
        programs.read(__file__)
    with pytest.raises(NotPermittedError, match="Unix socket"):
        programs.unix_socket("/run/x", socket.SOCK_DGRAM)
    assert programs.file("") == ""


def test_what_is_added_to_a_dynamic_is_held_to_what_the_dynamic_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET", "hunter2")
    text = 'generate: { mapping: "root = \\"${SECRET:none}\\"" }'
    with limit_permissions(NONE):
        made = parse_component(Kind.INPUT, text)
    assert "none" in made.config["mapping"] and made.permissions == NONE
    assert "hunter2" in parse_component(Kind.INPUT, text).config["mapping"]


def test_a_refused_program_of_a_processor_is_no_error_of_running() -> None:
    with pytest.raises(NotPermittedError):
        SubprocessClient(["id"], 9, LINES, LINES, NONE).request(b"x", lambda *_: None)
    assert not issubclass(NotPermittedError, RunError)


def test_a_name_with_a_null_character_is_that_of_no_file() -> None:
    with pytest.raises(OSError, match="a name cannot have a null character"):
        Permissions().open("a\0b")
