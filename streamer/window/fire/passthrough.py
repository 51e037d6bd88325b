"""Messages that bypass windows: failed upstream, or dropped for `late_output`."""

from __future__ import annotations

from collections.abc import Iterator

from streamer.window.assign.pack_builder import DROP_REASON
from streamer.window.contract import Counters, Emission
from streamer.window.fire.fire_window import iterate_in_order
from streamer.window.fire.shard_input import ShardInput
from streamer.window.pack.message_builder import MessageBuilder
from streamer.window.pack.pack_codec import StoredPack, read_header


def emit_passthrough(shard_input: ShardInput, counters: Counters) -> Iterator[Emission]:
    """Emit messages that go into no window, and count those that stage 1 has sorted out."""
    for reason, count in shard_input.dropped_counts():
        counters.count_dropped(reason, count)
    counters.filtered += shard_input.filtered_count()
    for columns in iterate_in_order(shard_input.failed):
        for message in MessageBuilder({}).build_messages(
            columns.payloads, columns.metas, columns.meta_ids
        ):
            counters.failed += 1
            yield Emission(None, [message], "failed")
    for columns in iterate_in_order(shard_input.dropped):
        messages = MessageBuilder({}).build_messages(
            columns.payloads, columns.metas, columns.meta_ids
        )
        yield Emission(None, messages, "dropped")


def emit_to_late_output(stored: list[StoredPack], reason: str, skip: int = 0) -> Iterator[Emission]:
    """Give messages to `late_output`, in order of arrival.

    Args:
        stored: their packs.
        reason: why they were dropped.
        skip: so many of the first messages were not.
    """
    # What was aggregated before the config had a late_output is counted, and cannot be handed on.
    metas = MessageBuilder({DROP_REASON: reason})
    for columns in iterate_in_order(
        [entry for entry in stored if not read_header(entry[0]).is_aggregated]
    ):
        messages = metas.build_messages(columns.payloads, columns.metas, columns.meta_ids)
        passed, skip = messages[skip:], max(0, skip - len(messages))
        if passed:
            yield Emission(None, passed, "dropped")
