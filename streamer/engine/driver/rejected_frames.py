"""Rejected messages of a micro-batch's tasks, and the requests that get an error for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from streamer.core.errors import StreamerError
from streamer.core.message import Batch, Message
from streamer.engine.report.metric_labels import Labels
from streamer.engine.report.rejected_messages import (
    ROUTE_METADATA,
    Fate,
    RejectedMessages,
    decode_rejected,
)
from streamer.engine.report.reply_codec import decode_replies
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.sdk.output.rejection import Reason
from streamer.sdk.sync_response import REQUEST


class RejectedError(StreamerError):
    """Messages have failed, and `error_handling.strict` wants none of their micro-batch written."""


def collect_answers(frames: Sequence[Frame]) -> tuple[dict[str, Batch], dict[str, str]]:
    """Return the requests that tasks have dealt with: what answers them, and why not."""
    answers: dict[str, Batch] = {}
    refusals: dict[str, str] = {}
    for frame in frames:
        if frame.kind == FrameKind.ANSWER:
            more, refused = decode_replies(frame.body)
            for request, messages in more.items():
                answers.setdefault(request, []).extend(messages)
            refusals |= refused
    return answers, refusals


def collect_rejections(
    frames: Sequence[Frame], answers: Mapping[str, Batch], refusals: dict[str, str]
) -> Iterator[RejectedMessages]:
    """Return what outputs have rejected; refusals get what was sent by another task than read it.

    Args:
        frames: the micro-batch's.
        answers: the requests that wait for its messages.
        refusals: why some of them are refused.
    """
    for frame in frames:
        if frame.kind != FrameKind.REJECTED:
            continue
        for one in decode_rejected(frame.body):
            requests = {str(message.meta.get(REQUEST, "")) for message in one.batch}
            waiting = requests & answers.keys() if one.fate == Fate.KEPT else set()
            for request in sorted(waiting):
                refusals.setdefault(request, one.text)
            yield one._replace(fate=Fate.ANSWERED) if waiting else one


def make_rejected_error(rejected: Sequence[RejectedMessages]) -> RejectedError:
    """Return what says that messages were rejected, where nobody takes them."""
    total, first = sum(one.messages for one in rejected), rejected[0]
    what = "1 message has" if total == 1 else f"{total} messages have"
    error = first.text.removeprefix("rejecting due to failed processing: ")
    return RejectedError(
        f"{what} failed and must not be written to {first.labels['path']}, since "
        f"error_handling.strict is set; the first{_format_source(first.source)}: "
        f"{' '.join(error.split())}"
    )


def make_unwritten(place: Labels, frame: Frame, why: str) -> RejectedMessages:
    """Return bytes that no file could take as a message, which is written again as it is."""
    path, label = place.get("path", "root.").removeprefix("root."), place.get("label", "")
    message = Message(frame.body, {ROUTE_METADATA: frame.route})
    return RejectedMessages(path, label, why, Reason.INVALID, [], Fate.KEPT, None, 1, [message])


def _format_source(source: Sequence[str]) -> str:
    """Return which component a failure comes from, in words, when it is known."""
    if not source:
        return ""
    name, label, path = source
    return f" by {name}{f' {label!r}' if label else ''} at {path}"
