"""What lint says of components that want the same path, and of answers that nobody hears."""

from __future__ import annotations

import pytest

from streamer.config import parse_config
from streamer.config.lint.http_paths import find_served_paths
from streamer.core.errors import ConfigError


def broker(*inputs: str, more: str = "") -> str:
    return f"input: {{broker: {{{more}inputs: [{', '.join(inputs)}]}}}}\n"


A = "{http_server: {path: /a, ws_path: ''}}"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (broker(A, A), r"serves /a on the same server; give one of them another path, or an addr"),
        (broker(A, "{http_server: {ws_path: /a}}"), "field ws_path: the input http_server at line"),
        (broker("{http_server: {path: '/{x}'}}", "{http_server: {path: '/{y}'}}"), r"serves /\{y"),
        (broker("{http_server: {}}", "{http_server: {path: /b}}"), "field ws_path: the input"),
        (f"input: {A}\noutput: {{http_server: {{path: /a}}}}", "field path: the input http_ser"),
        (broker("{dynamic: {}}", "{dynamic: {}}"), "give one of them another prefix"),
        (broker(A, f"{{dynamic: {{inputs: {{x: {A}}}}}}}"), "serves /a on the same server"),
        (broker(A, more="copies: 2, "), "this input is there more than once"),
        (
            broker("resource: a", "resource: a") + f"input_resources: [{{label: a, {A[1:]}]",
            "this input is there more than once, and each would serve /a",
        ),
        (
            broker(*["{http_server: {address: 'a:1'}}"] * 2),
            "listens on a:1 already; give one of them another address",
        ),
        (
            "input: {generate: {mapping: root = 1}}\noutput: {http_server: {}}\n"
            "buffer: {system_window: {size: 1m, late_output: late}}\n"
            "output_resources: [{label: late, http_server: {path: /get}}]",
            "the output http_server at line 2 serves /get",
        ),
        (
            "input: {http_server: {path: /a, ws_path: ''}}\nbuffers:\n"
            "- {label: x, count_window: {count: 2}, output: {http_server: {path: /x}}}\n"
            "- {label: y, count_window: {count: 3}, output: {http_server: {path: /x}}}",
            r"\(4,.* field path: the output http_server at line 3 serves /x on the same server",
        ),
        (
            "input: {http_server: {path: /a, ws_path: ''}}\nbuffers:\n"
            "- {label: x, count_window: {count: 2}, output: {drop: {}}}\n"
            "- {label: y, count_window: {count: 3}, output: {http_server: {path: /a}}}",
            r"field path: the input http_server at line 1 serves /a on the same server",
        ),
        ("input: {http_server: {path: /a, ws_path: /a}}", "field ws_path is /a, as path is"),
        ("output: {http_server: {path: /a, stream_path: /a}}", "field stream_path is /a, as path"),
    ],
)
def test_a_place_that_two_want_is_refused(config, said):
    with pytest.raises(ConfigError, match=said):
        parse_config(config)


@pytest.mark.parametrize(
    "config",
    [
        broker(A, "{http_server: {path: /b, ws_path: ''}}"),
        broker(A, "{http_server: {path: /a, ws_path: '', address: 'a:1'}}"),
        broker(*["{http_server: {address: 'a:0'}}"] * 2),
        broker(*["{http_server: {address: 'a:1', tcp: {reuse_port: true}}}"] * 2),
        f"input: {{sequence: {{inputs: [{{read_until: {{check: 'true', input: {A}}}}}, {A}]}}}}",
        f"input: {A}\ninput_resources: [{{label: other, {A[1:]}]",
        "output: {broker: {outputs: [resource: o, resource: o]}}\n"
        "output_resources: [{label: o, http_server: {}}]",
        "input: {dynamic: {}}\noutput: {dynamic: {}}",
    ],
)
def test_what_others_do_not_want_is_right(config):
    parse_config(config)


def test_resources_of_resources_are_looked_at_in_no_time():
    names = [f"r{number}" for number in range(60)]
    resources = [
        f"{{label: {name}, broker: {{inputs: [resource: {below}, resource: {below}]}}}}"
        for name, below in zip(names, names[1:], strict=False)
    ]
    listed = ", ".join([*resources, f"{{label: {names[-1]}, http_server: {{}}}}"])
    with pytest.raises(ConfigError, match="there more than once"):
        parse_config(f"input: {{resource: r0}}\ninput_resources: [{listed}]")


def test_the_finding_stands_at_the_field_of_the_second():
    text = "input:\n  http_server:\n    path: /a\noutput:\n  http_server:\n    path: /a\n"
    with pytest.raises(ConfigError, match=r"http.yaml\(6,11\)"):
        parse_config(text, "http.yaml")


def test_the_paths_that_a_stream_will_serve_are_known_from_its_config():
    config = parse_config(
        broker("{http_server: {path: '/a/{id}', ws_path: ''}}", "resource: a", "{dynamic: {}}")
        + "output: {http_server: {path: /get, stream_path: '', ws_path: /ws, address: 'a:1'}}\n"
        "buffer: {system_window: {size: 1m, late_output: late}}\n"
        "output_resources: [{label: late, http_server: {path: /b, stream_path: '', ws_path: ''}}]\n"
        "input_resources: [{label: a, http_server: {path: /c, ws_path: /d}}]"
    )
    found = find_served_paths((config.input, config.output), config.late_outputs, config.resources)
    assert sorted(found) == ["/a/{id}", "/b", "/c", "/d", "/inputs", "/inputs/"]


def test_buffers_that_share_an_output_serve_it_once() -> None:
    parse_config(
        "input: {http_server: {path: /a, ws_path: ''}}\nbuffers:\n"
        "- {label: x, count_window: {count: 2}}\n"
        "- {label: y, count_window: {count: 3}}\n"
        "output: {http_server: {path: /out, stream_path: /s, ws_path: /w}}"
    )
