"""A sample of the messages that a step drops: who looks for a missing message sees what it was."""

from __future__ import annotations

from dataclasses import replace

from streamer.window.aggregate.aggregate_codec import decode_aggregates
from streamer.window.contract import DroppedSample, show_payload
from streamer.window.pack.pack_codec import Pack
from streamer.window.pack.window_metadata import format_shown_key
from streamer.window.state.pane_store import IncomingPack


def sample_dropped(
    pack: IncomingPack, keyed: bool, watermark: int | None = None, window_end: int | None = None
) -> DroppedSample:
    """Return the first message of a pack.

    Args:
        pack: the pack.
        keyed: whether its keys are those of windows.
        watermark: the clock before the pack, ns; None where it is not known.
        window_end: the end of the newest window of its messages, ns; None likewise.
    """
    return replace(_read_first(pack, keyed), watermark=watermark, window_end=window_end)


def _read_first(pack: IncomingPack, keyed: bool) -> DroppedSample:
    if pack.header.is_aggregated:
        groups = decode_aggregates(pack.body, pack.shift)
        key, newest = groups.keys[0], groups.max_times
        return make_sample(
            groups.payloads[0],
            format_shown_key(key) if keyed else None,
            None if newest is None or groups.counts[0] > 1 else int(newest[0]),
        )
    opened = Pack(pack.body, pack.shift)
    key_text = format_shown_key(opened.keys[0]) if keyed and opened.keys else None
    time = None if opened.times is None else int(opened.times[0])
    payloads = opened.group_payloads(0)
    if time is None and len(payloads) == 1 and (newest := opened.group_max_times()) is not None:
        time = int(newest[0])
    return make_sample(payloads[0], key_text, time)


def make_sample(payload: bytes, key: str | None, event_time: int | None) -> DroppedSample:
    """Return a sample of a message; of a long payload it has the beginning."""
    return DroppedSample(show_payload(payload), key, event_time)
