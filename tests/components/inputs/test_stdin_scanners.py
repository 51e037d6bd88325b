"""The `stdin` input with scanners that can only begin at the beginning."""

from __future__ import annotations

from streamer.sdk.input.input_context import open_input
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import built
from tests.components.inputs.receiving import Receiving
from tests.components.inputs.rooms import lodging


def test_what_is_piped_in_is_cut_before_it_lands(tmp_path):
    piped = [b"id,na", b'me\n1,a\n2,"b\nc"\n3', b",d", b""]
    with lodging(tmp_path, read_stdin=lambda size: piped.pop(0)) as lodged:
        source = open_input(built("input: {stdin: {scanner: {csv: {}}}}"), lodged.room)
        found = Receiving(lodged, source).wait_for_end()
    assert found == [
        b'{"id":"1","name":"a"}',
        b'{"id":"2","name":"b\\nc"}',
        b'{"id":"3","name":"d"}',
    ]


def test_what_cannot_be_cut_is_said_and_ends_the_input(tmp_path):
    piped = [b"[1,2", b"}", b""]
    with lodging(tmp_path, read_stdin=lambda size: piped.pop(0)) as lodged:
        source = open_input(built("input: {stdin: {scanner: {json_array: {}}}}"), lodged.room)
        found = Receiving(lodged, source).wait_for_end()
        assert found[:1] == [b"1"]
        assert any("Failed to read message" in text for _, text in lodged.log)


def test_what_is_piped_in_travels_to_workers_that_do_not_see_the_spool(tmp_path):
    piped = [b"1\n2\n3", b""]
    with lodging(tmp_path, read_stdin=lambda size: piped.pop(0)) as lodged:
        lodged.house.local = False
        source = open_input(built("input: {stdin: {}}"), lodged.room)
        assert Receiving(lodged, source).wait_for_end() == [b"1", b"2", b"3"]
        start = source.initial_offset()
        pieces = source.split(start, source.latest_offset(start, 0, Limit()).offset, 2)
        assert pieces and all(piece.data for piece in pieces)
