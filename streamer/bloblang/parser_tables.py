"""The parser with its LALR tables, which are kept beside the grammar that they were made from.

Making them takes 70 ms, reading them 5 ms. They are plain JSON in the package, never written when
the program runs, and used only when grammar and lark are the ones they were made with; otherwise
they are made anew in memory. `python -m streamer.bloblang` writes the file.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, Final

import lark

_START_RULES: Final = ["mapping", "expression", "field"]
_TABLES_FILE: Final = "grammar.tables.json"


def _read_grammar() -> str:
    return resources.files(__package__).joinpath("grammar.lark").read_text("utf-8")


def _fingerprint(grammar: str) -> str:
    """Return a text that is another one whenever the tables would be others."""
    parts = (grammar, lark.__version__, *_START_RULES)
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def build_parser(transformer: Any = None) -> lark.Lark:
    """Return the parser, its tables made from the grammar."""
    return lark.Lark(
        _read_grammar(),
        parser="lalr",
        start=_START_RULES,
        maybe_placeholders=False,
        transformer=transformer,
    )


def load_parser(transformer: Any) -> lark.Lark:
    """Return the parser, its tables read from the file when that fits.

    Args:
        transformer: its methods are called, rule by rule, with what was read.
    """
    tables = read_stored_tables()
    if tables is None:
        return build_parser(transformer)
    # What lark's own generated parsers call; the version is the one that made the tables.
    read: Callable[..., lark.Lark] = lark.Lark._load_from_dict
    return read(tables["data"], tables["memo"], transformer=transformer)


def read_stored_tables() -> dict[str, Any] | None:
    """Return the tables in the file; None when there is none, or it is from another grammar."""
    file = resources.files(__package__).joinpath(_TABLES_FILE)
    try:
        tables: dict[str, Any] = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    return (
        _restore_int_keys(tables) if tables.get("from") == _fingerprint(_read_grammar()) else None
    )


def _restore_int_keys(tables: dict[str, Any]) -> dict[str, Any]:
    """Turn the keys that JSON made texts back into numbers."""
    parser = tables["data"]["parser"]["parser"]
    parser["tokens"] = {int(key): token for key, token in parser["tokens"].items()}
    parser["states"] = {
        int(state): {int(token): action for token, action in actions.items()}
        for state, actions in parser["states"].items()
    }
    tables["memo"] = {int(key): item for key, item in tables["memo"].items()}
    return tables


def serialize_tables() -> bytes:
    """Return what belongs into the file."""
    file = io.BytesIO()
    build_parser().save(file)
    tables = pickle.loads(file.getvalue())  # lark gives its plain tables in no other form
    tables["from"] = _fingerprint(_read_grammar())
    return json.dumps(tables, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def write_tables() -> None:
    """Write the file into the package."""
    Path(__file__).with_name(_TABLES_FILE).write_bytes(serialize_tables())
