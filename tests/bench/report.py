"""Figures on the terminal, with what the project wants to reach beside them."""

from __future__ import annotations

from collections.abc import Sequence


def heading(text: str) -> None:
    """Begin a part."""
    print(f"\n{text}", flush=True)


def note(text: str) -> None:
    """Say how something was measured, or what is going on."""
    print(f"  ({text})", flush=True)


def figure(
    name: str,
    value: float,
    unit: str = "",
    *,
    least: float | None = None,
    most: float | None = None,
) -> None:
    """Print a figure, and the target when there is one."""
    target = ""
    if least is not None:
        target = f"target ≥ {_text(least)}: {'reached' if value >= least else 'MISSED'}"
    if most is not None:
        target = f"target ≤ {_text(most)}: {'reached' if value <= most else 'MISSED'}"
    print(f"  {name:<46} {_text(value):>12} {unit:<10} {target}".rstrip(), flush=True)


def _text(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def quantile(values: Sequence[float], q: float) -> float:
    """The smallest value that at least the share `q` of all does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(q * len(ordered) * 1000) // 1000) - 1)]
