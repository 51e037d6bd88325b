"""The judgement of a change: what a running stream keeps of its windows and offsets."""

from streamer.plan.judgement.judging import judge
from streamer.plan.judgement.model import Change, Effect, Judgement

__all__ = ["Change", "Effect", "Judgement", "judge"]
