"""Changes of files that mappings import: the config is the same, and its mappings are not."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from streamer.plan.change_impact import Change, ChangeImpact, Effect


def with_import_changes(judgement: ChangeImpact, files: Iterable[str]) -> ChangeImpact:
    """Return a judgement with the changes that other files bring.

    Args:
        judgement: the judgement of the change of the config.
        files: files that have changed, and that its mappings read.
    """
    if judgement.effect not in (None, Effect.RESTART):
        return judgement
    more = tuple(
        Change(os.path.relpath(name), "", name, 0, None, None, Effect.IN_PLACE, "is read")
        for name in sorted(files)
    )
    return replace(judgement, changes=(*judgement.changes, *more)) if more else judgement
