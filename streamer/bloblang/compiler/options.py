"""Optimisations of the compiler: all of them, save where a test compares or one debugs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Optimisations:
    """Switches; whatever they are, a mapping gives the same results and the same errors.

    Attributes:
        fold_constants: methods and operators on what is known are computed once, when the mapping
            is compiled (those that Benthos computes when it reads a mapping always are, for their
            errors).
        copy_on_write: assignments copy only what nothing else may see change; without it, every
            assignment copies all objects and arrays on its way.
        bind_once: what a method makes of literal arguments (a regular expression, a layout) is made
            once; without it, for every call.
        inline: usual types are dealt with in the generated code, and look-ups are kept; without
            it, every operator, method and look-up is a call.
    """

    fold_constants: bool = True
    copy_on_write: bool = True
    bind_once: bool = True
    inline: bool = True


ALL_OPTIMISATIONS: Final = Optimisations()
NO_OPTIMISATIONS: Final = Optimisations(
    fold_constants=False, copy_on_write=False, bind_once=False, inline=False
)
