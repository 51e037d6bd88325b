"""The trace that a message carries, in the headers of W3C Trace Context."""

import json

import pytest

from tests.bloblang.running import run

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


def told(meta):
    return json.loads(run("root = [tracing_id(), tracing_span()]", meta=meta))


@pytest.mark.parametrize(
    ("meta", "span"),
    [
        ({"traceparent": PARENT}, {"traceparent": PARENT}),
        ({"Traceparent": PARENT}, {"traceparent": PARENT}),
        (
            {"traceparent": PARENT, "tracestate": "a=1"},
            {"traceparent": PARENT, "tracestate": "a=1"},
        ),
        ({"traceparent": f"00-{TRACE}-{SPAN}-00"}, {"traceparent": f"00-{TRACE}-{SPAN}-00"}),
        ({"traceparent": f"cc-{TRACE}-{SPAN}-09-more"}, {"traceparent": PARENT}),
    ],
)
def test_a_valid_header_is_the_trace(meta, span):
    assert told(meta) == [TRACE, span]


@pytest.mark.parametrize(
    "header",
    [
        None,
        5,
        "",
        "x",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE.upper()}-{SPAN}-01",
    ],
)
def test_anything_else_is_no_trace(header):
    assert told({} if header is None else {"traceparent": header}) == ["0" * 32, {}]
