"""What the tasks of a micro-batch have rejected, and which requests hear of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from streamer.answering import REQUEST
from streamer.engine.answers import unpacked
from streamer.engine.frame import Frame, FrameKind
from streamer.engine.places import Labels
from streamer.engine.rejected import ROUTE, Fate, Rejected, unpacked_rejected
from streamer.errors import StreamerError
from streamer.message import Batch, Message
from streamer.sending.rejection import Reason


class RejectedError(StreamerError):
    """Messages have failed, and `error_handling.strict` wants none of their micro-batch written."""


def answers_of(frames: Sequence[Frame]) -> tuple[dict[str, Batch], dict[str, str]]:
    """Return the requests that tasks have dealt with: what answers them, and why not."""
    answers: dict[str, Batch] = {}
    refusals: dict[str, str] = {}
    for frame in frames:
        if frame.kind == FrameKind.ANSWER:
            more, refused = unpacked(frame.body)
            for request, messages in more.items():
                answers.setdefault(request, []).extend(messages)
            refusals |= refused
    return answers, refusals


def rejected_in(
    frames: Sequence[Frame], answers: Mapping[str, Batch], refusals: dict[str, str]
) -> Iterator[Rejected]:
    """Return what outputs have rejected; refusals get what was sent by another task than read it.

    Args:
        frames: the micro-batch's.
        answers: the requests that wait for its messages.
        refusals: why some of them are refused.
    """
    for frame in frames:
        if frame.kind != FrameKind.REJECTED:
            continue
        for one in unpacked_rejected(frame.body):
            requests = {str(message.meta.get(REQUEST, "")) for message in one.batch}
            waiting = requests & answers.keys() if one.fate == Fate.KEPT else set()
            for request in sorted(waiting):
                refusals.setdefault(request, one.text)
            yield one._replace(fate=Fate.ANSWERED) if waiting else one


def refusal_of(rejected: Sequence[Rejected]) -> RejectedError:
    """Return what says that messages were rejected, where nobody takes them."""
    total, first = sum(one.messages for one in rejected), rejected[0]
    what = "1 message has" if total == 1 else f"{total} messages have"
    error = first.text.removeprefix("rejecting due to failed processing: ")
    return RejectedError(
        f"{what} failed and must not be written to {first.labels['path']}, since "
        f"error_handling.strict is set; the first{_by(first.source)}: {' '.join(error.split())}"
    )


def unwritten(place: Labels, frame: Frame, why: str) -> Rejected:
    """Return bytes that no file could take as a message, which is written again as it is."""
    path, label = place.get("path", "root.").removeprefix("root."), place.get("label", "")
    message = Message(frame.body, {ROUTE: frame.route})
    return Rejected(path, label, why, Reason.INVALID, [], Fate.KEPT, None, 1, [message])


def _by(source: Sequence[str]) -> str:
    """Return which component a failure comes from, in words, when it is known."""
    if not source:
        return ""
    name, label, path = source
    return f" by {name}{f' {label!r}' if label else ''} at {path}"
