"""`fallback`: the next output gets what the one before it has not taken."""

from __future__ import annotations

from streamer.components.outputs.fallback import FallbackOutput
from streamer.core.message import Message
from streamer.sdk.output.sender import Sender
from tests.components.outputs.scripted import PLACE, Scripted, Seen, batches


def test_only_what_failed_goes_on_with_the_reason_in_its_metadata():
    reasons = []

    class Last(Scripted):
        def send(self, batch, ex):
            reasons.extend(message.meta.get("fallback_error") for message in batch)
            super().send(batch, ex)

    first, last = Scripted({"b": 9, "e": 9}, whole=False), Last()
    output = FallbackOutput([Sender(first, PLACE), Sender(last, PLACE)])
    sent = output.deliver(batches("abc", "d", "e"), Seen().ex, hold=True)
    assert sent.errors == [None] * 3
    assert (first.taken, last.taken) == (["ac", "d", ""], ["b", "e"])
    assert reasons == ["no b", "no e"]


def test_what_nobody_takes_has_failed():
    refused = {"b": 9}
    tiers = [Sender(Scripted(refused, whole=False), PLACE) for _ in range(3)]
    sent = FallbackOutput(tiers).deliver(batches("abc"), Seen().ex)
    assert sent.errors[0] is not None and sent.errors[0].errors == {1: "no b"}


def test_messages_themselves_keep_their_metadata():
    message = Message(b"a", {"kept": 1})
    tiers = [Sender(Scripted({"a": 9}), PLACE), Sender(Scripted({"a": 9}), PLACE)]
    FallbackOutput(tiers).deliver([[message]], Seen().ex)
    assert message.meta == {"kept": 1}
