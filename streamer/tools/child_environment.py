"""The environment of a process of ours that tries what somebody else has written."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Final

from streamer.connectors.secrets.lookup import URNS_VARIABLE, current_lookup

# What a process that may not look at the environment still needs of it.
_NEEDED_VARIABLES: Final = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TZ")


def make_child_environment(sees_all: bool, more: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables of the process.

    Args:
        sees_all: whether what it tries may see this program's environment.
        more: variables that it needs besides, if it may not.
    """
    names: Iterable[str] = os.environ if sees_all else (*_NEEDED_VARIABLES, *more)
    variables = {name: os.environ[name] for name in names if name in os.environ}
    # Our own modules come from where they came from here, and never from the directory at hand.
    if sees_all and (urns := current_lookup().urns):
        variables[URNS_VARIABLE] = " ".join(urns)
    return {**variables, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
