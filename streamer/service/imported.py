"""Changes of files that mappings import: the config is the same, and its mappings are not."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from streamer.plan.judgement import Change, Effect, Judgement


def with_imports(found: Judgement, files: Iterable[str]) -> Judgement:
    """Return a judgement with the changes that other files bring.

    Args:
        found: the judgement of the change of the config.
        files: files that have changed, and that its mappings read.
    """
    if found.effect not in (None, Effect.RESTART):
        return found
    more = tuple(
        Change(os.path.relpath(name), "", name, 0, None, None, Effect.IN_PLACE, "is read")
        for name in sorted(files)
    )
    return replace(found, changes=(*found.changes, *more)) if more else found
