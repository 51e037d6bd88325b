"""Configs of streams that come by API: what they may ask for, and what belongs to the service."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from streamer.components.catalog import build_context
from streamer.config import Config, parse_config
from streamer.config.resources import ResourceText
from streamer.core.errors import StreamerError
from streamer.core.redaction import SCRUBBED
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields
from streamer.service.fleet.api_permissions import ApiPermissions
from streamer.service.fleet.config_reader import ConfigReader
from streamer.service.fleet.errors import BadConfigError
from streamer.service.fleet.redacted_document import parse_document

NOTHING = ApiPermissions()
GENERATE = "input: { generate: { mapping: root = 1 } }\n"
ROOT = """\
http: { address: "127.0.0.1:0" }
spark: { master: "local[1]" }
processor_resources:
  - { label: run, command: { name: date } }
  - { label: read, mapping: 'root = file("/etc/hosts")' }
"""


def reader(allowance: ApiPermissions = NOTHING, root: str = ROOT) -> ConfigReader:
    return ConfigReader(parse_config(root, "root.yaml"), allowance)


def refused(text: str, allowance: ApiPermissions = NOTHING) -> str:
    with pytest.raises(BadConfigError) as caught:
        reader(allowance).read_api_config(text, "one")
    return str(caught.value)


def pipeline(processor: str) -> str:
    return f"{GENERATE}pipeline: {{ processors: [ {processor} ] }}\n"


PROGRAM = [
    pipeline("{ command: { name: date } }"),
    pipeline("{ subprocess: { name: cat } }"),
    pipeline("{ try: [ { switch: [ { processors: [ { command: { name: date } } ] } ] } ] }"),
    pipeline("{ branch: { processors: [ { command: { name: date } } ] } }"),
    "input: { subprocess: { name: date } }",
    "input: { broker: { inputs: [ { subprocess: { name: date } } ] } }",
    f"{GENERATE}output: {{ subprocess: {{ name: cat }} }}",
    f"{GENERATE}output: {{ drop: {{}}, processors: [ {{ command: {{ name: date }} }} ] }}",
    f"{GENERATE}processor_resources: [ {{ label: a, command: {{ name: date }} }} ]",
]
LOCAL = [
    pipeline("{ mapping: 'root = file(\"/etc/passwd\")' }"),
    pipeline("{ mapping: 'root = env(\"HOME\")' }"),
    pipeline("{ mapping: 'import \"x.blobl\"' }"),
    pipeline("{ mapping: 'from \"x.blobl\"' }"),
    pipeline("{ log: { message: '${! env(\"HOME\") }' } }"),
    pipeline("{ json_schema: { schema_path: 'file:///etc/passwd' } }"),
    pipeline("{ grok: { expressions: [ x ], pattern_paths: [ /etc/passwd ] } }"),
    pipeline("{ http: { url: 'http://x', tls: { root_cas_file: /etc/passwd } } }"),
    pipeline("{ sql_raw: { driver: sqlite, dsn: 'file:x.db', query: select 1 } }"),
    "input: { file: { paths: [ /etc/passwd ] } }",
    f"{GENERATE}output: {{ file: {{ path: /tmp/x }} }}",
    f"{GENERATE}output: {{ broker: {{ outputs: [ {{ file: {{ path: /x }} }} ] }} }}",
    f"{GENERATE}cache_resources: [ {{ label: a, file: {{ directory: /tmp }} }} ]",
    "input: { generate: { mapping: 'root = \"${HOME}\"' } }",
    "input: { generate: { mapping: 'root = \"${NOT_SET:default}\"' } }",
    pipeline("{ avro: { operator: to_json, schema_path: 'file:///etc/passwd' } }"),
    pipeline(
        "{ sql_raw: { driver: mysql, dsn: x, unsafe_dynamic_query: true, "
        "query: 'select ${! env(\"HOME\") }' } }"
    ),
    f"{GENERATE}spark: {{ jars_directory: /tmp }}",
    f"{GENERATE}output: {{ socket: {{ network: unix, address: /var/run/docker.sock }} }}",
    "input: { socket: { network: unix, address: /tmp/x } }",
    "input: { socket_server: { network: unix, address: /tmp/x } }",
    "input: { socket_server: { network: unixgram, address: /tmp/x } }",
    "input: { socket_server: { network: tls, address: ':1', "
    "tls: { cert_file: /a, key_file: /a } } }",
    "input: { http_server: { address: ':1', cert_file: /a, key_file: /a } }",
    "input: { csv: { paths: [ /a ] } }",
    "input: { parquet: { paths: [ /a ] } }",
    "input: { http_client: { url: 'http://x', proxy_url: 'http+unix://tmp/x' } }",
    "input: { http_client: { url: 'http://x', jwt: { enabled: true, signing_method: RS256, "
    "private_key_file: /a } } }",
    f"{GENERATE}cache_resources: [ {{ label: a, memcached: {{ addresses: [ '/tmp/x:1' ] }} }} ]",
    "input: { http_client: { url: 'http://x', tls: "
    "{ client_certs: [ { cert_file: /a, key_file: /a } ] } } }",
]


NO_ADDRESS = [
    f"{GENERATE}output: {{ socket: {{ network: tcp, address: /var/run/docker.sock }} }}",
    "input: { websocket: { url: 'ws+unix:///tmp/x' } }",
    "input: { mqtt: { urls: [ 'unix:///tmp/x' ], topics: [ a ], client_id: a } }",
    f"{GENERATE}cache_resources: [ {{ label: a, redis: {{ url: 'unix:///tmp/x' }} }} ]",
]


@pytest.mark.parametrize("text", NO_ADDRESS)
def test_what_is_no_address_for_a_component_is_refused_anyway(text: str) -> None:
    assert "expected" in refused(text) and "expected" in refused(text, ApiPermissions(True, True))


@pytest.mark.parametrize("text", PROGRAM)
def test_programs_do_not_run_for_configs_that_come_by_api(text: str) -> None:
    assert "--allow-programs" in refused(text)
    assert "--allow-programs" in refused(text, ApiPermissions(local=True))
    assert reader(ApiPermissions(programs=True)).read_api_config(text, "one")


_CODE = "def process(m: dict): return m"
PYTHON = [
    pipeline(f"{{ python: {{ code: '{_CODE}' }} }}"),
    pipeline("{ python: { call: 'json:dumps' } }"),
    pipeline("{ python: { call: 'no_such_module:f' } }"),
    pipeline(f"{{ try: [ {{ python: {{ code: '{_CODE}' }} }} ] }}"),
    f"{GENERATE}processor_resources: [ {{ label: a, python: {{ code: '{_CODE}' }} }} ]",
    f"{GENERATE}output: {{ drop: {{}}, processors: [ {{ python: {{ code: '{_CODE}' }} }} ] }}",
]


@pytest.mark.parametrize("text", PYTHON)
def test_code_in_python_does_not_run_for_configs_that_come_by_api(text: str) -> None:
    for allowance in (ApiPermissions(), ApiPermissions(programs=True, local=True)):
        said = refused(text, allowance)
        assert "runs code in Python on the service's machine" in said and "--allow-python" in said
        # Nothing is learnt of which modules there are.
        assert "installed" not in said
    if "call" not in text:
        assert reader(ApiPermissions(python=True)).read_api_config(text, "one")


def test_modules_beside_the_service_need_local_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("beside_it.py").write_text("def process(m: dict): return m\n")
    text = pipeline("{ python: { call: 'beside_it:process' } }")
    assert "neither installed" in refused(text, ApiPermissions(python=True))
    assert reader(ApiPermissions(python=True, local=True)).read_api_config(text, "one")


@pytest.mark.parametrize("text", LOCAL)
def test_files_and_the_environment_are_out_of_reach_for_configs_that_come_by_api(
    text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.blobl").write_text("root = this")
    assert "--allow-local" in refused(text)
    assert "--allow-local" in refused(text, ApiPermissions(programs=True))
    # What is wrong with them otherwise may still be said.
    try:
        reader(ApiPermissions(local=True)).read_api_config(text, "one")
    except BadConfigError as e:
        assert "allow" not in str(e)


def test_chilled_and_comments_allow_nothing() -> None:
    for text in (PROGRAM[0], LOCAL[0], LOCAL[9]):
        silenced = f"# streamer:ignore bad_bloblang not_allowed\n{text}"
        for one in (text, silenced):
            with pytest.raises(BadConfigError, match="--allow"):
                reader().read_api_config(one, "one", chilled=True)


def test_a_component_that_takes_configs_by_itself_needs_all_to_be_allowed() -> None:
    text = "input: { dynamic: {} }"
    for allowance in (ApiPermissions(), ApiPermissions(programs=True), ApiPermissions(True, True)):
        assert "--allow-programs, --allow-python and --allow-local" in refused(text, allowance)
    assert (
        reader(ApiPermissions(True, True, True)).read_api_config(text, "one").input.name
        == "dynamic"
    )


def test_resources_of_the_service_may_be_used_whatever_they_do() -> None:
    config = reader().read_api_config(pipeline("{ resource: run }, { resource: read }"), "one")
    assert {label for _, label in config.resources} == {"run", "read"}


def test_files_of_resources_have_their_variables_for_streams_that_come_by_api(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMER_TEST_TOKEN", "s3same")
    path = tmp_path / "r.yaml"
    path.write_text(
        "processor_resources:\n"
        "  - { label: ask, http: { url: 'http://h/${STREAMER_TEST_TOKEN}' } }\n"
        "  - { label: see, mapping: 'root = env(\"HOME\")' }\n"
    )
    given = replace(reader(), resources=[str(path)])
    config = given.read_api_config(pipeline("{ resource: ask }, { resource: see }"), "one")
    assert config.resources[Kind.PROCESSOR, "ask"].config["url"] == "http://h/s3same"
    assert "s3same" in config.secrets
    with pytest.raises(BadConfigError, match="--allow-local"):
        given.read_api_config(pipeline("{ mapping: 'root = \"${STREAMER_TEST_TOKEN}\"' }"), "one")


def test_what_is_built_of_such_a_config_is_held_to_it_wherever_it_is_built() -> None:
    # As a worker has it, which knows nothing of what was allowed where the config was read: the
    # text is one that nobody has looked at.
    def message(config: Config, text: str) -> ParsedComponent:
        log = pickle.loads(pickle.dumps(config.processors[0]))
        return replace(log, config=ParsedFields({**log.config, "message": text}))

    text = pipeline("{ log: { message: harmless } }, { resource: read }")
    impure = '${! env("HOME") }'
    config = reader().read_api_config(text, "one")
    with pytest.raises(StreamerError, match="'env' is switched off here"):
        build_context(config.resources).build(message(config, impure))
    assert build_context(config.resources).build(message(config, "${! this.a }"))
    # Resources of the service are its own, whoever uses them.
    assert build_context(config.resources).build(config.processors[1])
    nested = pipeline("{ try: [ { log: { message: harmless } }, { resource: read } ] }")
    outer = reader().read_api_config(nested, "one")
    assert build_context(outer.resources).build(outer.processors[0])
    for allowed in (
        reader(ApiPermissions(local=True)).read_api_config(text, "one"),
        reader().read_file_config(text, "x"),
    ):
        assert build_context(allowed.resources).build(message(allowed, impure))


def test_configs_of_files_may_do_all() -> None:
    for text in (PROGRAM[0], LOCAL[0]):
        assert reader().read_file_config(text, "here.yaml").processors


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("http: { enabled: false }", "(1,1) field http not recognised; it belongs to the service"),
        ("\nlogger: { level: OFF }", "(2,1) field logger not recognised"),
        ("metrics: { none: {} }", "(1,1) field metrics not recognised"),
        ("spark: { conf: { a: b } }", "(1,10) field spark.conf not recognised"),
        ("spark: { checkpoint: /x }", "(1,10) field spark.checkpoint not recognised"),
        ("output: { drop: {} }", "stdin is not for one of many streams"),
        (f"output: {{ reject: '{SCRUBBED}' }}", "there is no secret to put in the place"),
        ("inptu: {}", "(1,1) field inptu not recognised; did you mean input?"),
    ],
)
def test_what_is_not_for_a_stream_is_refused(text: str, said: str) -> None:
    given = text if "stdin" in said else f"{text}\n{GENERATE}"
    assert said in refused(given)


def test_chilled_leaves_out_what_belongs_to_the_service() -> None:
    text = f"{GENERATE}http: {{ address: '0.0.0.0:1' }}\nspark: {{ master: 'local[9]', shards: 3 }}"
    config = reader().read_api_config(text, "one", chilled=True)
    assert config.http["address"] == "127.0.0.1:0"
    assert (config.spark["master"], config.spark["shards"]) == ("local[1]", 3)


def test_what_belongs_to_the_service_comes_from_it() -> None:
    config = reader().read_api_config(f"{GENERATE}spark: {{ shards: 2 }}", "one")
    assert (config.spark["master"], config.spark["shards"]) == ("local[1]", 2)
    assert config.path == "one"


def test_resources_that_came_by_api_may_be_used() -> None:
    more = ResourceText("cache c", "cache_resources: [ { label: c, memory: {} } ]", {})
    text = pipeline("{ cache: { resource: c, operator: get, key: a } }")
    assert "there is no cache resource" in refused(text)
    given = replace(reader(), resources=[more])
    assert given.read_api_config(text, "one").resources[Kind.CACHE, "c"]


def test_a_text_that_makes_more_than_it_is_gets_nowhere() -> None:
    laughs = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]\n"
        for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    deep = "[" * 100_000
    for text in (laughs, deep):
        assert refused(text)
        with pytest.raises(BadConfigError):
            parse_document(text)
