"""The order of branches: each comes after those that write what it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamer.bloblang.analysis.read_write_sets import Target


class LayerError(Exception):
    """There is no such order; the text names the branches that circle back to themselves."""


def sort_into_layers(
    branches: Mapping[str, tuple[Sequence[Target], Sequence[Target]]],
) -> tuple[tuple[str, ...], ...]:
    """Return branches in layers, each as early as it can be, the names of a layer sorted.

    A branch needs another one when it reads something that lies at or below what that one writes,
    as in Benthos: one that reads all of a document does not need those that write a part of it.

    Args:
        branches: what each reads and what it writes, by name.

    Raises:
        LayerError: some need each other.
    """
    needs = {
        name: {
            other for other in branches if other != name and _depends_on(reads, branches[other][1])
        }
        for name, (reads, _) in branches.items()
    }
    layers: list[tuple[str, ...]] = []
    placed: set[str] = set()
    while len(placed) < len(branches):
        layer = sorted(name for name in branches if name not in placed and needs[name] <= placed)
        if not layer:
            circling = " ".join(sorted(set(branches) - placed))
            raise LayerError(
                "failed to automatically resolve DAG, circular dependencies detected for "
                f"branches: [{circling}]"
            )
        layers.append(tuple(layer))
        placed.update(layer)
    return tuple(layers)


def _depends_on(reads: Sequence[Target], writes: Sequence[Target]) -> bool:
    return any(
        read.metadata == written.metadata and read.path[: len(written.path)] == written.path
        for read in reads
        for written in writes
    )
