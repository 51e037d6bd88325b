"""What goes into no window, or out of it unseen: messages that pass by, and those dropped."""

from __future__ import annotations

from collections.abc import Iterator

from streamer.window.drops import REASON
from streamer.window.emission import Emission
from streamer.window.intake import Intake
from streamer.window.metas import Metas
from streamer.window.pack import Stored, peek
from streamer.window.release import in_order
from streamer.window.status import Counters


def aside(intake: Intake, counters: Counters) -> Iterator[Emission]:
    """Let pass what goes into no window, and count what stage 1 has sorted out."""
    for reason, count in intake.dropped_before():
        counters.drop(reason, count)
    counters.filtered += intake.filtered_before()
    for columns in in_order(intake.failed):
        for message in Metas({}).messages(columns.payloads, columns.metas, columns.meta_ids):
            counters.failed += 1
            yield Emission(None, [message], "failed")
    for columns in in_order(intake.dropped):
        messages = Metas({}).messages(columns.payloads, columns.metas, columns.meta_ids)
        yield Emission(None, messages, "dropped")


def handed_on(stored: list[Stored], reason: str, skip: int = 0) -> Iterator[Emission]:
    """Give messages to `late_output`, in order of arrival.

    Args:
        stored: their packs.
        reason: why they were dropped.
        skip: so many of the first messages were not.
    """
    # What was folded before the config had a late_output is counted, and cannot be handed on.
    metas = Metas({REASON: reason})
    for columns in in_order([entry for entry in stored if not peek(entry[0]).folded]):
        messages = metas.messages(columns.payloads, columns.metas, columns.meta_ids)
        passed, skip = messages[skip:], max(0, skip - len(messages))
        if passed:
            yield Emission(None, passed, "dropped")
