"""Write all generated files anew: `python -m tests.generate`, after a change of a spec or a page.

Files that follow from others come after them. Each part is a program of its own, since what one
writes is read by the next at its start.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
_PARTS: Final = (
    ("-m", "streamer.bloblang"),
    ("-m", "streamer.config.schema"),
    ("-m", "streamer.bloblang.reference"),
    ("-m", "streamer.config.rules_page"),
    ("-m", "streamer.config.unsupported_page"),
    ("-m", "streamer.config.extras_page"),
    ("-m", "streamer.cli.main", "docs", "--write", "streamer/docs/components"),
    ("-m", "tests.docs.api_page"),
    ("-m", "tests.docs.cookbook"),
    ("-m", "tests.deploy.chart"),
    ("-m", "tests.docs.navigation"),
)


def main() -> None:
    """Run each part.

    Raises:
        subprocess.CalledProcessError: when one fails; the later ones are not run.
    """
    for part in _PARTS:
        subprocess.run([sys.executable, *part], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
