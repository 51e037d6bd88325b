"""The judgement of a change: what a running stream keeps of its windows and offsets."""

from streamer.plan.change_impact.judge_changes import judge
from streamer.plan.change_impact.model import Change, ChangeImpact, Effect

__all__ = ["Change", "Effect", "ChangeImpact", "judge"]
