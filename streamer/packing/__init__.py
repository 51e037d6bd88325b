"""The environment of workers as one archive: this program, and the packages that it needs."""

from streamer.packing.archive import pack, packed
from streamer.packing.files import Packages, needed

__all__ = ["Packages", "needed", "pack", "packed"]
