"""Which inputs are not connected, by what their receivers count."""

from __future__ import annotations

from streamer.engine.input_links import InputLinks

A = {"label": "a", "path": "root.input.broker.inputs.0"}
B = {"label": "", "path": "root.input.broker.inputs.1"}


def test_an_input_is_not_connected_until_it_is_up_again() -> None:
    links = InputLinks()
    assert links.trouble.text == ""
    links.note("input_connection_lost", {**A, "topic": "t"})
    links.note("input_connection_failed", B)
    links.note("input_received", A)
    assert links.trouble.place == A
    assert links.trouble.text == "the connection of the input is lost; the log says why"
    links.note("input_connection_up", A)
    assert links.trouble.place == B
    links.note("input_connection_up", B)
    assert links.trouble.text == ""
