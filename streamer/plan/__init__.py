"""From a config to a plan: what runs where, decided before anything is started."""

from streamer.plan.key import ShardKey
from streamer.plan.plan import Plan, make_plan

__all__ = ["ShardKey", "Plan", "make_plan"]
