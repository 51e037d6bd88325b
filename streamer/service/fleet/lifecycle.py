"""Lifecycle of a stream of the service: its states, and which of them may follow which.

The states have the names that the API gives them. `TRANSITIONS` is the whole state machine: a step
that it does not have is a fault of the program, and raises.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final


class LifecycleState(StrEnum):
    """States of a stream."""

    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    WAITING = "waiting"
    PAUSED = "paused"
    ENDED = "ended"
    FAILED = "failed"
    STOPPED = "stopped"


ACTIVE: Final = frozenset(
    {
        LifecycleState.STARTING,
        LifecycleState.RUNNING,
        LifecycleState.RESTARTING,
        LifecycleState.WAITING,
    }
)
"""The states in which messages flow, or are about to."""

_STOPS: Final = frozenset({LifecycleState.STOPPED, LifecycleState.PAUSED})
_FAILURES: Final = frozenset(
    {LifecycleState.WAITING, LifecycleState.RESTARTING, LifecycleState.FAILED}
)

TRANSITIONS: Final[Mapping[LifecycleState, frozenset[LifecycleState]]] = {
    # The service starts with streams that somebody has paused, and with some that have ended.
    LifecycleState.STOPPED: frozenset(
        {LifecycleState.STARTING, LifecycleState.PAUSED, LifecycleState.ENDED}
    ),
    LifecycleState.PAUSED: _STOPS | {LifecycleState.STARTING},
    LifecycleState.ENDED: _STOPS | {LifecycleState.STARTING},
    LifecycleState.FAILED: _STOPS | {LifecycleState.STARTING},
    # A start that somebody asked for and that is refused leaves the state that was before it.
    LifecycleState.STARTING: _STOPS | _FAILURES | {LifecycleState.RUNNING, LifecycleState.ENDED},
    LifecycleState.RUNNING: _STOPS | _FAILURES | {LifecycleState.ENDED},
    LifecycleState.RESTARTING: _STOPS | {LifecycleState.STARTING},
    # It waits until a try succeeds, also while it tries.
    LifecycleState.WAITING: _STOPS | _FAILURES | {LifecycleState.RUNNING},
}
"""The states that may follow each; every state may also stay what it is."""


class IllegalTransitionError(RuntimeError):
    """A state does not follow another one."""

    def __init__(self, before: LifecycleState, after: LifecycleState) -> None:
        """Take the state, and the one that was to follow it."""
        super().__init__(f"a stream that is {before} does not become {after}")


class Lifecycle:
    """State of a stream, and since when.

    Attributes:
        state: what the stream does.
        reason: why it failed, is being restarted, or what it waits for and since when; empty
            otherwise.
        restarts: how often it was started again.
        changed_at: when it came to this state, Unix s.
    """

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Begin with a stream that is stopped.

        Args:
            now: a clock that never runs backwards, s.
            wall_clock: Unix s.
        """
        self._wall_clock = wall_clock
        self.changed_at = wall_clock()
        self.state = LifecycleState.STOPPED
        self.reason = ""
        self.restarts = 0
        self._now = now
        self._since = now()
        self._last_uptime = 0.0

    @property
    def is_active(self) -> bool:
        """Whether messages flow, or are about to."""
        return self.state in ACTIVE

    def move_to(self, state: LifecycleState, reason: str = "") -> None:
        """Take the next state.

        Args:
            state: the state.
            reason: why.

        Raises:
            IllegalTransitionError: it does not follow the present one.
        """
        if state != self.state and state not in TRANSITIONS[self.state]:
            raise IllegalTransitionError(self.state, state)
        if state != LifecycleState.STARTING:
            self.reason = reason
        if state != self.state:
            self.changed_at = self._wall_clock()
        if self.is_active and state not in ACTIVE:
            self._last_uptime = self._now() - self._since
        elif not self.is_active and state in ACTIVE:
            self._since = self._now()
        self.state = state

    def uptime(self) -> float:
        """Return for how long the stream runs, s; of one that does not, how long it has run."""
        return self._now() - self._since if self.is_active else self._last_uptime
