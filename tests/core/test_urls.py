"""Which hosts and ports there can be, in the URLs and addresses of configs."""

from __future__ import annotations

import pytest

from streamer.config import parse_config
from streamer.core.errors import ConfigError
from streamer.core.urls import address_problem, split_url, url_problem

BRACKETS = "brackets that do not belong together"
PORT = "the port"


@pytest.mark.parametrize(
    "text",
    [
        *("http://a_b-c.d:80", "http://é.de", "http://a.b.", "http://1.2.3.4:1", "http://127.1"),
        *("http://[::1]", "http://[::1]:80/", "http://[fe80::1%25eth0]:65535", "redis://:pw@h"),
        *("http://h/a[b]?c[]=1#[", "http:///x", "tcp://:80", "http://h:", "localhost:99999"),
        *("http://${! this.host }:${! this.port }/", "http://h${! this.n }", "${! this.url }"),
        "http://h:1/${! this.path }:99999",
    ],
)
def test_what_may_be_is_no_problem(text: str) -> None:
    assert url_problem(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("redis://app:pa[ss@localhost:6379", BRACKETS),
        ("redis://app:pa]ss@localhost:6379", BRACKETS),
        ("redis://app:p[as]s@localhost:6379", BRACKETS),
        ("http://[::1", BRACKETS),
        ("http://::1]", BRACKETS),
        ("http://[::1]x", BRACKETS),
        ("http://[[::1]]:80", BRACKETS),
        ("http://[]", BRACKETS),
        ("http://[v1.x]", "the host 'v1.x', which is no IPv6 address"),
        ("http://[::g]:80", "IPv6 address"),
        ("http://256.1.1.1", "the host '256.1.1.1', which is no IPv4 address"),
        ("http://a b/", "the host 'a b', in which ' ' cannot be"),
        ("http://a\x00b", "cannot be"),
        ("http://\u2028/", "which is no name of the domain name system"),
        ("http://a..b", "between single points"),
        (f"http://{'a' * 64}", "between single points"),
        ("http://" + ".".join(["a" * 60] * 5), "between single points"),
        *((f"http://h:{port}/", PORT) for port in ("0", "65536", "-1", "٣", "port", "1:2", "0x50")),
        ("http://h:" + "9" * 5_000, PORT),
        ("http://h:99999/${! this.path }", PORT),
        ("redis://u:x12/34@h", "/, ? and # of a password are written as %2F"),
    ],
)
def test_what_cannot_be_says_why(text: str, expected: str) -> None:
    problem = url_problem(text)
    assert problem is not None and expected in problem
    with pytest.raises(ValueError, match="."):
        split_url(text.partition("${!")[0])
    assert "12" not in problem or expected == PORT


def test_an_address_has_no_scheme() -> None:
    assert [address_problem(one) for one in ("h", "h:1", ":1", "[::1]:1")] == [None] * 4
    assert all(address_problem(one) for one in ("h:99999", "[::1", "a..b:1", "h:x"))


URL_FIELDS = {
    "input: { http_client: { url: '%s' } }": "http",
    "input: { http_client: { url: 'http://h', proxy_url: '%s' } }": "http",
    "input: { http_client: { url: 'http://h', oauth2: { token_url: '%s' } } }": "http",
    "pipeline: { processors: [ { http: { url: '%s' } } ] }": "http",
    "output: { http_client: { url: '%s' } }": "http",
    "input: { websocket: { url: '%s' } }": "ws",
    "input: { websocket: { url: 'ws://h', proxy_url: '%s' } }": "http",
    "output: { websocket: { url: '%s' } }": "ws",
    "output: { websocket: { url: 'ws://h', proxy_url: '%s' } }": "http",
    "input: { mqtt: { urls: [ '%s' ], topics: [ a ] } }": "tcp",
    "output: { mqtt: { urls: [ 'tcp://h', '%s' ], topic: a, client_id: b } }": "ssl",
    "input: { redis_list: { url: '%s', key: a } }": "redis",
    "input: { redis_pubsub: { url: '%s', channels: [ a ] } }": "redis",
    "output: { redis_streams: { url: 'redis://h,%s', stream: a } }": "rediss",
    "cache_resources: [ { label: a, redis: { url: '%s' } } ]": "redis",
    "rate_limit_resources: [ { label: a, redis: { url: '%s', key: a } } ]": "redis",
    "cache_resources: [ { label: a, memcached: { addresses: [ '%s' ] } } ]": "",
    "input: { kafka: { addresses: [ '%s' ], topics: [ a ], consumer_group: a } }": "",
    "output: { kafka_franz: { seed_brokers: [ '%s' ], topic: a } }": "",
    "cache_resources: [ { label: a, sql: { driver: postgres, dsn: '%s/d', table: a, "
    "key_column: a, value_column: b } } ]": "postgres",
    "pipeline: { processors: [ { avro: { operator: to_json, schema_path: '%s' } } ] }": "http",
    "metrics: { prometheus: { push_url: '%s' } }": "http",
    "tracer: { open_telemetry_collector: { grpc: [ { address: '%s' } ] } }": "",
}


@pytest.mark.parametrize("config", URL_FIELDS)
@pytest.mark.parametrize("place", ["[::1:80", "h:99999", "h:no", "a..b:80", "ok:80"])
def test_every_url_of_a_component_is_looked_at(config: str, place: str) -> None:
    scheme = URL_FIELDS[config]
    text = config % (f"{scheme}://{place}" if scheme else place)
    if place == "ok:80":
        parse_config(text, env={})
        return
    with pytest.raises(ConfigError) as raised:
        parse_config(text, env={})
    assert [lint.code for lint in raised.value.lints] == ["bad_value"]


@pytest.mark.parametrize("address", ["h:99999", "[::1:1", "a..b:3306"])
def test_mysql_addresses_are_looked_at(address: str) -> None:
    dsn = f"user:pass@tcp({address})/name"
    text = "input: { sql_raw: { driver: mysql, dsn: %r, query: SELECT 1 } }"
    with pytest.raises(ConfigError, match="field dsn has"):
        parse_config(text % dsn, env={})
    parse_config(text % "user:p@tc(p[@tcp(h:3306)/name", env={})


def test_a_password_with_a_bracket_is_not_shown() -> None:
    with pytest.raises(ConfigError) as raised:
        parse_config("input: { redis_list: { url: 'redis://u:se[cret@h:1', key: a } }", env={})
    assert "%5B" in str(raised.value) and "cret" not in str(raised.value)


@pytest.mark.parametrize("url", ["mosquitto:1883", "mosquitto", ":1883", "127.0.0.1", "[::1]:1883"])
def test_brokers_of_mqtt_need_no_scheme(url: str) -> None:
    fields = f"urls: [ '{url}' ], topics: [ a ], dynamic_client_id_suffix: ''"
    parse_config(f"input: {{ mqtt: {{ {fields} }} }}", env={})


def test_a_broker_without_a_scheme_is_reached_by_tcp() -> None:
    from streamer.connectors.mqtt import _split_urls

    [url, other] = _split_urls("mosquitto, :1884")
    assert (url.scheme, url.hostname, url.port) == ("tcp", "mosquitto", None)
    assert (other.scheme, other.hostname, other.port) == ("tcp", "127.0.0.1", 1884)
