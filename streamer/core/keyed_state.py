"""State by key, as mappings and processors see it: values that outlive the message.

Whoever runs a pipeline says which key it is at (`KeyedValues.begin`); what runs in it keeps values
of that key by name. In a stream the values are in the checkpoint.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

MISSING: Final = object()
"""Stands for a value that was never kept, was removed, or has expired."""

UNAVAILABLE_TEXT: Final = (
    "keeps state by key, and there is none here: it works in the pipeline behind a buffer with "
    "windows, or behind the buffer keyed_state"
)
"""What follows the name of a function or processor that finds no state."""


class KeyedState(Protocol):
    """The state of the key that a pipeline is at.

    Attributes:
        scope: the component that runs, by its label or path; names of its own values begin with it.
        clock: the event time up to which the key's messages have come, Unix ns; never goes back.
    """

    scope: str
    clock: int

    def get(self, name: str, part: str = "") -> Any:
        """Return a value; `MISSING` if there is none.

        Args:
            name: the value's.
            part: a key within the key, such as an id: each has values of its own.
        """

    def put(self, name: str, value: Any, part: str = "", keep: int | None = None) -> None:
        """Keep a value.

        Args:
            name: the value's.
            value: a Bloblang value; `MISSING` removes it.
            part: as `get` takes it.
            keep: ns of the clock after which it expires; None for what the buffer says.
        """


class TransientState:
    """State of one key in memory, for a mapping that is tried out.

    >>> state = TransientState()
    >>> state.put("total", 3)
    >>> state.get("total"), state.get("other") is MISSING
    (3, True)

    Attributes:
        scope: as `KeyedState` has it.
        clock: always 0, so that nothing expires.
    """

    def __init__(self) -> None:
        self.scope = ""
        self.clock = 0
        self._values: dict[tuple[str, str], Any] = {}

    def get(self, name: str, part: str = "") -> Any:
        """Return a value; see `KeyedState.get`."""
        return self._values.get((name, part), MISSING)

    def put(self, name: str, value: Any, part: str = "", keep: int | None = None) -> None:
        """Keep a value; see `KeyedState.put`."""
        if value is MISSING:
            self._values.pop((name, part), None)
        else:
            self._values[name, part] = value
