"""A checkpoint that was copied to another directory: Spark's notes in it follow.

Spark keeps where the schema of a state is by its absolute path (`operators`' metadata, version 2),
and looks nowhere else. All other files of a checkpoint are found below its own directory.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

from streamer.engine.planner.checkpoint_path import Location

_SCHEMA_DIRECTORY: Final = "_stateSchema"


def update_moved_paths(spark: Location) -> bool:
    """Let the notes of a checkpoint on this machine name the directory that they are in.

    Args:
        spark: Spark's checkpoint directory; one elsewhere stays as it is.

    Returns:
        Whether they named another one.
    """
    if not isinstance(spark, Path):
        return False
    has_changed = False
    for note in sorted(spark.glob("state/*/_metadata/v2/*")):
        if note.name.isdecimal():
            has_changed = _update_note(note, spark) or has_changed
    return has_changed


def _update_note(note: Path, spark: Path) -> bool:
    version, _, text = note.read_text().partition("\n")
    try:
        document: dict[str, Any] = json.loads(text)
        stores = document["stateStoreInfo"]
        paths = {store["storeName"]: store["stateSchemaFilePaths"] for store in stores}
    except (ValueError, LookupError, TypeError):
        return False  # of another form: Spark says what is wrong with it
    changed = False
    for store in stores:
        after = [_current_schema_path(path, spark) for path in paths[store["storeName"]]]
        changed = changed or after != paths[store["storeName"]]
        store["stateSchemaFilePaths"] = after
    if changed:
        draft = note.with_name(".moved.tmp")
        draft.write_text(f"{version}\n{json.dumps(document, separators=(',', ':'))}")
        # The check sum is that of the former text, and is not asked for where there is none.
        note.with_name(f".{note.name}.crc").unlink(missing_ok=True)
        os.replace(draft, note)
    return changed


def _current_schema_path(path: str, spark: Path) -> str:
    """Return where a schema is now; the same as before when it is not to be found here."""
    parts = path.split("/")
    at = parts.index(_SCHEMA_DIRECTORY) if _SCHEMA_DIRECTORY in parts else 0
    # `state/0` stands before it.
    here = spark.joinpath(*parts[at - 2 :])
    return f"file:{here}" if path.startswith("file:") and at > 1 and here.exists() else path
