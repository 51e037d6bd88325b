"""Small shell scripts that stand between Spark and the programs that it starts."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_launcher(name: str, inside: str, text: str) -> Path:
    """Write a script where every start of this user finds it again.

    Args:
        name: of the directory; the user's id is added, since the temporary directory is shared.
        inside: the script's path in it.
        text: the script.

    Returns:
        The directory: the shared one, or one of this start's own when another user holds that
        name or the script there is another one (of another environment).
    """
    directory = Path(tempfile.gettempdir()) / f"streamer-{name}-{os.getuid()}"
    if not _is_own_script(directory, directory / inside, text):
        directory = Path(tempfile.mkdtemp(prefix=f"streamer-{name}-"))
        _write_script(directory / inside, text)
    return directory


def _write_script(script: Path, text: str) -> None:
    script.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = script.with_name(f"{script.name}.{os.getpid()}")
    draft.write_text(text)
    draft.chmod(0o755)
    draft.replace(script)


def _is_own_script(directory: Path, script: Path, text: str) -> bool:
    """Make the shared script if it is not there; tell whether it is ours, whole and the same."""
    try:
        if not script.exists():
            _write_script(script, text)
        # Whoever owns a directory on the way could put another script there.
        way = (directory, script.parent, script)
        mine = all(path.lstat().st_uid == os.getuid() for path in way)
        return mine and script.read_text() == text
    except OSError:
        return False
