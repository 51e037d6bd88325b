"""From a config to a plan: what runs where, decided before anything is started."""

from streamer.plan.key import Key
from streamer.plan.plan import Plan, make_plan

__all__ = ["Key", "Plan", "make_plan"]
