"""From a config to a plan: what runs where, decided before anything is started."""

from streamer.plan.plan import Plan, make_plan
from streamer.plan.window_plan import ShardKey

__all__ = ["ShardKey", "Plan", "make_plan"]
